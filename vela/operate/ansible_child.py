"""The process that ansible-runner runs in: settings come as JSON, events go as JSON lines.

A process of its own, because the runner writes its whole environment into files, replaces
signal handlers, and reads leftovers of an earlier run in the same folder.
"""

import json
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import ansible_runner

KEPT = {"runner_on_ok", "runner_on_failed", "runner_on_unreachable"}
STATS = ("ok", "changed", "dark", "failures", "skipped")


def main() -> int:
    """Run the playbook that standard input asks for."""
    settings: dict[str, Any] = json.load(sys.stdin)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    parent = os.getppid()

    def cancelled() -> bool:
        # a parent that was killed cannot ask
        return stopped.is_set() or os.getppid() != parent

    mode = "--check --diff" if settings["check"] else "--diff"
    with tempfile.TemporaryDirectory(prefix="vela-ansible-") as folder:
        Path(folder).chmod(0o700)
        runner = ansible_runner.run(
            private_data_dir=folder,
            playbook=settings["playbook"],
            inventory=settings["inventory"],
            project_dir=str(Path(settings["playbook"]).parent),
            cmdline=mode,
            forks=settings["forks"],
            limit=",".join(settings["limit"]) or None,
            settings={"pexpect_timeout": 1, "suppress_ansible_output": True},
            quiet=True,
            event_handler=_tell,
            cancel_callback=cancelled,
        )
        _write({"event": "command", "command": list(runner.config.command)})
    return 0


def _tell(event: dict[str, Any]) -> bool:
    """Pass an event on in short; False keeps the runner from writing it to a file."""
    kind = event["event"]
    data = event.get("event_data", {})
    if kind in KEPT:
        result = data.get("res") or {}
        short = {key: result[key] for key in ("changed", "changes", "msg") if key in result}
        ignored = data.get("ignore_errors")
        _write(
            {
                "event": "runner_on_ok" if ignored else kind,
                "host": data["host"],
                "action": data.get("task_action"),
                "result": short,
            }
        )
    elif kind == "playbook_on_stats":
        nodes = data.get("processed", {})
        stats = {node: {key: data.get(key, {}).get(node, 0) for key in STATS} for node in nodes}
        _write({"event": kind, "stats": stats})
    return False


def _write(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
