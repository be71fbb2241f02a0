"""Compares two methods on the same cases: mean difference with interval and p, wins, and a sign-flip test."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from diorama.core.scene import rng
from diorama.metrics.intervals import interval

#: Up to this many cases all 2ⁿ sign flips are tried; for more cases a seeded sample of them.
EXACT = 16
DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Paired:
    """b − a over shared cases. `better` counts the cases on which b is better.

    `p` belongs to the interval (bootstrap-t): it is at most 0.05 exactly if the interval excludes 0. `p_sign_flip` is that
    of another test of the same differences.
    """

    mean: float | None
    lo: float | None
    hi: float | None
    p: float | None
    p_sign_flip: float | None
    n: int
    better: int
    worse: int
    equal: int
    only_a: int
    only_b: int


def paired(a: dict[str, float], b: dict[str, float], direction: str, flips: bool = True) -> Paired:
    """Compare the values of two methods case by case; without `flips` the sign-flip test, which is slow, is left out.

    >>> found = paired({"x": 1.0, "y": 2.0, "z": 9.0}, {"x": 0.5, "y": 2.0, "w": 1.0}, "lower")
    >>> found.mean, found.better, found.equal, found.only_a, found.only_b
    (-0.25, 1, 1, 1, 1)
    """
    shared = [case for case in a if case in b]
    gaps = np.array([b[case] - a[case] for case in shared], float)
    sizes = np.array([max(abs(a[case]), abs(b[case])) for case in shared], float)
    gaps[np.abs(gaps) <= 1e-12 * sizes] = 0.0  # last bits, which differ between machines
    gains = -gaps if direction == "lower" else gaps
    mean = float(gaps.mean()) if len(gaps) else None
    ends = interval(gaps)
    better, worse = int((gains > 0).sum()), int((gains < 0).sum())
    alone = len(a) - len(shared), len(b) - len(shared)
    equal = len(shared) - better - worse
    second = sign_flip(gaps) if flips else None
    return Paired(mean, ends.lo, ends.hi, ends.p, second, len(shared), better, worse, equal, *alone)


def sign_flip(gaps: np.ndarray) -> float | None:
    """Two-sided p of the mean of paired differences under random signs.

    p = share of sign vectors s ∈ {−1, 1}ⁿ with |mean(s·d)| ≥ |mean(d)|, over all 2ⁿ (Fisher 1935) or a sample.

    >>> sign_flip(np.array([1.0, 2.0, 3.0]))
    0.25
    """
    if not len(gaps):
        return None
    seen, tried, beyond = abs(gaps.sum()), 0, 0
    for signs in _signs(len(gaps)):
        beyond += int((np.abs(signs @ gaps) >= seen * (1 - 1e-12)).sum())
        tried += len(signs)
    if len(gaps) <= EXACT:
        return beyond / tried
    return (beyond + 1) / (tried + 1)  # + 1: the observed signs


def _signs(n: int) -> Iterator[np.ndarray]:
    """Rows of signs; random ones a thousand at a time, to save memory."""
    if n <= EXACT:
        yield (np.arange(2**n)[:, None] >> np.arange(n) & 1) * 2.0 - 1.0
        return
    draw = rng("sign-flip", n)
    for _ in range(DRAWS // 1000):
        yield draw.integers(0, 2, (1000, n)) * 2.0 - 1.0
