"""From CSM's rows to CSM_R and CSM_S with intervals over sets, test images and CAVs. Pure: rows in, numbers out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from diorama.core.rows import Row
from diorama.core.scene import rng
from diorama.core.summary import Condensed, Summary
from diorama.metrics.csm import log_ratio, mean_of_ratios, ratio_of_averages

#: How the change of a set is written in the names of sensitivities: r_a is that of reflectance to Δa.
MARKS = {"albedo": "a", "light": "i"}
#: How the reason of a sensitivity begins that was not significant and counts as the floor.
FLOORED = "floored: "
#: What is divided by what.
RATIOS = {"csm_r": ("s_i", "r_i"), "csm_s": ("r_a", "s_a")}
Columns = dict[str, np.ndarray]


def condense(rows: Sequence[Row], aggregate: str | None) -> Condensed:
    """One value per case and metric, both ratios (without `aggregate` their smoothed logarithm), curves over runs."""
    cases = list(dict.fromkeys(row.case for row in rows))
    known = {(row.case, row.metric): row for row in rows if row.status == "ok"}
    names = [name for pair in RATIOS.values() for name in pair]
    point = {m: np.array([[_value(known, c, m)] for c in cases]) for m in names}
    drawn = {m: _draws(known, cases, m) for m in names}
    n = int(min([_value(known, c, "tests") for c in cases if (c, "tests") in known], default=1))
    derived = {}
    for ratio, (above, below) in RATIOS.items():
        mean = _combined(point[above][:, 0], point[below][:, 0], n, aggregate)
        many = _bootstrapped(drawn[above], drawn[below], n, aggregate)
        derived[ratio if aggregate else f"log_{ratio}"] = _summary(rows, (above, below), mean, many)
    return Condensed([_single(row) for row in rows], {}, derived, _grid(known, cases))


def _value(known: dict[tuple[str, str], Row], case: str, metric: str) -> float:
    row = known.get((case, metric))
    return np.nan if row is None else float(row.value)  # type: ignore[arg-type]


def _draws(known: dict[tuple[str, str], Row], cases: list[str], metric: str) -> np.ndarray:
    """(cases, draws) of a sensitivity; a floored one does not vary, one that is left out is NaN."""
    listed = {c: known[c, f"draws_{metric[0]}"].value for c in cases if (c, f"draws_{metric[0]}") in known}
    count = max((len(v) for v in listed.values()), default=1)  # type: ignore[arg-type]
    found = np.full((len(cases), count), np.nan)
    for i, case in enumerate(cases):
        if (row := known.get((case, metric))) is not None:
            found[i] = row.value if row.reason.startswith(FLOORED) else listed[case]
    return found


def _combined(above: np.ndarray, below: np.ndarray, n: int, aggregate: str | None) -> float:
    if aggregate is None:
        return log_ratio(above, below, n)
    return (ratio_of_averages if aggregate == "ratio_of_averages" else mean_of_ratios)(above, below)


def _bootstrapped(above: np.ndarray, below: np.ndarray, n: int, aggregate: str | None) -> np.ndarray:
    """The ratio of every draw: its own test images and CAVs, and its own choice of the sets that have a value."""
    sets = np.flatnonzero(~np.isnan(above[:, 0]) | ~np.isnan(below[:, 0]))
    if not len(sets):
        return np.zeros(0)
    chosen = rng("bootstrap", "csm", len(sets)).integers(0, len(sets), (above.shape[1], len(sets)))
    found = [_combined(above[sets[c], b], below[sets[c], b], n, aggregate) for b, c in enumerate(chosen)]
    return np.array(found)


def _summary(rows: Sequence[Row], names: tuple[str, str], mean: float, draws: np.ndarray) -> Summary:
    """A set counts as ok if it has both sensitivities."""
    by_case: dict[str, list[str]] = {}
    for row in rows:
        if row.metric in names:
            by_case.setdefault(row.case, []).append(row.status)
    worst = [next(s for s in ("error", "undefined", "excluded", "ok") if s in states) for states in by_case.values()]
    counts = [worst.count(s) for s in ("ok", "undefined", "excluded", "error")]
    kept = draws[~np.isnan(draws)]
    if np.isnan(mean):
        return Summary(None, None, None, *counts)
    if len(kept) < 0.5 * len(draws) or not len(kept):  # most draws have a zero denominator
        return Summary(mean, None, None, *counts)
    lo, hi = np.quantile(kept, [0.025, 0.975])
    return Summary(mean, float(lo), float(hi), *counts)


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
