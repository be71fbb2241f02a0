"""Summaries: from rows to means with intervals and counts. Pure: no model, no world, no files."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from diorama.core.contracts import Bounds, Direction
from diorama.core.folds import leave_one_out
from diorama.core.rows import AS_ZERO, Row
from diorama.metrics.intervals import interval


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean over the cases with a value, its 95 % interval (bootstrap-t over cases), and the count of every status.

    `std` is the standard deviation over cases (n − 1), of at least two. Cases that are undefined but counted as 0 are in
    the mean and in `n_undefined`.
    """

    mean: float | None
    lo: float | None
    hi: float | None
    n_ok: int
    n_undefined: int
    n_excluded: int
    n_error: int
    std: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The summary as a JSON value."""
        return asdict(self)


def summarise(rows: Iterable[Row], within: Bounds = (None, None)) -> Summary:
    """The summary of one metric's rows, each with a single value; the interval is clipped to the range `within`.

    >>> summarise([Row("c", "a", "m", 1.0), Row("c", "b", "m", None, "error", "why")]).mean
    1.0
    """
    rows = list(rows)
    values = np.array([row.value for row in rows if row.status == "ok"], float)
    counts = Counter(row.status for row in rows)
    mean = float(values.mean()) if len(values) else None
    low, high = (end if end is None else reach([end, *values]) for end, reach in zip(within, (min, max), strict=True))
    ends = interval(values).within(low, high)  # a value out of the declared range widens it
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    zeros = sum(row.status == "ok" and row.reason.startswith(AS_ZERO) for row in rows)
    ok, undefined = len(values) - zeros, counts["undefined"] + zeros
    return Summary(mean, ends.lo, ends.hi, ok, undefined, counts["excluded"], counts["error"], std)


@dataclass(frozen=True, slots=True)
class Settled:
    """A cell's rows with one value per case and metric, and the grid point chosen for each case."""

    rows: list[Row]
    chosen: dict[str, int]


def settle(rows: Sequence[Row], metric: str, direction: Direction) -> Settled:
    """Choose a grid point for each case by `metric` over the other cases, and take the values at that point.

    Rows without a grid stay unchanged. A failed case does not take part in the choice for other cases.
    """
    tuned = [row for row in rows if row.metric == metric and isinstance(row.value, list)]
    if not any(isinstance(row.value, list) for row in rows):
        return Settled(list(rows), {})
    if len(tuned) < 2:
        why = "the parameter is chosen on the other cases, and there is no other case; give a value or more cases"
        return Settled([_undefined(row, why) if isinstance(row.value, list) else row for row in rows], {})
    points = leave_one_out(np.array([row.value for row in tuned], float), direction)
    chosen = {row.case: int(point) for row, point in zip(tuned, points, strict=True)}
    return Settled([_at(row, chosen, len(tuned[0].value)) for row in rows], chosen)  # type: ignore[arg-type]


def _at(row: Row, chosen: dict[str, int], points: int) -> Row:
    if not isinstance(row.value, list):
        return row
    if row.case not in chosen:
        return _undefined(row, "no point of the grid could be chosen for this case")
    return pick(row, chosen[row.case], points)


def _undefined(row: Row, why: str) -> Row:
    return replace(row, value=None, status="undefined", reason=why, at="")


def curve(rows: Sequence[Row], points: int, within: Bounds = (None, None)) -> list[Summary]:
    """One summary per grid point, for cells whose grid is the result (a dose–response curve)."""
    return [summarise((pick(row, i, points) for row in rows), within) for i in range(points)]


def pick(row: Row, point: int, points: int) -> Row:
    """A row at one point of the method's grid: a value, or the list over the protocol's own grid.

    >>> pick(Row("c", "a", "m", [1.0, 2.0, 3.0, 4.0], at="dose,t"), 1, 2).value
    [3.0, 4.0]
    """
    if not isinstance(row.value, list):
        return row
    each = len(row.value) // points
    if each == 1:
        return replace(row, value=row.value[point], at="")
    return replace(row, value=row.value[point * each : (point + 1) * each], at=row.at.rpartition(",")[2])


@dataclass(frozen=True, slots=True)
class Condensed:
    """The result of a protocol's `summarise` for the rows of a cell.

    `rows` have one value per case and metric; `chosen` has the point of the protocol's own grid at which each case was
    read; `derived` are metrics of the whole cell (also those of `rows` that are not plain means); `grid` has the data for
    a figure of that grid: its name, its points, the curves over it, the points chosen, and the curve they were chosen by
    (`lead`).
    """

    rows: list[Row]
    chosen: dict[str, dict[str, float]]
    derived: dict[str, Summary]
    grid: dict[str, Any]


def mean_ranks(table: dict[str, dict[str, float]], direction: Direction) -> dict[str, float]:
    """The mean rank of each method over the cases that all of them have a value for; ties share the mean rank.

    >>> mean_ranks({"a": {"x": 1.0, "y": 5.0}, "b": {"x": 2.0, "y": 4.0}}, "lower")
    {'a': 1.5, 'b': 1.5}
    """
    shared = sorted(set.intersection(*(set(v) for v in table.values()))) if table else []
    if len(table) < 2 or not shared:
        return {}
    values = np.array([[table[m][c] for c in shared] for m in table])
    better = values if direction == "lower" else -values
    below = (better[None] < better[:, None]).sum(axis=1)
    equal = (better[None] == better[:, None]).sum(axis=1)  # counts itself
    ranks = (below + (equal + 1) / 2).mean(axis=1)
    return dict(zip(table, map(float, ranks), strict=True))


def hardest(columns: Sequence[Mapping[str, float]], direction: str) -> list[str]:
    """Cases ordered by their mean over the columns, the worst first.

    >>> hardest([{"a": 0.1, "b": 0.9}, {"a": 0.2, "b": 0.3, "c": 0.5}], "lower")
    ['b', 'c', 'a']
    """
    found, worse = means(columns), -1 if direction == "lower" else 1
    return sorted(found, key=lambda case: worse * found[case])


def means(columns: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each case over the columns that have it."""
    found: dict[str, list[float]] = {}
    for column in columns:
        for case, value in column.items():
            found.setdefault(case, []).append(value)
    return {case: sum(values) / len(values) for case, values in found.items()}
