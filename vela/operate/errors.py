"""The error of everything that can go wrong while running."""


class Failure(Exception):  # noqa: N818 - what a command ends with, not a fault of the code
    """A command cannot go on.

    Attributes:
        message: What went wrong, for a person.
        hint: What to do next; empty where nothing is known.
        detail: Longer text, such as the tail of a log.
    """

    def __init__(self, message: str, hint: str = "", detail: str = "") -> None:
        """Take the texts."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail


class Busy(Failure):
    """Another run holds the environment."""
