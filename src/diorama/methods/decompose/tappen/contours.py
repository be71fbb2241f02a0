"""A Markov random field over gradients: neighbours on one contour should carry one label; loopy belief propagation.

One binary node per gradient, with evidence e = log p/(1 − p). Between neighbouring gradients a and b of the same direction
the compatibility is [[β, 1 − β], [1 − β, β]]. Messages are log-odds, and the sum–product update has a closed form:

    m_{a→b} = 2 artanh((2β − 1) · tanh((e_a + Σ_{c ≠ b} m_{c→a}) / 2))
"""

from dataclasses import dataclass

import numpy as np

from diorama.solvers.poisson import Edges

_STEPS = ((0, 1), (1, 0), (1, 1), (1, -1))


@dataclass(frozen=True, slots=True)
class Field:
    """Pairs of neighbouring gradients and their coupling 2β − 1, between 0 (independent) and 1 (equal)."""

    first: np.ndarray
    second: np.ndarray
    coupling: np.ndarray

    @classmethod
    def of(cls, edges: Edges, along: np.ndarray, across: np.ndarray, beta: float, strength: float) -> "Field":
        """The field of a mask from the image gradient at every edge, along the edge's own difference and across it.

        2β − 1 = (2·beta − 1) · (t̂·d)²_a · (t̂·d)²_b · m/(m + strength), with t̂ the direction of the contour (across the
        gradient), d that of the pair, and m the smaller gradient magnitude of the two.
        """
        magnitude = np.hypot(along, across)
        unit = np.stack([along, across]) / np.maximum(magnitude, 1e-12)
        vertical = np.arange(len(along)) < edges.vertical
        down, right = np.where(vertical, unit, unit[::-1])  # the image's own axes
        pairs = []
        for dy, dx in _STEPS:
            a, b = neighbours(edges, dy, dx)
            tangent = (right * dy - down * dx) ** 2 / (dy * dy + dx * dx)
            m = np.minimum(magnitude[a], magnitude[b])
            pairs.append((a, b, (2 * beta - 1) * tangent[a] * tangent[b] * m / (m + strength)))
        first, second, coupling = map(np.concatenate, zip(*pairs, strict=True))
        bound = coupling > 0.02  # weaker pairs change nothing and cost time
        return cls(first[bound], second[bound], coupling[bound])

    def propagate(self, evidence: np.ndarray, iterations: int = 30, damping: float = 0.5) -> np.ndarray:
        """The log-odds of every node after `iterations` rounds in which all messages are updated at once, with `damping`.

        >>> chain = Field(np.array([0, 1]), np.array([1, 2]), np.array([0.8, 0.8]))
        >>> (chain.propagate(np.array([2.0, -0.1, 2.0])) > 0).tolist()
        [True, True, True]
        """
        forth, back = np.zeros((2, len(self.coupling)))  # messages to the second node of a pair, and to the first
        for _ in range(iterations):
            belief = self._belief(evidence, forth, back)
            forth, back = (
                damping * old + (1 - damping) * self._message(belief[node] - other)
                for old, node, other in ((forth, self.first, back), (back, self.second, forth))
            )
        return self._belief(evidence, forth, back)

    def _belief(self, evidence: np.ndarray, forth: np.ndarray, back: np.ndarray) -> np.ndarray:
        count = len(evidence)
        return evidence + np.bincount(self.second, forth, count) + np.bincount(self.first, back, count)

    def _message(self, cavity: np.ndarray) -> np.ndarray:
        return 2 * np.arctanh(self.coupling * np.tanh(cavity / 2))


def neighbours(edges: Edges, dy: int, dx: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (a, b) of edges of one direction where b lies (dy, dx) pixels from a."""
    pairs = []
    height, width = edges.mask.shape
    pixel = np.flatnonzero(edges.mask)
    for part in (slice(0, edges.vertical), slice(edges.vertical, None)):
        number = np.full((height + 2, width + 2), -1)  # a margin, so that no step leaves the grid
        y, x = np.divmod(pixel[edges.first[part]], width)
        number[y + 1, x + 1] = np.arange(len(edges.first))[part]
        b = number[y + 1 + dy, x + 1 + dx]
        pairs.append(np.stack([number[y + 1, x + 1], b])[:, b >= 0])
    a, b = np.concatenate(pairs, axis=1)
    return a, b
