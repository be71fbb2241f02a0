"""WHDR: weighted human disagreement rate of pairwise reflectance judgements (Bell et al. 2014).

For a pair with lightness l₁, l₂ (channel mean, at least 1e-10): "1" (the first is darker) if l₂/l₁ > 1 + δ, "2" if
l₁/l₂ > 1 + δ, else "E". WHDR = Σ weight of the wrong ones / Σ weight. Traps: the reference works on *linear* reflectance,
others on gamma-encoded (γ = 2.2 makes δ = 0.1 act like 0.233); judgements with a null or non-positive weight, without a
verdict, about shading (`compare_what` "S") or with a point that is not opaque are left out; resizing moves points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_VERDICTS = {"E": 0, "1": 1, "2": 2}


@dataclass(frozen=True, slots=True, eq=False)
class Judgements:
    """Pairs of points (n, 2) as x, y in [0, 1), which is darker (0: equal, 1, 2), and how much the verdict weighs."""

    first: np.ndarray
    second: np.ndarray
    darker: np.ndarray
    weight: np.ndarray


def judgements(points: Sequence[Mapping[str, Any]], comparisons: Sequence[Mapping[str, Any]]) -> Judgements:
    """The judgements that count, from `intrinsic_points` and `intrinsic_comparisons` of an IIW or SAW file.

    >>> p = [{"id": 1, "x": 0.1, "y": 0.5, "opaque": True}, {"id": 2, "x": 0.9, "y": 0.5, "opaque": True}]
    >>> c = {"point1": 1, "point2": 2, "darker": "1", "darker_score": 2.0}
    >>> judgements(p, [c, {**c, "darker_score": None}, {**c, "darker": None}, {**c, "compare_what": "S"}]).weight
    array([2.])
    """
    place = {p["id"]: (p["x"], p["y"]) for p in points if p.get("opaque")}
    valid = [c for c in comparisons if _counts(c, place)]
    return Judgements(
        np.array([place[c["point1"]] for c in valid], float).reshape(-1, 2),
        np.array([place[c["point2"]] for c in valid], float).reshape(-1, 2),
        np.array([_VERDICTS[c["darker"]] for c in valid], int),
        np.array([c["darker_score"] for c in valid], float),
    )


def _counts(comparison: Mapping[str, Any], place: Mapping[Any, Any]) -> bool:
    weight = comparison.get("darker_score")
    return (
        comparison.get("darker") in _VERDICTS
        and weight is not None
        and weight > 0
        and comparison.get("compare_what", "R") != "S"
        and comparison["point1"] in place
        and comparison["point2"] in place
    )


def ordinal(first: np.ndarray, second: np.ndarray, delta: float) -> np.ndarray:
    """Which of two lightnesses is darker by more than δ: 0 neither, 1 the first, 2 the second.

    >>> ordinal(np.array([1.0, 1.0, 2.0]), np.array([1.05, 2.0, 1.0]), 0.1)
    array([0, 1, 2])
    """
    return np.where(second / first > 1 + delta, 1, np.where(first / second > 1 + delta, 2, 0))


def lightness(reflectance: np.ndarray, points: np.ndarray) -> np.ndarray:
    """max(1e-10, channel mean) of (h, w, c) reflectance at points (n, 2): pixel (int(y·h), int(x·w))."""
    h, w = reflectance.shape[:2]
    x, y = (points * (w, h)).astype(int).T
    return np.maximum(reflectance[np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)].astype(np.float64).mean(axis=1), 1e-10)


def whdr(reflectance: np.ndarray, judged: Judgements, delta: float = 0.1) -> float:
    """The share of weight on judgements that the reflectance contradicts; NaN where there is no judgement.

    >>> j = Judgements(np.array([[0.0, 0.0]]), np.array([[0.5, 0.0]]), np.array([1]), np.array([3.0]))
    >>> whdr(np.array([[[0.2], [0.8]]]), j), whdr(np.array([[[0.5], [0.5]]]), j)
    (0.0, 1.0)
    """
    if not len(judged.weight):
        return float("nan")
    verdict = ordinal(lightness(reflectance, judged.first), lightness(reflectance, judged.second), delta)
    return float(judged.weight[verdict != judged.darker].sum() / judged.weight.sum())


def constant_whdr(judged: Judgements) -> float:
    """What constant reflectance scores: the weight share of the inequalities."""
    return float(judged.weight[judged.darker != 0].sum() / judged.weight.sum()) if len(judged.weight) else float("nan")
