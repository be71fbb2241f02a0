"""Which differences between methods are real: the best of a section against every other, and how many cases are needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from diorama.core.record import bounds
from diorama.metrics.intervals import LEAST, interval

if TYPE_CHECKING:
    from diorama.report.sections import Line, Section

#: Normal quantiles of a two-sided test at 5 % and of a power of 80 %.
LEVEL, POWER = 1.959964, 0.841621
#: If more cases than this would be needed, no number is given: the methods are practically equal.
MOST = 100_000


@dataclass(frozen=True, slots=True)
class Gap:
    """How far the best method of a section is ahead of another (positive: ahead), over `n` shared cases.

    `lo` and `hi` are the 95 % interval of the paired difference. A metric of the whole cell has no pairs: its interval is
    computed from those of both methods. `wanted` is the number of cases that would show the difference with a power of
    80 %, if it is as large as it seems.
    """

    best: Line
    other: Line
    mean: float
    lo: float | None
    hi: float | None
    n: int
    wanted: int | None

    @property
    def real(self) -> bool:
        """Whether the interval excludes 0."""
        return self.lo is not None and self.lo > 0

    @property
    def open(self) -> bool:
        """Whether the two are not distinguished: the interval contains 0, or there is none."""
        return not self.real


def gaps(section: Section) -> list[Gap]:
    """The best method against each other method that has a mean, in order."""
    ranked = [line for line in section.methods if line.mean is not None]
    return [_gap(section, ranked[0], other) for other in ranked[1:]]


def _gap(section: Section, best: Line, other: Line) -> Gap:
    sign = -1.0 if section.direction == "lower" else 1.0
    a, b = other.values(), best.values()
    if not a or not b:
        return _unpaired(best, other, sign)
    shared = [case for case in a if case in b]
    found = sign * np.array([b[case] - a[case] for case in shared], float)
    if not len(found):
        return Gap(best, other, sign * ((best.mean or 0.0) - (other.mean or 0.0)), None, None, 0, None)
    ends, mean = interval(found).within(*reach(section)), float(found.mean())
    deviation = float(found.std(ddof=1)) if len(found) > 1 else None
    return Gap(best, other, mean, ends.lo, ends.hi, len(found), cases_wanted(mean, deviation))


def reach(section: Section) -> tuple[float, float]:
    """The least and the greatest difference that two values of the leading metric can have."""
    lo, hi = bounds(section.some.manifest, section.metric)
    return (-math.inf, math.inf) if lo is None or hi is None else (lo - hi, hi - lo)


def _unpaired(best: Line, other: Line, sign: float) -> Gap:
    """The gap in a metric of the whole cell: from the two intervals, as if they were independent."""
    mean, n = sign * ((best.mean or 0.0) - (other.mean or 0.0)), best.cell.cases - best.cell.missing
    sides = [_half(line) for line in (best, other)]
    if None in sides:
        return Gap(best, other, mean, None, None, n, None)
    half = math.hypot(*sides)  # type: ignore[arg-type]
    return Gap(best, other, mean, mean - half, mean + half, n, cases_wanted(mean, half / LEVEL * math.sqrt(n)))


def _half(line: Line) -> float | None:
    lo, hi = line.primary["lo"], line.primary["hi"]
    return None if lo is None or hi is None else (hi - lo) / 2


def cases_wanted(mean: float, deviation: float | None) -> int | None:
    """n = ((z₀.₉₇₅ + z₀.₈) · s / |d|)²: cases for a paired test of a mean difference d with standard deviation s.

    >>> cases_wanted(0.1, 0.2), cases_wanted(0.0, 0.2), cases_wanted(0.1, None)
    (32, None, None)
    """
    if deviation is None or not mean:
        return None
    wanted = max(((LEVEL + POWER) * deviation / mean) ** 2, LEAST)
    return math.ceil(wanted) if wanted < MOST else None
