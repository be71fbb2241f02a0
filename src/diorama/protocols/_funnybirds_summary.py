"""From FunnyBirds' rows to its scores: the choice of the threshold, the composites, intervals over cases. Pure arrays.

Published: one threshold for all cases, the first that maximises (CSDC + PC + DC)/3 + D on these very cases; an undefined
score counts 0 in the composites; BI is a mean over objects. Corrected: the threshold of a case is chosen on the cases of
the other parity; a composite that needs an undefined score is undefined; BI is a mean over images.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from diorama.core.rows import Row
from diorama.core.scene import rng
from diorama.core.summary import Condensed, Summary
from diorama.metrics.funnybirds import THRESHOLDS, composites, objective

AT_T = ("csdc", "pc", "dc", "d")
NEEDS = {"com": AT_T, "cor": ("sd",), "con": ("ts",), "mx": (*AT_T, "sd", "ts")}
DRAWS = 1000
Columns = dict[str, np.ndarray]


def condense(rows: Sequence[Row], published: bool) -> Condensed:
    """One value per case at the threshold chosen for it, the composites, and the curves over the thresholds.

    The intervals of the composites are over cases, and every draw chooses its thresholds anew.
    """
    cases = list(dict.fromkeys(row.case for row in rows))
    columns = {m: _column(rows, cases, m) for m in (*AT_T, "sd", "ts", "bi", "objects")}
    folds = np.zeros(len(cases), int) if published else np.arange(len(cases)) % 2
    once, chosen = _estimate(columns, np.ones((1, len(cases))), folds, published)
    many, _ = _estimate(columns, _weights(len(cases)), folds, published)
    at = {case: int(chosen[0, fold]) for case, fold in zip(cases, folds, strict=True)}
    derived = {m: _summary(rows, m, float(once[m][0]), many[m]) for m in once}
    places = {case: {"t": float(THRESHOLDS[t])} for case, t in at.items() if t >= 0}
    return Condensed([_read(row, at) for row in rows], places, derived, _grid(columns, sorted(set(at.values()) - {-1})))


def _column(rows: Sequence[Row], cases: list[str], metric: str) -> np.ndarray:
    """(cases, thresholds) or (cases, 1), NaN where there is no value."""
    known = {row.case: row.value for row in rows if row.metric == metric and row.status == "ok"}
    width = len(THRESHOLDS) if metric in AT_T else 1
    return np.array([np.broadcast_to(np.asarray(known.get(c, np.nan), float), width) for c in cases])


@lru_cache(maxsize=8)
def _weights(count: int) -> np.ndarray:
    """How often each case is drawn, (draws, cases)."""
    return rng("bootstrap", "funnybirds", count).multinomial(count, np.full(count, 1 / count), DRAWS).astype(float)


def _estimate(columns: Columns, weights: np.ndarray, folds: np.ndarray, published: bool) -> tuple[Columns, np.ndarray]:
    """The composites for every line of weights, and the index of the threshold chosen for each fold (−1: none)."""
    groups = [weights * (folds == f) for f in range(folds.max(initial=0) + 1)]
    sums = {m: [_sums(g, columns[m]) for g in groups] for m in AT_T}
    chosen = np.stack([_choose(sums, f, published) for f in range(len(groups))], axis=1)
    scores = {m: _at_chosen(sums[m], chosen) for m in AT_T}
    scores |= {m: _mean(*_sums(weights, columns[m]))[:, 0] for m in ("sd", "ts")}
    if published:
        scores = {m: np.nan_to_num(values) for m, values in scores.items()}
    found = {m: np.asarray(v) for m, v in composites(**scores).items()}  # type: ignore[arg-type]
    if published:
        objects = np.nan_to_num(columns["objects"])
        total, many = _sums(weights, columns["bi"] * objects)[0], _sums(weights, objects)[0]
        found["bi"] = _mean(total, many)[:, 0]
    return found, chosen


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
    lost = sum((w[:, 0] > 0) & (chosen[:, f] < 0) for f, (_, w) in enumerate(of_folds))
    return np.where(lost, np.nan, _mean(np.asarray(total), np.asarray(weight)))


def _read(row: Row, at: dict[str, int]) -> Row:
    if not isinstance(row.value, list):
        return row
    if at[row.case] < 0:
        why = "the threshold is chosen on the other cases, and none has a value; give more cases"
        return replace(row, value=None, status="undefined", reason=why, at="")
    return replace(row, value=row.value[at[row.case]], at="")


def _summary(rows: Sequence[Row], metric: str, mean: float, draws: np.ndarray) -> Summary:
    """The summary of a derived metric; a case counts as ok if it has any of the scores that the metric is made of."""
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
    known = draws[~np.isnan(draws)]
    if np.isnan(mean):
        return Summary(None, None, None, *counts)
    if counts[0] < 2 or not len(known):
        return Summary(mean, None, None, *counts)
    lo, hi = np.quantile(known, [0.025, 0.975])
    return Summary(mean, float(lo), float(hi), *counts)


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
        "chosen": [float(THRESHOLDS[i]) for i in chosen],
    }
