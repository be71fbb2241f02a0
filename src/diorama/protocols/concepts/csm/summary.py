"""From CSM's rows to CSM_R and CSM_S with intervals over sets, test images and CAVs. Pure: rows in, numbers out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from diorama.core.rows import Row
from diorama.core.summary import Condensed, Summary
from diorama.metrics.csm import log_ratio, mean_of_ratios, ratio_of_averages, smoothed
from diorama.metrics.intervals import LEAST, Interval, moves_of, of_statistic, resamples, standard_error

#: The letter of a set's change in the names of sensitivities: r_a is that of reflectance to Δa.
MARKS = {"albedo": "a", "light": "i"}
#: The beginning of the reason of a sensitivity that was not significant and has the floor as its value.
FLOORED = "floored: "
#: The sensitivities that each ratio divides.
RATIOS = {"csm_r": ("s_i", "r_i"), "csm_s": ("r_a", "s_a")}
Pair = tuple[np.ndarray, np.ndarray]


def condense(rows: Sequence[Row], aggregate: str | None) -> Condensed:
    """One value per case and metric, both ratios (their smoothed logarithm if `aggregate` is None), curves over runs."""
    cases = list(dict.fromkeys(row.case for row in rows))
    known = {(row.case, row.metric): row for row in rows if row.status == "ok"}
    names = [name for pair in RATIOS.values() for name in pair]
    point = {m: np.array([_value(known, c, m) for c in cases]) for m in names}
    draws = {m: _draws(known, cases, m) for m in names}
    n = int(min([_value(known, c, "tests") for c in cases if (c, "tests") in known], default=1))
    derived = {}
    for ratio, (above, below) in RATIOS.items():
        mean = _combined(point[above], point[below], n, aggregate)
        between = ratio_ends((point[above], point[below]), (draws[above], draws[below]), n, aggregate)
        derived[ratio if aggregate else f"log_{ratio}"] = _summary(rows, (above, below), mean, between)
    return Condensed([_single(row) for row in rows], {}, derived, _grid(known, cases))


def _value(known: dict[tuple[str, str], Row], case: str, metric: str) -> float:
    row = known.get((case, metric))
    return np.nan if row is None else float(row.value)  # type: ignore[arg-type]


def _draws(known: dict[tuple[str, str], Row], cases: list[str], metric: str) -> np.ndarray:
    """The draws (cases, draws) of a sensitivity: constant if it is floored, NaN if it is left out."""
    listed = {c: known[c, f"draws_{metric[0]}"].value for c in cases if (c, f"draws_{metric[0]}") in known}
    count = max((len(v) for v in listed.values()), default=1)  # type: ignore[arg-type]
    draws = np.full((len(cases), count), np.nan)
    for i, case in enumerate(cases):
        if (row := known.get((case, metric))) is not None:
            draws[i] = row.value if row.reason.startswith(FLOORED) else listed[case]
    return draws


def _combined(above: np.ndarray, below: np.ndarray, n: int, aggregate: str | None) -> float:
    if aggregate is None:
        return log_ratio(above, below, n)
    return (ratio_of_averages if aggregate == "ratio_of_averages" else mean_of_ratios)(above, below)


def ratio_ends(points: Pair, draws: Pair, n: int, aggregate: str | None) -> Interval:
    """The bootstrap-t over sets: every resample has its own choice of sets, and its own test images and CAVs.

    The error is that between sets. A ratio of averages is studentised as its logarithm; without both averages positive
    it has no interval. With fewer than three sets there is none.
    """
    sets = np.flatnonzero(~np.isnan(points[0]) | ~np.isnan(points[1]))
    if len(sets) < LEAST:
        return Interval()
    weights = np.concatenate(list(resamples(len(sets))))
    turn = np.arange(len(weights)) % draws[0].shape[1]
    above, below = (np.take(d[sets], turn, axis=1).T for d in draws)
    value, error = _estimate((points[0][None, sets], points[1][None, sets]), np.ones((1, len(sets))), n, aggregate)
    values, errors = _estimate((above, below), weights, n, aggregate)
    ends = of_statistic(float(value[0]), float(error[0]), values - value, errors, len(sets))
    if aggregate != "ratio_of_averages" or ends.lo is None or ends.hi is None:
        return ends
    return Interval(float(np.exp(ends.lo)), float(np.exp(ends.hi)))


def _estimate(pair: Pair, weights: np.ndarray, n: int, aggregate: str | None) -> tuple[np.ndarray, np.ndarray]:
    """The aggregate (the logarithm of a ratio of averages) and its standard error, for every line of weights over sets."""
    above, below = pair
    if aggregate == "ratio_of_averages":
        tops, bottoms = (_positive(_weighted(v, weights)) for v in pair)
        moves = moves_of(above, tops, weights) / tops[:, None] - moves_of(below, bottoms, weights) / bottoms[:, None]
        return np.log(tops / bottoms), standard_error(weights, moves)
    each = above / _positive(below) if aggregate else np.log(smoothed(above, n)) - np.log(smoothed(below, n))
    means = _weighted(each, weights)
    return means, standard_error(weights, moves_of(each, means, weights))


def _positive(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, values, np.nan)


def _weighted(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    known = ~np.isnan(values)
    total, weight = (np.where(known, values, 0) * weights).sum(axis=1), (known * weights).sum(axis=1)
    return np.divide(total, weight, out=np.full(len(total), np.nan), where=weight > 0)


def _summary(rows: Sequence[Row], names: tuple[str, str], mean: float, ends: Interval) -> Summary:
    """A set counts as ok if it has both sensitivities."""
    by_case: dict[str, list[str]] = {}
    for row in rows:
        if row.metric in names:
            by_case.setdefault(row.case, []).append(row.status)
    worst = [next(s for s in ("error", "undefined", "excluded", "ok") if s in states) for states in by_case.values()]
    counts = [worst.count(s) for s in ("ok", "undefined", "excluded", "error")]
    return Summary(None if np.isnan(mean) else mean, ends.lo, ends.hi, *counts)


def _single(row: Row) -> Row:
    return replace(row, value=float(np.mean(row.value)), at="") if isinstance(row.value, list) else row


def _grid(known: dict[tuple[str, str], Row], cases: list[str]) -> dict[str, object]:
    """The mean sensitivity of each kind after 1, 2, … CAV runs: the paper's Figure 7."""
    curves = {}
    for metric in ("r_a", "s_a", "r_i", "s_i"):
        marked = [c for c in cases if (c, metric) in known]
        runs = [known[c, f"runs_{metric[0]}"].value for c in marked if (c, f"runs_{metric[0]}") in known]
        if runs and len({len(r) for r in runs}) == 1:  # type: ignore[arg-type]
            counted = np.arange(1, len(runs[0]) + 1)  # type: ignore[arg-type]
            curves[metric] = (np.cumsum(np.array(runs, float), axis=1) / counted).mean(axis=0).tolist()
    points = list(range(1, len(next(iter(curves.values()))) + 1)) if curves else []
    return {"name": "CAV runs", "points": points, "curves": curves, "chosen": []}
