"""The engine's command line, with a stand-in program in its place."""

import os
import signal
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from pulumi.automation import CommandError

from vela.operate import command
from vela.operate.command import EngineCommand, TooSlow


def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> EngineCommand:
    program = tmp_path / "bin" / "pulumi"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys, time, signal, pathlib\n"
        "if sys.argv[1:] == ['version']:\n    print('v3.274.1'); sys.exit()\n"
        + textwrap.dedent(body)
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return EngineCommand()


def test_output_and_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine(tmp_path, monkeypatch, "import os; print(sys.argv[1:], os.environ['COLOUR'])")
    seen: list[str] = []
    result = made.run(["preview"], str(tmp_path), {"COLOUR": "blue"}, seen.append)
    assert result.stdout == "['--non-interactive', 'preview'] blue"
    assert seen == [result.stdout]


def test_failure_is_the_automation_apis_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine(tmp_path, monkeypatch, "sys.stderr.write('boom\\n'); sys.exit(255)")
    with pytest.raises(CommandError, match="boom"):
        made.run(["up"], str(tmp_path), {})


def test_slow_engine_is_interrupted_once_and_may_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine(
        tmp_path,
        monkeypatch,
        """
        count = 0
        def stop(*_):
            global count
            count += 1
        signal.signal(signal.SIGINT, stop)
        while not count:
            time.sleep(0.02)
        time.sleep(0.5)
        pathlib.Path(sys.argv[-1]).write_text(str(count))
        """,
    )
    made.seconds = 0.3
    with pytest.raises(TooSlow):
        made.run(["up", str(tmp_path / "count")], str(tmp_path), {})
    assert (tmp_path / "count").read_text() == "1"


def test_engine_that_ignores_the_interrupt_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SECONDS_TO_STOP", 0.3)
    made = engine(
        tmp_path,
        monkeypatch,
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "pathlib.Path(sys.argv[-1]).write_text(str(__import__('os').getpid()))\ntime.sleep(60)",
    )
    made.seconds = 0.5
    begun = time.monotonic()
    with pytest.raises(TooSlow):
        made.run(["up", str(tmp_path / "pid")], str(tmp_path), {})
    assert time.monotonic() - begun < 10
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    made = engine(
        tmp_path,
        monkeypatch,
        """
        def stop(*_):
            time.sleep(0.3)
            pathlib.Path(sys.argv[-1]).write_text("state written")
            sys.exit(1)
        signal.signal(signal.SIGINT, stop)
        pathlib.Path(sys.argv[-1]).write_text("running")
        time.sleep(60)
        """,
    )
    mark = tmp_path / "mark"

    def interrupt() -> None:
        for _ in range(200):
            if mark.exists() and mark.read_text() == "running":
                break
            time.sleep(0.02)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        made.run(["up", str(mark)], str(tmp_path), {})
    assert mark.read_text() == "state written"


def test_a_terminals_ctrl_c_does_not_reach_the_engine_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine(tmp_path, monkeypatch, "import os; print(os.getsid(0) == os.getpid())")
    assert made.run(["up"], str(tmp_path), {}).stdout == "True"
