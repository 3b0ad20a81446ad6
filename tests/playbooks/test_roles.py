"""What every playbook and role must keep to."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.playbooks.support import PLAYBOOKS
from vela.model.change import Change

ROLES = sorted(path for path in (PLAYBOOKS / "roles").iterdir() if path.is_dir())
YAML = sorted(PLAYBOOKS.rglob("*.yml"))
FORBIDDEN = {
    "ignore_errors",
    "ignore_unreachable",
    "shell",
    "ansible.builtin.shell",
    "raw",
    "ansible.builtin.raw",
    "reboot",
    "ansible.builtin.reboot",
    "no_log",
}


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_role_says_what_it_takes(role: Path) -> None:
    specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    assert specs["main"]["short_description"]
    text = (role / "README.md").read_text()
    for name, option in specs["main"]["options"].items():
        assert option["description"], name
        assert f"`{name}`" in text


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(PLAYBOOKS)))
def test_nothing_is_swallowed_and_no_shell_is_used(path: Path) -> None:
    assert set(keys(yaml.safe_load(path.read_text()))) & FORBIDDEN == set()


def test_the_forbidden_is_found_where_it_is() -> None:
    text = (
        "- hosts: all\n  tasks:\n    - block:\n        - shell: ls\n          ignore_errors: true\n"
    )
    assert set(keys(yaml.safe_load(text))) & FORBIDDEN == {"shell", "ignore_errors"}


def test_commands_say_when_they_change_something() -> None:
    tasks = [
        task
        for path in YAML
        if "tasks" in path.parts or "handlers" in path.parts
        for task in yaml.safe_load(path.read_text())
    ]
    commands = [task for task in tasks if "ansible.builtin.command" in task]
    assert len(tasks) >= 6
    assert len(commands) == 1
    assert all("changed_when" in task for task in commands)


def test_playbooks_gather_no_facts() -> None:
    plays = [
        play
        for name in ("hosts.yml", "switches.yml", "site.yml")
        for play in yaml.safe_load((PLAYBOOKS / name).read_text())
    ]
    assert [(play["hosts"], play["gather_facts"]) for play in plays] == [
        ("hosts", False),
        ("switches", False),
        ("hosts:switches", False),
    ]


def test_module_and_model_mean_the_same_reboot() -> None:
    source = (PLAYBOOKS / "roles/bundle/library/vela_bundle.py").read_text()
    values = {
        node.targets[0].id: node.value.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    assert values["REBOOT"] == Change.HOST_REBOOT
