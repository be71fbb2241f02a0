"""How far work is, as those are told who want to know: bars, lines in a log, launchers."""

from typing import Protocol


class Progress(Protocol):
    """Called while work goes on."""

    def __call__(self, done: int, total: int, doing: str = "", /) -> None:
        """How much is done, how much there is, and in words what is being done."""
