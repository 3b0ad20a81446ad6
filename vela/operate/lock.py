"""One run at a time on an environment, and a word on who runs.

The lock is the kernel's (flock), so it ends with its holder, however that dies; the file's
content only says who holds it.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from vela.operate.errors import Busy
from vela.operate.project import private


@contextmanager
def held(folder: Path, name: str, command: str) -> Iterator[None]:
    """Hold the lock of an environment.

    Args:
        folder: Our folder of the environment.
        name: Environment.
        command: What the holder does, for the message of another run.

    Raises:
        Busy: A living process holds it; the message names it.
    """
    path = private(folder) / "lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _busy(name, os.pread(handle, 4096, 0)) from None
        holder = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "command": command,
            "since": int(time.time()),
        }
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(holder).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _busy(name: str, raw: bytes) -> Busy:
    try:
        holder = json.loads(raw)
        since = datetime.fromtimestamp(holder["since"]).astimezone().strftime("%H:%M:%S")
        who = f"`{holder['command']}`, process {holder['pid']} on {holder['host']}, since {since}"
    except (ValueError, KeyError, TypeError):
        who = "another run that has just begun"
    return Busy(
        f"environment {name} is held by {who}",
        "wait for it to end; a lock ends with its process, so there is nothing to remove",
    )
