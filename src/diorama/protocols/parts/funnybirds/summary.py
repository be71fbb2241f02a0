"""From FunnyBirds' rows to its scores: the choice of the threshold, the composites, intervals over cases. Pure arrays.

Published: one threshold for all cases, the first that maximises (CSDC + PC + DC)/3 + D on the same cases; an undefined score
counts as 0 in the composites; BI is a mean over objects. Corrected: the threshold of a case is chosen on the cases of the
other parity; a composite that needs an undefined score is undefined; BI is a mean over images.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from diorama.core.rows import Row
from diorama.core.summary import Condensed, Summary
from diorama.metrics.funnybirds import THRESHOLDS, composites, objective
from diorama.metrics.intervals import LEAST, Interval, moves_of, of_statistic, resamples, standard_error

AT_T = ("csdc", "pc", "dc", "d")
NEEDS = {"com": AT_T, "cor": ("sd",), "con": ("ts",), "mx": (*AT_T, "sd", "ts")}
Columns = dict[str, np.ndarray]


def condense(rows: Sequence[Row], published: bool) -> Condensed:
    """One value per case at the threshold chosen for it, the composites, and the curves over the thresholds.

    The intervals of the composites are bootstrap-t over cases; every resample chooses its own thresholds, and its standard
    error is that of the means at these thresholds.
    """
    cases = list(dict.fromkeys(row.case for row in rows))
    columns = {m: _column(rows, cases, m) for m in (*AT_T, "sd", "ts", "bi", "objects")}
    folds = np.zeros(len(cases), int) if published else np.arange(len(cases)) % 2
    once = _estimate(columns, np.ones((1, len(cases))), folds, published)
    many = [_estimate(columns, weights, folds, published) for weights in resamples(len(cases))]
    at = {case: int(once.chosen[0, fold]) for case, fold in zip(cases, folds, strict=True)}
    derived = {m: _summary(rows, m, float(once.values[m][0]), _ends(once, many, m, len(cases))) for m in once.values}
    places = {case: {"t": float(THRESHOLDS[t])} for case, t in at.items() if t >= 0}
    return Condensed([_read(row, at) for row in rows], places, derived, _grid(columns, sorted(set(at.values()) - {-1})))


def _column(rows: Sequence[Row], cases: list[str], metric: str) -> np.ndarray:
    """(cases, thresholds) or (cases, 1), NaN where there is no value."""
    known = {row.case: row.value for row in rows if row.metric == metric and row.status == "ok"}
    width = len(THRESHOLDS) if metric in AT_T else 1
    return np.array([np.broadcast_to(np.asarray(known.get(c, np.nan), float), width) for c in cases])


@dataclass(frozen=True, slots=True)
class Estimate:
    """For every line of weights: the composites, their standard errors, the index of each fold's threshold (−1: none)."""

    values: Columns
    errors: Columns
    chosen: np.ndarray


def _estimate(columns: Columns, weights: np.ndarray, folds: np.ndarray, published: bool) -> Estimate:
    groups = [weights * (folds == f) for f in range(folds.max(initial=0) + 1)]
    sums = {m: [_sums(g, columns[m]) for g in groups] for m in AT_T}
    chosen = np.stack([_choose(sums, f, published) for f in range(len(groups))], axis=1)
    scores = {m: _at_chosen(sums[m], chosen) for m in AT_T}
    scores |= {m: _mean(*_sums(weights, columns[m]))[:, 0] for m in ("sd", "ts")}
    places, cases = np.maximum(chosen, 0)[:, folds], np.arange(len(folds))
    read = {m: columns[m][cases, places if m in AT_T else 0] for m in scores}
    moves = {m: moves_of(np.broadcast_to(read[m], weights.shape), scores[m], weights) for m in scores}
    if published:
        scores, moves = ({m: np.nan_to_num(v) for m, v in found.items()} for found in (scores, moves))
    values = {m: np.asarray(v) for m, v in composites(**scores).items()}  # type: ignore[arg-type]
    moved = {m: np.asarray(v) for m, v in composites(**moves).items()}  # type: ignore[arg-type] # they are linear
    if published:
        values["bi"], moved["bi"] = _over_objects(columns, weights)
    return Estimate(values, {m: standard_error(weights, v) for m, v in moved.items()}, chosen)


def _over_objects(columns: Columns, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of BI over all objects of all cases, and how far each case moves it."""
    objects = np.nan_to_num(columns["objects"])
    total = np.nan_to_num(columns["bi"] * objects)
    many = weights @ objects
    mean = _mean(weights @ total, many)
    share = np.maximum(many / len(objects), 1e-12)
    return mean[:, 0], (total[:, 0] - mean * objects[:, 0]) / share


def _sums(weights: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums over the cases that have a value, and the weight of those cases."""
    known = ~np.isnan(values)
    return weights @ np.where(known, values, 0), weights @ known


def _mean(total: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.divide(total, weight, out=np.full(total.shape, np.nan), where=weight > 0)


def _choose(sums: dict[str, list[tuple[np.ndarray, np.ndarray]]], fold: int, published: bool) -> np.ndarray:
    """The first threshold with the largest objective: over all cases (published), or those of the other folds."""
    means = {}
    for metric, of_folds in sums.items():
        others = [s for f, s in enumerate(of_folds) if published or f != fold]
        empty = np.zeros_like(of_folds[0][0])
        means[metric] = _mean(sum((t for t, _ in others), empty), sum((w for _, w in others), empty))
    unknown = np.isnan(np.stack(list(means.values()))).all(axis=(0, 2))
    return np.where(unknown, -1, objective(**means).argmax(axis=1))


def _at_chosen(of_folds: list[tuple[np.ndarray, np.ndarray]], chosen: np.ndarray) -> np.ndarray:
    """The mean over all cases, each at the threshold of its fold; NaN where a fold has cases but no threshold."""
    line, t = np.arange(len(chosen)), np.maximum(chosen, 0)
    total = sum(s[line, t[:, f]] for f, (s, _) in enumerate(of_folds))
    weight = sum(w[line, t[:, f]] for f, (_, w) in enumerate(of_folds))
    undefined = sum((w[:, 0] > 0) & (chosen[:, f] < 0) for f, (_, w) in enumerate(of_folds))
    return np.where(undefined, np.nan, _mean(np.asarray(total), np.asarray(weight)))


def _read(row: Row, at: dict[str, int]) -> Row:
    if not isinstance(row.value, list):
        return row
    if at[row.case] < 0:
        why = "the threshold is chosen on the other cases, and none has a value; give more cases"
        return replace(row, value=None, status="undefined", reason=why, at="")
    return replace(row, value=row.value[at[row.case]], at="")


def _ends(once: Estimate, many: list[Estimate], metric: str, cases: int) -> Interval:
    value, error = float(once.values[metric][0]), float(once.errors[metric][0])
    shifts = np.concatenate([part.values[metric] for part in many]) - value
    errors = np.concatenate([part.errors[metric] for part in many])
    return of_statistic(value, error, shifts, errors, cases).within(0.0, 1.0)


def _summary(rows: Sequence[Row], metric: str, mean: float, ends: Interval) -> Summary:
    """The summary of a derived metric; a case counts as ok if it has any of the scores that the metric needs."""
    needs = NEEDS.get(metric, (metric,))
    by_case: dict[str, list[str]] = {}
    for row in rows:
        if row.metric in needs:
            by_case.setdefault(row.case, []).append(row.status)
    status = [
        next((s for s in ("ok", "error", "undefined") if s in of_case), "excluded") for of_case in by_case.values()
    ]
    if np.isnan(mean):
        status = ["undefined" if s == "ok" else s for s in status]
    counts = [status.count(s) for s in ("ok", "undefined", "excluded", "error")]
    if np.isnan(mean):
        return Summary(None, None, None, *counts)
    ends = ends if counts[0] >= LEAST else Interval()
    return Summary(mean, ends.lo, ends.hi, *counts)


def _grid(columns: Columns, chosen: list[int]) -> dict[str, object]:
    """The mean of every score at every threshold, over all cases."""
    every = np.ones((1, len(columns["pc"])))
    means = {m: _mean(*_sums(every, columns[m]))[0] for m in AT_T}
    curves = {m: v.tolist() for m, v in means.items() if not np.isnan(v).any()}
    if curves:
        curves["com"] = (objective(**means) / 2).tolist()
    return {
        "name": "t",
        "points": THRESHOLDS.tolist(),
        "curves": curves,
        "lead": "com",
        "chosen": [float(THRESHOLDS[i]) for i in chosen],
    }
