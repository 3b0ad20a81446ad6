"""Starting, finding and stopping a simulator that runs by itself."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from lab.cloud import environment

SECONDS_TO_START = 20
SECONDS_TO_STOP = 10


class ControlError(Exception):
    """The simulator could not be started or stopped."""


def status(folder: Path) -> dict[str, Any]:
    """What the simulator of a folder says; without ``url`` when it does not run."""
    try:
        ready = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        with urllib.request.urlopen(f"{ready['url']}/_lab/state", timeout=5) as answer:  # noqa: S310
            state = json.load(answer)
    except (OSError, ValueError, KeyError):
        return {}
    return {**ready, **state, "environment": environment(ready["url"])}


def start(folder: Path) -> dict[str, Any]:
    """Start the simulator of a folder, unless it runs.

    The port stays the same from start to start where it is free, since addresses of resources
    hold it.

    Raises:
        ControlError: It does not come up; with its last words.
    """
    running = status(folder)
    if running:
        return running
    folder.mkdir(parents=True, exist_ok=True)
    errors = folder / "server.log"
    with errors.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.cloud", "serve", "--dir", str(folder)],
            cwd=Path(__file__).resolve().parents[2],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    limit = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < limit:
        running = status(folder)
        if running.get("pid") == process.pid or (running and process.poll() is not None):
            return running
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise ControlError(errors.read_text(encoding="utf-8").strip() or "it did not start in time")


def stop(folder: Path) -> dict[str, Any]:
    """Stop the simulator of a folder; its state is kept.

    Raises:
        ControlError: It does not end.
    """
    running = status(folder)
    if not running:
        return {}
    pid = int(running["pid"])
    os.kill(pid, signal.SIGTERM)
    limit = time.monotonic() + SECONDS_TO_STOP
    while time.monotonic() < limit:
        if not _alive(pid):
            return {}
        time.sleep(0.05)
    message = f"process {pid} does not end"
    raise ControlError(message)


def _alive(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
