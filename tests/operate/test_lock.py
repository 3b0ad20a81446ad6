import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vela.operate.errors import Busy
from vela.operate.lock import held

HOLD = """
import sys, time
from pathlib import Path
from vela.operate.lock import held
with held(Path(sys.argv[1]), "local", "vela up local"):
    print("held", flush=True)
    time.sleep(60)
"""


def holder(folder: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_second_run_says_who_holds_the_lock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(Busy) as caught, held(tmp_path, "local", "vela drift local"):
            pass
    finally:
        process.kill()
        process.wait()
    assert caught.value.message.startswith(
        f"environment local is held by `vela up local`, process {process.pid} on "
    )


def test_lock_of_a_killed_run_is_free(tmp_path: Path) -> None:
    process = holder(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    begun = time.monotonic()
    with held(tmp_path, "local", "vela up local"):
        assert f'"pid": {os.getpid()}' in (tmp_path / "lock").read_text()
    assert time.monotonic() - begun < 5


def test_lock_is_private_and_empty_afterwards(tmp_path: Path) -> None:
    with held(tmp_path, "local", "vela up local"):
        pass
    path = tmp_path / "lock"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == ""
