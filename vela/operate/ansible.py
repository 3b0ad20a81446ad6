"""Runs a playbook through ansible-runner, and holds what it says against the expected nodes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vela.finding import Finding, Kind, Layer
from vela.model.change import Change
from vela.operate.errors import Failure

State = Literal["ok", "changed", "failed", "unreachable", "unknown"]
SECONDS_TO_STOP = 20
PASSED_ON = ("HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TMPDIR", "TERM")
"""Variables that Ansible may see; never Pulumi's passphrase or a cloud's API key."""

_NUMBERS = {"content": "001", "mode": "002", "owner": "002", "missing": "003", "obsolete": "004"}


@dataclass(frozen=True, slots=True)
class NodeChange:
    """One difference of one node, as the bundle module told it."""

    path: str
    item: str
    expected: str | None
    found: str | None
    change: Change


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """Something happened on a node."""

    node: str
    state: State


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What became of one node."""

    node: str
    state: State
    changes: tuple[NodeChange, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class PlaybookResult:
    """What became of all nodes; every expected one is there."""

    nodes: Mapping[str, NodeResult]
    elapsed: float
    module_calls: int


@dataclass(slots=True)
class _Collected:
    """Events of a run, sorted by node."""

    changes: dict[str, list[NodeChange]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    told_changed: dict[str, int] = field(default_factory=dict)
    stats: dict[str, dict[str, int]] = field(default_factory=dict)
    calls: int = 0
    command: list[str] = field(default_factory=list)


def run_playbook(
    playbook: Path,
    inventory: Path,
    *,
    expected: Sequence[str],
    check: bool,
    forks: int,
    timeout: float,
    limit: Sequence[str] | None = None,
    on_event: Callable[[NodeEvent], None] | None = None,
) -> PlaybookResult:
    """Run a playbook in a process of its own, in a fresh folder, with few variables.

    Args:
        playbook: Absolute path.
        inventory: Absolute path.
        expected: Nodes that must give a result; one that does not is ``unknown``.
        check: Look only.
        forks: Nodes at once.
        timeout: Limit, seconds.
        limit: Nodes to run on; None: all.
        on_event: Takes what happens, as it happens.

    Raises:
        Failure: Ansible cannot be run, or did not end in time.
    """
    settings = {
        "playbook": str(playbook),
        "inventory": str(inventory),
        "check": check,
        "forks": forks,
        "limit": list(limit or ()),
    }
    begun = time.monotonic()
    collected = _Collected()
    for event in _events(settings, timeout):
        _take(collected, event, on_event)
    if check != ("--check" in collected.command):
        message = "Ansible was not run in the mode that was asked for"
        raise Failure(message, "report this: nothing that it said is used")
    nodes = {name: _result(name, collected) for name in expected}
    return PlaybookResult(nodes, time.monotonic() - begun, collected.calls)


def _events(settings: Mapping[str, Any], timeout: float) -> Iterator[Mapping[str, Any]]:
    """Events of a run, one by one; the process is gone when this ends, however it ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "vela.operate.ansible_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(Path(settings["playbook"]).parent),
        start_new_session=True,
    )
    limit = time.monotonic() + timeout
    timer = _Alarm(process, limit)
    try:
        if process.stdin and process.stdout:
            process.stdin.write(json.dumps(settings))
            process.stdin.close()
            for line in process.stdout:
                yield json.loads(line)
        code = process.wait()
        errors = process.stderr.read() if process.stderr else ""
    finally:
        timer.cancel()
        _stop(process)
    if timer.rang:
        message = f"the playbooks did not end within {timeout:.0f} s and were stopped"
        raise Failure(message, "run the command again: nodes that are done stay done")
    if code:
        message = "Ansible could not be run"
        raise Failure(message, "see the last words below", errors.strip()[-2000:])


class _Alarm:
    """Ends a process at a time limit."""

    def __init__(self, process: "subprocess.Popen[str]", limit: float) -> None:
        import threading  # noqa: PLC0415 - the timer's own need

        self.rang = False
        self._process = process
        self._timer = threading.Timer(max(0.0, limit - time.monotonic()), self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _ring(self) -> None:
        self.rang = True
        _stop(self._process)

    def cancel(self) -> None:
        self._timer.cancel()


def _stop(process: "subprocess.Popen[str]") -> None:
    """Let the child end ansible-playbook in good order, then make sure."""
    for number, seconds in ((signal.SIGTERM, SECONDS_TO_STOP), (signal.SIGKILL, 5)):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
            process.wait(seconds)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _environment(playbooks: Path) -> dict[str, str]:
    beside = Path(sys.executable).parent
    path = os.pathsep.join([str(beside), os.environ.get("PATH", os.defpath)])
    if shutil.which("ansible-playbook", path=path) is None:
        message = "ansible-playbook is neither beside Python nor on PATH"
        raise Failure(message, "run make setup")
    return {
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        "PATH": path,
        "ANSIBLE_CONFIG": str(playbooks / "ansible.cfg"),
        # the runner would switch it off
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }


def _take(
    collected: _Collected,
    event: Mapping[str, Any],
    on_event: Callable[[NodeEvent], None] | None,
) -> None:
    kind = event["event"]
    if kind == "command":
        collected.command = list(event["command"])
        return
    if kind == "playbook_on_stats":
        collected.stats = dict(event["stats"])
        return
    node, result = str(event["host"]), event.get("result") or {}
    if kind == "runner_on_unreachable":
        collected.unreachable.add(node)
        collected.messages[node] = str(result.get("msg", "unreachable"))
        state: State = "unreachable"
    elif kind == "runner_on_failed":
        collected.failed.add(node)
        collected.messages[node] = str(result.get("msg", "failed"))
        state = "failed"
    else:
        changed = bool(result.get("changed"))
        if changed:
            collected.told_changed[node] = collected.told_changed.get(node, 0) + 1
        if event.get("action") != "vela_bundle":
            return
        collected.calls += 1
        found = [_change(said) for said in result.get("changes", [])]
        collected.changes.setdefault(node, []).extend(found)
        state = "changed" if changed else "ok"
    if on_event:
        on_event(NodeEvent(node, state))


def _change(said: Mapping[str, Any]) -> NodeChange:
    return NodeChange(
        path=str(said["path"]),
        item=str(said["item"]),
        expected=said["expected"],
        found=said["found"],
        change=Change(said["change"]),
    )


def _result(name: str, collected: _Collected) -> NodeResult:
    """State of one node: what events say, held against the statistics at the end."""
    changes = tuple(collected.changes.get(name, ()))
    message = collected.messages.get(name, "")
    stats = collected.stats.get(name)
    if name in collected.unreachable:
        return NodeResult(name, "unreachable", changes, message)
    if name in collected.failed:
        return NodeResult(name, "failed", changes, message)
    if stats is None:
        return NodeResult(name, "unknown", changes, "Ansible said nothing about it")
    hidden = stats["changed"] - collected.told_changed.get(name, 0)
    if hidden > 0:
        return NodeResult(name, "unknown", changes, f"{hidden} changes were hidden (no_log)")
    return NodeResult(name, "changed" if stats["changed"] else "ok", changes)


_HINTS = {
    "failed": "mend the cause, then run the command again: nodes that are done stay done",
    "unreachable": "check power, address and SSH key: ssh to it by hand",
    "unknown": "run the command again; if it stays so, run ansible-playbook by hand",
}


def findings(result: PlaybookResult, layers: Mapping[str, Layer]) -> Iterator[Finding]:
    """Differences and failures of a run as findings, node by node."""
    numbers = {"failed": "001", "unreachable": "002", "unknown": "003"}
    for name, node in result.nodes.items():
        for change in node.changes:
            yield Finding(
                layer=layers[name],
                node=name,
                item=f"{change.path} ({change.item})",
                expected=change.expected,
                found=change.found,
                change=change.change,
                rule=f"VELA-FILE-{_NUMBERS[change.item]}",
            )
        if node.state in numbers:
            yield Finding(
                layer=layers[name],
                node=name,
                item=node.state,
                expected=None,
                found=node.message,
                change=Change.LIVE,
                rule=f"VELA-NODE-{numbers[node.state]}",
                kind=Kind.FAILURE,
                hint=_HINTS[node.state],
            )
