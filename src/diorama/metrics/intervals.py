"""95 % intervals: of means and other statistics by the bootstrap-t, of shares by Wilson's formula.

The bootstrap-t resamples values and divides the deviation of each resample by that resample's own error (Efron 1981).

For a value θ with standard error e, resample b gives t_b = (θ_b − θ)/e_b, and θ − t_b·e is a candidate for a bound: the
2.5 % and 97.5 % points of the candidates are the interval, and p is the smallest level whose interval excludes 0. From five
cases on its coverage is about the nominal one, for skewed values too, unlike that of percentiles of θ_b.

With few cases some resamples have next to no spread, and their t_b explodes: |t_b| is cut at Student's 99.95 % point. A
resample without any spread (all draws hit equal values) gives a sign but no size: it gets a random quantile of Student's
distribution beyond 97.5 %. Without these two rules intervals of three cases would cover the truth .82 of the time and be up
to 600 times too wide.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

#: One less than a multiple of 40, so that both points of the interval are candidates themselves.
RESAMPLES = 4_999
#: With fewer cases there is no interval.
LEAST = 3
#: The quantiles of Student's distribution between which a resample without spread is put; the upper one limits all others.
TAIL = (0.975, 0.9995)
#: Resamples with a spread below this share of the sample's have none.
FLAT = 1e-6
#: Resamples of at most so many counts are kept for the next call; larger ones are drawn again, in blocks of this size.
KEPT = 2**22


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, and the smallest level at which the interval excludes 0: p ≤ 0.05 exactly if 0 is not inside."""

    lo: float | None = None
    hi: float | None = None
    p: float | None = None

    def within(self, low: float | None, high: float | None) -> "Interval":
        """The interval cut to a range; None is no limit."""
        if self.lo is None or self.hi is None:
            return self
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        return Interval(min(max(self.lo, low), high), min(max(self.hi, low), high), self.p)


def interval(values: np.ndarray) -> Interval:
    """The interval of the mean over cases; the same values give the same interval. None below three cases.

    >>> interval(np.array([1.0, 1.0, 1.0])).lo, interval(np.array([1.0, 2.0])).lo
    (1.0, None)
    """
    values = np.asarray(values, float)
    if len(values) < LEAST:
        return Interval()
    if np.ptp(values) == 0:
        return _exactly(float(values.mean()))
    return _from_candidates(candidates(values[None])[:, 0])


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share right/count (Wilson 1927).

    >>> [round(v, 4) for v in wilson(1900, 2000)]
    [0.9396, 0.9587]
    """
    z, rate = 1.959964, right / count
    centre = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (rate * (1 - rate) / count + z * z / (4 * count * count)) ** 0.5
    return centre - half, centre + half


def candidates(samples: np.ndarray) -> np.ndarray:
    """Each resample's candidate for a bound of the mean of every sample (samples, n): (resamples, samples)."""
    means, n = samples.mean(axis=1), samples.shape[1]
    centred = (samples - means[:, None]).T
    both = np.hstack([centred, centred**2])
    sums = np.concatenate([block @ both for block in resamples(n)]) / n
    shifts, squares = sums[:, : len(means)], sums[:, len(means) :]
    errors = np.sqrt(np.maximum(squares - shifts**2, 0) / (n - 1))
    error = samples.std(axis=1, ddof=1) / np.sqrt(n)
    return means - studentised(shifts, errors, error, n) * error


def studentised(shifts: np.ndarray, errors: np.ndarray, error: np.ndarray | float, n: int) -> np.ndarray:
    """t = shift/error of every resample of n cases, with the two rules for resamples of little and of no spread."""
    tails, furthest = _student(n)
    tails = tails.reshape(-1, *[1] * (shifts.ndim - 1))
    flat = errors <= FLAT * np.asarray(error)
    t = shifts / np.where(flat, 1, errors)
    return np.where(flat, np.sign(shifts) * tails, np.clip(t, -furthest, furthest))


def of_statistic(value: float, error: float, shifts: np.ndarray, errors: np.ndarray, n: int) -> Interval:
    """The interval of any statistic of n cases from its shift and standard error in every resample; NaN are left out."""
    known = ~(np.isnan(shifts) | np.isnan(errors))
    if n < LEAST or known.mean() < 0.5:
        return Interval()
    rounding = 1e-12 * max(abs(value), float(np.abs(shifts[known]).max()))
    if not error > rounding:  # nothing varies, or a NaN
        return _exactly(value) if error <= rounding and np.abs(shifts[known]).max() <= rounding else Interval()
    t = studentised(np.where(known, shifts, 0), np.where(known, errors, 1), error, n)[known]
    return _from_candidates(value - t * error)


def moves_of(values: np.ndarray, means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """How far each case moves the weighted mean of the values that are not NaN, (lines, cases), by its influence."""
    known = ~np.isnan(values)
    share = np.maximum((weights * known).mean(axis=1, keepdims=True), 1e-12)
    return np.where(known, values - means[:, None], 0 * means[:, None]) / share


def standard_error(weights: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """The standard error of a statistic that each case moves by `moves` (infinitesimal jackknife), for every line of
    weights; that of a mean is sd/√n.

    >>> values = np.array([[1.0, 2.0, 6.0]])
    >>> standard_error(np.ones((1, 3)), values - 3).round(3), round(values.std(ddof=1) / 3**0.5, 3)
    (array([1.528]), np.float64(1.528))
    """
    cases = weights.shape[1]
    return np.sqrt(np.einsum("bi,bi,bi->b", weights, moves, moves) / max(cases * (cases - 1), 1))


def resamples(n: int) -> Iterator[np.ndarray]:
    """How often each of n cases is drawn, (resamples, n) in blocks."""
    if n * RESAMPLES <= KEPT:
        yield _kept(n)
        return
    size = max(KEPT // n, 1)
    for start in range(0, RESAMPLES, size):
        yield _counts(n, start, min(size, RESAMPLES - start))


@lru_cache(maxsize=8)
def _kept(n: int) -> np.ndarray:
    return _counts(n, 0, RESAMPLES)


def _counts(n: int, start: int, size: int) -> np.ndarray:
    drawn = _stream("bootstrap-t", n, start).integers(0, n, (size, n))
    places = drawn + n * np.arange(size)[:, None]
    return np.bincount(places.ravel(), minlength=size * n).reshape(size, n).astype(float)


@lru_cache(maxsize=64)
def _student(n: int) -> tuple[np.ndarray, float]:
    """A value in the tail of Student's distribution for every resample, and the largest that any may have."""
    from scipy.special import stdtrit

    places = _stream("bootstrap-t", n, "tails").uniform(*TAIL, RESAMPLES)
    return stdtrit(n - 1, places), float(stdtrit(n - 1, TAIL[1]))


def _stream(*parts: str | int) -> np.random.Generator:
    """A generator that is a function of the parts, the one that `diorama.rng` gives."""
    name = json.dumps(parts, separators=(",", ":")).encode()
    return np.random.Generator(np.random.Philox(key=int(hashlib.blake2b(name, digest_size=16).hexdigest(), 16)))


def _from_candidates(bounds: np.ndarray) -> Interval:
    """The ends by rank and p by counting; both are read from the same candidates, so that they agree exactly."""
    last = len(bounds) + 1
    rank = max(int(0.025 * last + 1e-9), 1)
    ends = np.partition(bounds, (rank - 1, len(bounds) - rank))
    beyond = min(int((bounds <= 0).sum()), int((bounds >= 0).sum()))
    return Interval(float(ends[rank - 1]), float(ends[len(bounds) - rank]), min(1.0, 2 * (1 + beyond) / last))


def _exactly(value: float) -> Interval:
    return Interval(value, value, 1.0 if value == 0 else 2 / (RESAMPLES + 1))
