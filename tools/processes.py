"""Processes that the engine leaves behind, and what a provider said before it died."""

import ctypes
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Set
from pathlib import Path

SECONDS_TO_END = 5
_PR_SET_CHILD_SUBREAPER = 36
_FRAMES = 6
_FRAME = re.compile(r"terraform-provider-ibm.*\.go:\d+")


def adopt_orphans() -> bool:
    """Become the parent of processes whose parent, a child of ours, ends before them.

    Returns:
        Whether the system can do this; Linux can.
    """
    if not sys.platform.startswith("linux"):
        return False
    result: int = ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return result == 0


def end_leftovers(names: Set[str]) -> int:
    """End children of this process by program name (its first 15 characters).

    Works on processes that :func:`adopt_orphans` made children of ours, so another person's or
    another run's provider is never touched.

    Returns:
        How many were ended.
    """
    leftovers = [pid for pid, name in _children() if name in names]
    for pid in leftovers:
        _signal(pid, signal.SIGTERM)
    limit = time.monotonic() + SECONDS_TO_END
    waiting = list(leftovers)
    while waiting and time.monotonic() < limit:
        waiting = [pid for pid in waiting if not _collected(pid)]
        if waiting:
            time.sleep(0.02)
    for pid in waiting:
        _signal(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(leftovers)


def _children() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        name, rest = stat[stat.index("(") + 1 :].rsplit(")", 1)
        if int(rest.split()[1]) == os.getpid():
            yield int(folder.name), name


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _collected(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def last_panic(log: Path) -> str | None:
    """The last panic in a provider's log: its message, and where in the provider it was.

    Args:
        log: File of the provider's standard error.

    Returns:
        Some lines of text; None where there was no panic.
    """
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    place = max(text.rfind("\npanic: "), 0 if text.startswith("panic: ") else -1)
    if place < 0:
        return None
    lines = text[place:].strip().splitlines()
    frames = [
        line.strip() for line in lines if re.search(r"terraform-provider-ibm.*\.go:\d+", line)
    ]
    return "\n".join([lines[0], *frames[:_FRAMES]])
