"""What a disentanglement score would be by chance, and how far it moves with the sample: one place for all scores.

The null permutes the rows of the codes, so that codes and factors keep their own distributions but are unrelated. The
interval is value ± 1.96 · the standard deviation over bootstrap samples of rows, not their percentiles: resampled rows
repeat, which lifts every score that counts coincidences, so that the percentiles may miss the value itself.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

Score = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True, slots=True)
class Null:
    """Mean and 95th percentile of a score over permuted codes; NaN draws are left out and counted."""

    mean: float
    high: float
    undefined: int


def null(
    score: Score, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator, draws: int = 20, threads: int = 1
) -> Null:
    """The score of codes whose rows are permuted against the factors.

    With several threads the score must not draw from `rng` itself; the result is the same with any number.

    >>> flip = lambda z, g: float((z[:, 0] == g[:, 0]).mean())
    >>> g = np.arange(1000)[:, None] % 2
    >>> bool(abs(null(flip, g, g, np.random.default_rng(0)).mean - 0.5) < 0.02)
    True
    """
    orders = (rng.permutation(len(codes)) for _ in range(draws))
    scores = np.array(_each(lambda order: score(codes[order], factors), orders, threads))
    known = scores[~np.isnan(scores)]
    if not len(known):
        return Null(float("nan"), float("nan"), draws)
    return Null(float(known.mean()), float(np.quantile(known, 0.95)), draws - len(known))


def interval(
    score: Score,
    codes: np.ndarray,
    factors: np.ndarray,
    rng: np.random.Generator,
    draws: int = 20,
    threads: int = 1,
    value: float | None = None,
) -> tuple[float, float]:
    """The 95 % interval of a score by the bootstrap standard error over rows; NaN if fewer than two draws have a value.

    `value` is the score of all rows, if it is known already. `threads` as in `null`.

    >>> interval(lambda z, g: 1.0, np.zeros((4, 1)), np.zeros((4, 1)), np.random.default_rng(0))
    (1.0, 1.0)
    """
    value = score(codes, factors) if value is None else value
    samples = (rng.integers(0, len(codes), len(codes)) for _ in range(draws))
    scores = np.array(_each(lambda rows: score(codes[rows], factors[rows]), samples, threads))
    known = scores[~np.isnan(scores)]
    error = 1.96 * float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return value - error, value + error


def _each(score: Callable[[np.ndarray], float], drawn: Iterator[np.ndarray], threads: int) -> list[float]:
    """The score of every sample, in order. With one thread a sample is drawn only when the one before it is scored."""
    if threads == 1:
        return [score(rows) for rows in drawn]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(score, drawn))
