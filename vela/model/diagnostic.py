"""Errors in what a person wrote: file, line, column, the line itself, a caret, a hint."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_LONGEST_LINE = 160


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text; both figures count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error.

    Attributes:
        file: Name of the file as the user knows it.
        position: Where; None for an error of the file as a whole.
        source: The line of the file at that position, without its end.
        rule: Rule number such as ``VELA-NET-003``.
        message: What is wrong, one line.
        hint: How to mend it; empty where nothing is known.
    """

    file: str
    position: Position | None
    source: str
    rule: str
    message: str
    hint: str = ""

    def render(self) -> str:
        """Return the error as it is shown to a person, without a final newline."""
        if self.position is None:
            lines = [f"{self.file}: error {self.rule}: {self.message}"]
        else:
            line, column = self.position.line, self.position.column
            number = str(line)
            text, caret = _window(self.source, column)
            lines = [
                f"{self.file}:{line}:{column}: error {self.rule}: {self.message}",
                f"  {number} | {text}",
                f"  {' ' * len(number)} | {' ' * caret}^",
            ]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def _window(source: str, column: int) -> tuple[str, int]:
    """Cut a long line around a column, and give the caret's offset in what is left."""
    text = source.expandtabs(1)
    offset = column - 1
    if len(text) <= _LONGEST_LINE:
        return text, offset
    start = max(0, min(offset - _LONGEST_LINE // 2, len(text) - _LONGEST_LINE))
    cut = text[start : start + _LONGEST_LINE]
    if start:
        cut = "…" + cut[1:]
    if start + _LONGEST_LINE < len(text):
        cut = cut[:-1] + "…"
    return cut, offset - start


class InvalidInput(Exception):  # noqa: N818 - reads as what it is at the place where it is caught
    """What a person wrote is not usable; carries every error that was found."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Keep the diagnostics in the order of their place in the file."""
        self.diagnostics: Sequence[Diagnostic] = sorted(
            diagnostics, key=lambda d: (d.file, d.position or Position(0, 0), d.rule)
        )
        super().__init__("\n".join(d.render() for d in self.diagnostics))
