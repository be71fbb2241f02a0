"""Activations of many images, one row each: in memory, or in a file where they are too many."""

import tempfile

import numpy as np

from diorama.core.errors import InputError

#: Bytes of activations that are held in memory.
HELD = 1 << 26


def room(n: int, d: int, spills: bool = True) -> np.ndarray:
    """An empty array (n, d) float32; a large one that `spills` lies in a file without a name, which is gone with it."""
    if not spills or 4 * n * d <= HELD:
        return np.empty((n, d), np.float32)
    with tempfile.NamedTemporaryFile(prefix="diorama-activations-") as file:
        return np.memmap(file, np.float32, "w+", shape=(n, d))


class Rows:
    """Rows that come in parts; `array` (count, d) has those that came. What is asked for in every case `spills`: a file is
    not let go when memory is short.
    """

    def __init__(self, count: int, spills: bool = False):
        self.count, self.at, self.spills = count, 0, spills
        self.array = np.empty((count, 0), np.float32)

    def add(self, part: np.ndarray) -> None:
        """The next rows."""
        if not self.at:
            self.array = room(self.count, part.shape[1], self.spills)
        if part.shape[1] != self.array.shape[1]:
            raise InputError("csm: images are of several sizes or the answers of several channel counts; one is needed")
        self.array[self.at : self.at + len(part)] = part
        self.at += len(part)
