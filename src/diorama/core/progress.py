"""The type of progress callbacks: progress bars, log lines, launchers."""

from typing import Protocol


class Progress(Protocol):
    """A function that long work calls from time to time."""

    def __call__(self, done: int, total: int, doing: str = "", /) -> None:
        """How much is done, of how much, and in words what is being done."""
