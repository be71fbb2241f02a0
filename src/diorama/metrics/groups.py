"""Rows that share the value of one factor, drawn from any sample: an incomplete grid will do."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The rows of every value of a factor: `order` lists them value by value, from `starts`, `counts` of each."""

    order: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    labels: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray) -> "Groups":
        """The groups of one column of labels."""
        counts = np.bincount(labels)
        return cls(np.argsort(labels, kind="stable"), np.cumsum(counts) - counts, counts, labels)

    def draw(self, points: int, batch: int, rng: np.random.Generator) -> np.ndarray:
        """Row numbers (points, batch): a random row's value at each point, then rows of that value with replacement."""
        value = self.labels[rng.integers(0, len(self.labels), points)]
        place = (rng.random((points, batch)) * self.counts[value][:, None]).astype(np.intp)
        return self.order[self.starts[value][:, None] + place]

    def pairs(self, points: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers of both members of `batch` pairs at each point: any row, and a row of the same value as that one."""
        first = rng.integers(0, len(self.labels), (points, batch))
        value = self.labels[first]
        place = (rng.random(first.shape) * self.counts[value]).astype(np.intp)
        return first, self.order[self.starts[value] + place]
