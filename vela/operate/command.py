"""Runs Pulumi's command line for the Automation API, with a time limit and an orderly stop."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from pulumi.automation import CommandResult, PulumiCommand
from pulumi.automation.errors import create_command_error

SECONDS_TO_STOP = 120
"""How long the engine may take to write its state after it was asked to stop."""


class TooSlow(Exception):  # noqa: N818 - turned into a Failure by the caller
    """The engine did not end within its limit, and was stopped."""


class EngineCommand(PulumiCommand):
    """``pulumi`` in a session of its own.

    Ctrl-C then reaches us alone, and we pass on exactly one interrupt: at a second one the
    engine would drop what is under way. SIGTERM is treated the same.
    """

    seconds: float = 3600
    """Limit of each command."""

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: Callable[[str], object] | None = None,
        on_error: Callable[[str], object] | None = None,
    ) -> CommandResult:
        """Run one command; the arguments are the Automation API's.

        Raises:
            CommandError: The command failed.
            TooSlow: It did not end in time.
            KeyboardInterrupt: We were interrupted; the engine has ended.
        """
        process = subprocess.Popen(
            [self.command, "--non-interactive", *args],
            cwd=cwd,
            env={**os.environ, **additional_env, "PULUMI_AUTOMATION_API": "true"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        with process:
            out, err = _Reader(process.stdout, on_output), _Reader(process.stderr, on_error)
            with _sigterm_interrupts():
                stopped = _wait(process, self.seconds)
            out.join(5)
            err.join(5)
        if stopped:
            raise stopped
        result = CommandResult(
            stdout="\n".join(out.lines), stderr="\n".join(err.lines), code=process.returncode
        )
        if result.code:
            raise create_command_error(result)
        return result


class _Reader(threading.Thread):
    """Collects the lines of a pipe."""

    def __init__(self, pipe: IO[str] | None, on_line: Callable[[str], object] | None) -> None:
        super().__init__(daemon=True)
        self.lines: list[str] = []
        self._pipe = pipe
        self._on_line = on_line
        self.start()

    def run(self) -> None:
        for line in self._pipe or ():
            self.lines.append(line.rstrip())
            if self._on_line:
                self._on_line(self.lines[-1])


def _wait(process: "subprocess.Popen[str]", seconds: float) -> BaseException | None:
    """Wait for the end; gives what the caller must raise when the end was not its own."""
    reason: BaseException | None = None
    limit = time.monotonic() + seconds
    while True:
        try:
            process.wait(max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            if reason:
                _signal(process, signal.SIGKILL)
                process.wait()
                return reason
            reason = TooSlow()
        except KeyboardInterrupt as interrupt:
            if reason:
                continue
            reason = interrupt
        else:
            return reason
        _signal(process, signal.SIGINT)
        limit = time.monotonic() + SECONDS_TO_STOP


def _signal(process: "subprocess.Popen[str]", number: signal.Signals) -> None:
    """An interrupt goes to the engine alone, which tells its plugins; a kill goes to all."""
    with suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
