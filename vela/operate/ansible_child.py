"""The process that ansible-runner runs in: settings come as JSON, events go as JSON lines.

A process of its own, because the runner writes its whole environment into a file, replaces
signal handlers, and lets a playbook go on when its own process ends. Run as a file, with ``-P``:
beside it is a module called ansible.

Whatever ends this process, ansible-playbook, its workers and what they started end as well:
asked by SIGTERM, or left by its parent, it stops them in good order and removes its folder;
killed, the kernel stops ansible-playbook (Linux only; elsewhere it runs to the end of the play).
"""

import collections
import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

KEPT = {"runner_on_ok", "runner_on_failed", "runner_on_unreachable"}
RESULT = ("changed", "changes", "msg", "real", "restart", "reboot")
STATS = ("changed", "dark", "failures")
SECONDS_TO_STOP = 8
LINES_OF_OUTPUT = 20
PLAYBOOK = "ansible-playbook"
EXEC = "--exec"

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def control(option: int, value: int) -> None:
    """Set an option of this process, where the kernel is Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Child:
    """One run of a playbook.

    Attributes:
        asked: Set once the run shall stop.
    """

    def __init__(self, settings: dict[str, Any], parent: int, events: int) -> None:
        """Take the settings, the parent's process id and the descriptor to tell events on."""
        self.asked = threading.Event()
        self._settings = settings
        self._parent = parent
        self._events = os.fdopen(events, "w", encoding="utf-8")
        self._playbook: int | None = None
        self._give_up = 0.0
        self._output: collections.deque[str] = collections.deque(maxlen=LINES_OF_OUTPUT)

    def run(self) -> None:
        """Run the playbook and tell what happens."""
        import ansible_runner  # noqa: PLC0415 - slow, and not for the process that execs

        settings, folder = self._settings, Path(self._settings["folder"])
        _precede(folder / "bin")
        limit = folder / "limit"
        limit.write_text("\n".join(settings["limit"]) + "\n", encoding="utf-8")
        runner = ansible_runner.interface.init_runner(
            private_data_dir=str(folder),
            project_dir=str(Path(settings["playbook"]).parent),
            playbook=settings["playbook"],
            inventory=settings["inventory"],
            cmdline="--check" if settings["check"] else None,
            limit=f"@{limit}",
            forks=settings["forks"],
            settings={"pexpect_timeout": 1, "suppress_output_file": True},
            quiet=True,
            event_handler=self._take,
            cancel_callback=self._cancelled,
        )
        if ("--check" in runner.config.command) != settings["check"]:
            sys.exit("the command line is not in the mode that was asked for; nothing was run")
        runner.run()
        self._tell({"event": "end", "code": runner.rc, "output": "\n".join(self._output)})

    def _take(self, event: dict[str, Any]) -> bool:
        """Pass an event on in short; False keeps the runner from writing it to a file."""
        kind, data = event["event"], event.get("event_data", {})
        # the interposer's own events carry no process
        self._playbook = event.get("pid") or self._playbook
        if kind in KEPT:
            ignored = kind == "runner_on_failed" and data.get("ignore_errors")
            result = data.get("res") or {}
            self._tell(
                {
                    "event": "runner_on_ok" if ignored else kind,
                    "host": data["host"],
                    "action": data.get("task_action", ""),
                    "result": {key: result[key] for key in RESULT if key in result},
                }
            )
        elif kind == "playbook_on_stats":
            stats = {
                node: {key: data.get(key, {}).get(node, 0) for key in STATS}
                for node in data.get("processed", {})
            }
            self._tell({"event": kind, "stats": stats})
        elif kind in {"verbose", "error", "warning", "playbook_on_no_hosts_matched"}:
            self._output += [line for line in event.get("stdout", "").splitlines() if line.strip()]
        return False

    def _tell(self, event: dict[str, Any]) -> None:
        try:
            self._events.write(json.dumps(event) + "\n")
            self._events.flush()
        except OSError:
            # nobody listens any more
            self.asked.set()

    def _cancelled(self) -> bool:
        """Ask ansible-playbook to end, which ends its workers; True lets the runner kill it."""
        # a parent that was killed cannot ask
        if not self.asked.is_set() and os.getppid() == self._parent:
            return False
        if self._playbook is None:
            return True
        if not self._give_up:
            self._give_up = time.monotonic() + SECONDS_TO_STOP
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._playbook, signal.SIGTERM)
        return time.monotonic() > self._give_up


def _precede(folder: Path) -> None:
    """Put before ansible-playbook a program that becomes it, and dies with this process."""
    folder.mkdir(mode=0o700)
    program = folder / PLAYBOOK
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{__file__}" {EXEC} "$@"\n')
    program.chmod(0o700)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"


def become_playbook(arguments: list[str]) -> None:
    """Become the real ansible-playbook, behind the folder that was put before it."""
    control(PR_SET_PDEATHSIG, signal.SIGTERM)
    os.environ["PATH"] = os.environ["PATH"].partition(os.pathsep)[2]
    os.execvp(PLAYBOOK, [PLAYBOOK, *arguments])  # noqa: S606 - no shell is the point


def descendants() -> list[int]:
    """Processes below this one; those whose parent ended are its children (Linux only)."""
    found: list[int] = []
    queue = [os.getpid()]
    while queue:
        process = queue.pop()
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{process}/task").glob("*/children"):
                queue += [int(word) for word in path.read_text().split()]
                found += [int(word) for word in path.read_text().split()]
    return found


def end_descendants() -> None:
    """Kill whatever a run left behind, and what that leaves behind."""
    until = time.monotonic() + SECONDS_TO_STOP
    while (left := descendants()) and time.monotonic() < until:
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def main() -> int:
    """Run the playbook that standard input asks for, for the parent that is named there."""
    if sys.argv[1:2] == [EXEC]:
        become_playbook(sys.argv[2:])
    settings: dict[str, Any] = json.load(sys.stdin)
    # whatever a library prints must not get between the events
    events = os.dup(1)
    os.dup2(2, 1)
    control(PR_SET_CHILD_SUBREAPER, 1)
    child = Child(settings, settings["parent"], events)
    signal.signal(signal.SIGTERM, lambda *_: child.asked.set())
    try:
        child.run()
    finally:
        end_descendants()
        shutil.rmtree(settings["folder"], ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
