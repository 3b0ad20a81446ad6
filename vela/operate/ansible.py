"""Runs a playbook through ansible-runner, in a process of its own."""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from vela.operate.ansible_events import (
    Collector,
    NodeChange,
    NodeEvent,
    NodeResult,
    PlaybookResult,
    findings,
)
from vela.operate.errors import Failure

CHILD = Path(__file__).with_name("ansible_child.py")
PREFIX = "vela-ansible-"
SECONDS_TO_STOP = 20
SECONDS_BETWEEN_LOOKS = 0.2
PASSED_ON = ("HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "TMPDIR", "TERM", "TZ")
"""Variables that Ansible may see; never Pulumi's passphrase or a cloud's API key."""


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
    cancel: Callable[[], bool] | None = None,
) -> PlaybookResult:
    """Run a playbook in a process of its own, in a fresh folder, with few variables.

    However this ends, nothing of the run goes on: not ``ansible-playbook``, not its workers.

    Args:
        playbook: Absolute path. The ``ansible.cfg`` beside it or one folder up holds; without
            one, the caller's own.
        inventory: Absolute path.
        expected: Nodes that must give a result; one that does not is ``unknown``.
        check: Look only.
        forks: Nodes at once.
        timeout: Limit, seconds.
        limit: Nodes to run on; None: the expected ones.
        on_event: Takes what happens, as it happens.
        cancel: Asked several times a second; True stops the run.

    Raises:
        Failure: Ansible cannot be run, did not end in time, was told to stop, or ended badly
            without saying on which node.
    """
    if not expected or limit == []:
        message = "there is no node to run the playbook on"
        raise Failure(message)
    begun = time.monotonic()
    collector = Collector()
    _sweep()
    prefix = f"{PREFIX}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        settings = {
            "folder": folder,
            "parent": os.getpid(),
            "playbook": str(playbook),
            "inventory": str(inventory),
            "check": check,
            "forks": forks,
            "limit": list(expected if limit is None else limit),
        }
        # closed here and now: a traceback would keep it, and the process, alive
        with contextlib.closing(_events(settings, begun + timeout, cancel)) as events:
            for event in events:
                if event is None:
                    raise _stopped(collector, expected, timeout, begun)
                said = collector.take(event)
                if said and on_event:
                    on_event(said)
    if not collector.processed:
        message = "Ansible did not get as far as any node"
        raise Failure(message, "its last words follow", collector.output)
    nodes = collector.results(expected)
    if collector.code and all(node.state in {"ok", "changed"} for node in nodes.values()):
        message = f"ansible-playbook ended with code {collector.code}, though every node is done"
        raise Failure(message, "nothing that it said is relied on", collector.output)
    return PlaybookResult(nodes, time.monotonic() - begun, collector.calls)


def _sweep() -> None:
    """Remove the folders of runs that were killed with all their processes at once."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        try:
            os.kill(int(folder.name.removeprefix(PREFIX).partition("-")[0]), 0)
        except ProcessLookupError:
            # what is another user's stays: it cannot be removed
            shutil.rmtree(folder, ignore_errors=True)
        except (ValueError, PermissionError):
            continue


def _stopped(
    collector: Collector, expected: Sequence[str], timeout: float, begun: float
) -> Failure:
    late = time.monotonic() - begun >= timeout
    message = f"did not end within {timeout:.0f} s and were stopped" if late else "were stopped"
    done = f"{collector.compared} of {len(expected)} nodes are done"
    return Failure(f"the playbooks {message}", f"run the command again: {done} and stay done")


def _events(
    settings: Mapping[str, Any], until: float, cancel: Callable[[], bool] | None
) -> Generator[Mapping[str, Any] | None]:
    """Events of a run, one by one; None when it has to be stopped before its end.

    The process is gone when this ends, however it ends.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            [sys.executable, "-P", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_environment(Path(settings["playbook"])),
            start_new_session=True,
        ) as process,
    ):
        try:
            lines = _lines(process, json.dumps(settings))
            while True:
                if time.monotonic() >= until or (cancel and cancel()):
                    yield None
                    return
                try:
                    line = lines.get(timeout=SECONDS_BETWEEN_LOOKS)
                except queue.Empty:
                    continue
                if line is None:
                    break
                yield json.loads(line)
            code = process.wait()
        finally:
            _stop(process)
        if code:
            errors.seek(0)
            message = "Ansible could not be run"
            raise Failure(message, "its last words follow", errors.read().strip()[-2000:])


def _lines(process: "subprocess.Popen[str]", settings: str) -> "queue.Queue[str | None]":
    """Lines of a process as they come, then None."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read(stream: IO[str]) -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    if process.stdin and process.stdout:
        threading.Thread(target=read, args=(process.stdout,), daemon=True).start()
        process.stdin.write(settings)
        process.stdin.close()
    return lines


def _stop(process: "subprocess.Popen[str]") -> None:
    """Let the child end ansible-playbook in good order, then make sure."""
    for number, seconds in ((signal.SIGTERM, SECONDS_TO_STOP), (signal.SIGKILL, 5)):
        if process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue


def _environment(playbook: Path) -> dict[str, str]:
    beside = Path(sys.executable).parent
    path = os.pathsep.join([str(beside), os.environ.get("PATH", os.defpath)])
    if shutil.which("ansible-playbook", path=path) is None:
        message = f"ansible-playbook is neither in {beside} nor on PATH"
        raise Failure(message, "run make setup")
    return {
        **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        **_configuration(playbook),
        "PATH": path,
        # Ansible refuses a locale that is not UTF-8
        "LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8",
        # the runner would switch it off
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_NOCOLOR": "True",
    }


def _configuration(playbook: Path) -> dict[str, str]:
    for folder in playbook.parents[:2]:
        if (folder / "ansible.cfg").is_file():
            return {"ANSIBLE_CONFIG": str(folder / "ansible.cfg")}
    return {}


__all__ = ["NodeChange", "NodeEvent", "NodeResult", "PlaybookResult", "findings", "run_playbook"]
