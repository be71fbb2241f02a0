"""The function that long work calls to say how far it is; bars, lines in a log and launchers are such functions."""

from typing import Protocol


class Progress(Protocol):
    """Called while work goes on."""

    def __call__(self, done: int, total: int, doing: str = "", /) -> None:
        """How much is done, how much there is, and in words what is being done."""
