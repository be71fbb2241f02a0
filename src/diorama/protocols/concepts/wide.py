"""Activations of many images, one row each: in memory, or in a file if they are too large."""

import tempfile

import numpy as np

from diorama.core.errors import InputError

#: The most bytes of activations that are kept in memory.
IN_MEMORY = 1 << 26


def empty_rows(n: int, d: int, spills: bool = True) -> np.ndarray:
    """An empty array (n, d) float32; with `spills`, a large one is mapped to an unlinked temporary file."""
    if not spills or 4 * n * d <= IN_MEMORY:
        return np.empty((n, d), np.float32)
    with tempfile.NamedTemporaryFile(prefix="diorama-activations-") as file:
        return np.memmap(file, np.float32, "w+", shape=(n, d))


class Activations:
    """Rows that are added in parts to `array` (count, d). Those that every case needs should spill: a file is not dropped
    when memory is short.
    """

    def __init__(self, count: int, spills: bool = False):
        self.count, self.at, self.spills = count, 0, spills
        self.array = np.empty((count, 0), np.float32)

    def add(self, part: np.ndarray) -> None:
        """The next rows."""
        if not self.at:
            self.array = empty_rows(self.count, part.shape[1], self.spills)
        if part.shape[1] != self.array.shape[1]:
            raise InputError("csm: images are of several sizes or the answers of several channel counts; one is needed")
        self.array[self.at : self.at + len(part)] = part
        self.at += len(part)
