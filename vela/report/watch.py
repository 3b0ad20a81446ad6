"""Progress of long work: a live line on a terminal, plain lines or silence elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from vela.operate.ansible import NodeEvent
from vela.operate.stack import Step


class Quiet:
    """Says nothing; for ``--json``."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""

    def say(self, text: str) -> None:
        """One line."""

    def phase(self, text: str, total: int | None = None) -> None:
        """A new part of the work."""

    def step(self, step: Step, phase: str) -> None:
        """A step of the cloud part."""

    def node(self, event: NodeEvent) -> None:
        """An event on a node."""

    def pause(self) -> None:
        """Leave the terminal to a question."""


class Plain(Quiet):
    """A line for each part of the work; for logs."""

    def __init__(self) -> None:
        """Begin the clock."""
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """One line."""
        print(f"[{time.monotonic() - self._begun:6.1f} s] {text}", file=sys.stderr, flush=True)  # noqa: T201

    def phase(self, text: str, total: int | None = None) -> None:
        """A new part of the work."""
        self.say(text if total is None else f"{text} ({total})")


class Live(Quiet):
    """A bar that moves; for terminals."""

    def __init__(self, console: Console) -> None:
        """Show on a console."""
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[detail]}"),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        """Begin."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._progress.stop()

    def pause(self) -> None:
        """Leave the terminal to a question."""
        self._progress.stop()

    def say(self, text: str) -> None:
        """One line."""
        self._progress.console.print(f"[dim]{text}[/]", highlight=False)

    def phase(self, text: str, total: int | None = None) -> None:
        """A new part of the work."""
        self._progress.start()
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(text, total=total, detail="")

    def step(self, step: Step, phase: str) -> None:
        """A step of the cloud part."""
        if self._task is None or not step.is_resource or step.op in {"same", "refresh", "read"}:
            return
        self._progress.update(
            self._task,
            advance=0 if phase == "begin" else 1,
            detail=f"{step.op} {step.name}",
        )

    def node(self, event: NodeEvent) -> None:
        """An event on a node."""
        if self._task is not None:
            self._progress.update(self._task, advance=1, detail=event.node)


def watcher(*, quiet: bool) -> Quiet:
    """The watcher for this terminal, or for none."""
    if quiet:
        return Quiet()
    console = Console(stderr=True)
    return Live(console) if console.is_terminal else Plain()
