"""Playbooks run for real, on nodes that are directories."""

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.playbooks.support import PLAYBOOKS, Fleet, file, snapshot
from vela.finding import Layer
from vela.operate.ansible import NodeEvent, PlaybookResult, findings, run_playbook
from vela.operate.errors import Failure

FILES = [
    file("/etc/a", "a\n"),
    file("/etc/b", "b\n", restart=("systemd-sysctl.service",)),
    file("/opt/c/d", "d\n"),
]
HOSTS = PLAYBOOKS / "hosts.yml"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Three nodes; what Ansible keeps of a run stays in the test's folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    made = Fleet(tmp_path)
    for node in ("n1", "n2", "n3"):
        made.add(node, FILES)
    return made


def run(
    fleet: Fleet, *, playbook: Path = HOSTS, check: bool = False, **other: Any
) -> PlaybookResult:
    given = {"expected": fleet.names, "forks": 5, "timeout": 120.0, **other}
    return run_playbook(playbook, fleet.inventory, check=check, **given)


def states(result: PlaybookResult) -> dict[str, str]:
    return {name: node.state for name, node in result.nodes.items()}


def played(folder: Path, tasks: str, roles: str = "") -> Path:
    """A playbook of a test's own."""
    path = folder / "test.yml"
    path.write_text(f"- hosts: hosts\n  gather_facts: false\n{roles}  tasks:\n{tasks}")
    return path


def test_check_apply_and_check_again(fleet: Fleet) -> None:
    before = snapshot(fleet.base / "nodes")
    said = run(fleet, check=True)
    assert states(said) == {"n1": "changed", "n2": "changed", "n3": "changed"}
    assert snapshot(fleet.base / "nodes") == before
    events: list[NodeEvent] = []
    done = run(fleet, on_event=events.append)
    assert {name: node.changes for name, node in done.nodes.items()} == {
        name: node.changes for name, node in said.nodes.items()
    }
    assert done.module_calls == 3
    assert sorted(event.node for event in events) == ["n1", "n2", "n3"]
    assert {event.state for event in events} == {"changed"}
    assert (fleet.root("n2") / "opt/c/d").read_text() == "d\n"
    (fleet.root("n1") / "etc/a").write_text("x\n")
    (fleet.root("n3") / "etc/b").unlink()
    (fleet.root("n3") / "opt/c/d").chmod(0o600)
    said = run(fleet, check=True)
    assert states(said) == {"n1": "changed", "n2": "ok", "n3": "changed"}
    layers = dict.fromkeys(fleet.names, Layer.HOST)
    assert [(f.node, f.item, f.expected, f.found, f.rule) for f in findings(said, layers)] == [
        ("n1", "/etc/a (content)", "line 1: a", "line 1: x", "VELA-FILE-001"),
        ("n3", "/etc/b (missing)", "present", None, "VELA-FILE-003"),
        ("n3", "/opt/c/d (mode)", "0644", "0600", "VELA-FILE-002"),
    ]
    assert list((fleet.base / "tmp").iterdir()) == []


def test_runs_of_both_kinds_do_not_mix(fleet: Fleet) -> None:
    """A folder that is used again made an apply a check, and said so to nobody."""
    for check in (True, False, True, False):
        before = snapshot(fleet.base / "nodes")
        said = run(fleet, check=check)
        touched = snapshot(fleet.base / "nodes") != before
        assert touched is (not check and said.nodes["n1"].state == "changed")
    assert states(said) == {"n1": "ok", "n2": "ok", "n3": "ok"}


def weak_interpreter(folder: Path) -> Path:
    """A Python that may not pass over permissions, whoever runs it."""
    path = folder / "weak-python"
    path.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        f"sys.path.insert(0, {str(PLAYBOOKS.parent)!r})\n"
        "from tests.playbooks.support import without_override\n"
        "without_override()\n"
        f"os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])\n"
    )
    path.chmod(0o755)
    return path


def test_nodes_that_fail_or_are_away_do_not_stop_the_others(fleet: Fleet) -> None:
    weak = str(weak_interpreter(fleet.base))
    fleet.add("n2", FILES, ansible_python_interpreter=weak)
    fleet.add("n3", FILES, ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=1)
    (fleet.root("n2") / "opt").mkdir()
    (fleet.root("n2") / "opt").chmod(0o555)
    events: list[NodeEvent] = []
    said = run(fleet, on_event=events.append, expected=[*fleet.names, "n4"])
    assert states(said) == {
        "n1": "changed",
        "n2": "failed",
        "n3": "unreachable",
        "n4": "unknown",
    }
    assert said.nodes["n2"].message == "/opt/c/d cannot be written: Permission denied (EACCES)"
    assert "Connection refused" in said.nodes["n3"].message
    assert said.nodes["n4"].message == "Ansible did not get as far as this node"
    assert sorted((e.node, e.state) for e in events) == [
        ("n1", "changed"),
        ("n2", "failed"),
        ("n3", "unreachable"),
    ]
    assert not (fleet.root("n2") / "etc/a").exists()
    layers = dict.fromkeys(said.nodes, Layer.HOST)
    rules = [f.rule for f in findings(said, layers) if f.node != "n1"]
    assert rules == ["VELA-NODE-001", "VELA-NODE-002", "VELA-NODE-003"]
    (fleet.root("n2") / "opt").chmod(0o755)
    assert states(run(fleet, limit=["n2"], expected=["n2"])) == {"n2": "changed"}


def test_limit_leaves_the_others_alone(fleet: Fleet) -> None:
    said = run(fleet, expected=["n2"])
    assert states(said) == {"n2": "changed"}
    assert list(fleet.root("n1").iterdir()) == []


def test_no_host_at_all_is_a_failure(fleet: Fleet) -> None:
    with pytest.raises(Failure) as caught:
        run(fleet, limit=["n9"], expected=["n9"])
    assert caught.value.message == "Ansible did not get as far as any node"
    assert "Could not match supplied host pattern, ignoring: n9" in caught.value.detail


def test_play_that_matches_no_host_is_a_failure(fleet: Fleet) -> None:
    with pytest.raises(Failure, match="did not get as far as any node"):
        run(fleet, playbook=PLAYBOOKS / "switches.yml")


def test_nobody_expected_is_a_failure_and_not_everybody(fleet: Fleet) -> None:
    with pytest.raises(Failure, match="there is no node to run the playbook on"):
        run(fleet, expected=[])
    with pytest.raises(Failure, match="there is no node to run the playbook on"):
        run(fleet, limit=[])
    assert list(fleet.root("n1").iterdir()) == []


def test_playbook_with_an_error_is_a_failure_with_its_words(fleet: Fleet) -> None:
    path = played(fleet.base, "    - name: Wrong\n      no.such.module:\n")
    with pytest.raises(Failure) as caught:
        run(fleet, playbook=path)
    assert "couldn't resolve module/action 'no.such.module'" in caught.value.detail
    assert "\x1b" not in caught.value.detail


def test_damaged_inventory_is_a_failure_with_its_words(fleet: Fleet) -> None:
    fleet.inventory.write_text(fleet.inventory.read_text()[:150])
    with pytest.raises(Failure) as caught:
        run(fleet)
    assert "inventory.json" in caught.value.detail


def test_hidden_change_is_never_clean(fleet: Fleet) -> None:
    run(fleet)
    role = f"  roles: [{{role: {PLAYBOOKS / 'roles/bundle'}}}]\n"
    tasks = (
        "    - name: Hide something\n"
        "      ansible.builtin.command: {argv: ['true']}\n"
        "      changed_when: true\n"
        "      no_log: true\n"
        "      when: inventory_hostname == 'n2'\n"
    )
    said = run(fleet, playbook=played(fleet.base, tasks, role))
    assert states(said) == {"n1": "ok", "n2": "unknown", "n3": "ok"}
    assert said.nodes["n2"].message == "1 change was hidden by no_log"


def test_playbook_that_compares_nothing_is_not_ok(fleet: Fleet) -> None:
    tasks = "    - name: Nothing\n      ansible.builtin.debug: {msg: hello}\n"
    assert set(states(run(fleet, playbook=played(fleet.base, tasks))).values()) == {"unknown"}


def test_ansible_that_is_not_there(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(fleet.base / "bin/python"))
    monkeypatch.setenv("PATH", str(fleet.base))
    with pytest.raises(Failure) as caught:
        run(fleet)
    said = f"ansible-playbook is neither in {fleet.base / 'bin'} nor on PATH"
    assert (caught.value.message, caught.value.hint) == (said, "run make setup")


def test_child_that_cannot_start_is_a_failure_with_its_words(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = fleet.base / "child.py"
    broken.write_text("import sys; sys.exit('no ansible_runner here')\n")
    monkeypatch.setattr("vela.operate.ansible.CHILD", broken)
    with pytest.raises(Failure) as caught:
        run(fleet)
    assert caught.value.message == "Ansible could not be run"
    assert caught.value.detail == "no ansible_runner here"


def test_bad_end_without_a_bad_node_is_a_failure(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = fleet.base / "child.py"
    child.write_text(
        "import json, sys\n"
        "node = {'changed': 0, 'dark': 0, 'failures': 0}\n"
        "answer = {'changed': False, 'changes': [], 'real': False, 'restart': [], 'reboot': []}\n"
        "for event in (\n"
        "    {'event': 'runner_on_ok', 'host': 'n1', 'action': 'vela_bundle', 'result': answer},\n"
        "    {'event': 'playbook_on_stats', 'stats': {'n1': node}},\n"
        "    {'event': 'end', 'code': 250, 'output': 'crashed late'},\n"
        "):\n"
        "    print(json.dumps(event))\n"
    )
    monkeypatch.setattr("vela.operate.ansible.CHILD", child)
    with pytest.raises(Failure) as caught:
        run(fleet, expected=["n1"])
    assert caught.value.message == "ansible-playbook ended with code 250, though every node is done"
    assert caught.value.detail == "crashed late"


class Look:
    """Looks at the folder of a run while it goes on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.most = 0
        self.seen: dict[str, bytes] = {}
        self.modes: set[int] = set()

    def __call__(self, *_: object) -> bool:
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        own = [path for path in found if "vela-ansible-" in str(path)]
        self.most = max(self.most, len(own))
        for path in found:
            try:
                self.seen[path.name] = self.seen.get(path.name, b"") + path.read_bytes()
            except FileNotFoundError:
                continue
        self.modes |= {stat.S_IMODE(path.stat().st_mode) for path in self.folder.iterdir()}
        return False


def test_no_secret_gets_in_and_few_files_are_kept(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "canary-8c1f"
    for name in ("PULUMI_CONFIG_PASSPHRASE", "IC_API_KEY", "ANSIBLE_BECOME_PASSWORD", "OTHER"):
        monkeypatch.setenv(name, canary)
    seen = fleet.base / "seen"
    code = f"import os; open({str(seen)!r}, 'w').write('\\n'.join(os.environ))"
    tasks = (
        "    - name: Write the names of the variables down\n"
        f"      ansible.builtin.command:\n        argv: [{sys.executable}, -c, {code!r}]\n"
        "      changed_when: false\n"
        "      when: inventory_hostname == 'n1'\n"
    )
    look = Look(fleet.base / "tmp")
    role = f"  roles: [{{role: {PLAYBOOKS / 'roles/bundle'}}}]\n"
    run(fleet, playbook=played(fleet.base, tasks, role), cancel=look, on_event=look)
    assert "ansible-playbook" in look.seen["command"].decode()
    assert [name for name, content in look.seen.items() if canary.encode() in content] == []
    names = set(seen.read_text().split())
    assert {"HOME", "PATH", "ANSIBLE_HOST_KEY_CHECKING"} <= names
    assert [name for name in names if name.startswith(("PULUMI_", "IC_", "OTHER"))] == []
    assert "ANSIBLE_BECOME_PASSWORD" not in names
    assert look.modes <= {0o700, 0o600}
    assert 0 < look.most <= 5 + 2 * len(fleet.names)


def test_locale_of_the_caller_does_not_matter(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "POSIX")
    assert set(states(run(fleet, check=True)).values()) == {"changed"}
