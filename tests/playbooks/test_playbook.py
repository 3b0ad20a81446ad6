"""The playbooks as a person runs them: ansible-playbook, from the project's folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.playbooks.support import PLAYBOOKS, ROOT, Fleet, file, snapshot

FILES = [
    file("/etc/motd", "welcome to {{ 7 * 7 }}\n{% raw %}\n"),
    file("/etc/sysctl.d/60-vela.conf", "a = 1\n", restart=("systemd-sysctl.service",)),
    file("/etc/no-newline", "end"),
]


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    made = Fleet(tmp_path)
    for node in ("n1", "n2"):
        made.add(node, FILES)
    return made


def play(fleet: Fleet, *options: str, playbook: str = "hosts.yml", code: int = 0) -> str:
    """Run a playbook; gives what a person reads."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("ansible-playbook")),
            "-i",
            str(fleet.inventory),
            str(PLAYBOOKS.relative_to(ROOT) / playbook),
            *options,
        ],
        cwd=ROOT,
        env={**kept, "HOME": str(fleet.base), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def recap(output: str) -> dict[str, dict[str, int]]:
    lines = re.findall(r"^(\S+) +: (ok=.*)$", output, re.MULTILINE)
    return {
        node: {key: int(value) for key, value in (pair.split("=") for pair in counts.split())}
        for node, counts in lines
    }


def test_apply_check_and_diff(fleet: Fleet) -> None:
    before = snapshot(fleet.base / "nodes")
    said = play(fleet, "--check", "--diff")
    assert {counts["changed"] for counts in recap(said).values()} == {1}
    assert said.count("+a = 1\n") == 2
    assert snapshot(fleet.base / "nodes") == before
    said = play(fleet)
    assert {counts["changed"] for counts in recap(said).values()} == {1}
    for node in ("n1", "n2"):
        for entry in FILES:
            # not a byte more or less, and braces are no template
            assert (fleet.root(node) / entry.path[1:]).read_text() == entry.content
    before = snapshot(fleet.base / "nodes")
    said = play(fleet)
    assert recap(said).keys() == {"n1", "n2"}
    for counts in recap(said).values():
        # the role's arguments are checked on the controller; the module is the other one
        assert (counts["ok"], counts["changed"], counts["skipped"]) == (2, 0, 0)
    assert snapshot(fleet.base / "nodes") == before
    (fleet.root("n2") / "etc/sysctl.d/60-vela.conf").write_text("a = 2\n")
    said = play(fleet, "--check", "--diff")
    assert [counts["changed"] for _, counts in sorted(recap(said).items())] == [0, 1]
    assert "-a = 2\n+a = 1\n" in said


def test_site_has_hosts_and_switches(fleet: Fleet) -> None:
    fleet.add("leaf1", FILES, group="switches")
    assert recap(play(fleet, playbook="switches.yml")).keys() == {"leaf1"}
    said = play(fleet, playbook="site.yml")
    changed = {node: counts["changed"] for node, counts in recap(said).items()}
    assert changed == {"leaf1": 0, "n1": 1, "n2": 1}


def test_switches_get_their_bundles_though_every_host_fails(fleet: Fleet) -> None:
    fleet.add("leaf1", FILES, group="switches")
    for node in ("n1", "n2"):
        (fleet.base / f"{node}.json").unlink()
    counts = recap(play(fleet, playbook="site.yml", code=2))
    assert {node: count["failed"] for node, count in counts.items()} == {
        "leaf1": 0,
        "n1": 1,
        "n2": 1,
    }
    assert counts["leaf1"]["changed"] == 1


def test_missing_bundle_is_named(fleet: Fleet) -> None:
    (fleet.base / "n1.json").unlink()
    said = play(fleet, code=2)
    assert "n1.json" in said
    assert recap(said)["n1"]["failed"] == 1
    assert recap(said)["n2"]["changed"] == 1


def test_role_without_its_argument_is_refused(fleet: Fleet) -> None:
    text = fleet.inventory.read_text()
    fleet.inventory.write_text(text.replace("vela_bundle_file", "other"))
    said = play(fleet, code=2)
    assert "missing required arguments: vela_bundle_file" in said
    assert list((fleet.root("n1")).iterdir()) == []
