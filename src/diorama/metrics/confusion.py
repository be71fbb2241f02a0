"""The Attribution Confusion Matrix: evidence for and against the target, inside and outside its cells, and its rates.

Arias-Duart, Mariotti, Garcia-Gasulla, Alonso-Moral 2023. An attribution a at a pixel of a mosaic counts as

    TP  a > 0 on a target cell         FP  a > 0 elsewhere
    FN  a < 0 on a target cell         TN  a < 0 elsewhere          (negative ones by their size)

All sums are in float64. A rate whose denominator is zero does not exist: it is NaN here, and the caller says why.
"""

import importlib.util
from functools import cache
from typing import Any

import numpy as np

#: Every rate, in the order of the paper's table, then those that follow from the same four numbers.
RATES = ("precision", "accuracy", "recall", "f1", "specificity", "npv", "balanced_accuracy", "mcc")
#: The compiled loop is used for this many maps or more, where numba is installed; compiling it takes a second, once.
MANY = 64


def edges(side: int, grid: int) -> np.ndarray:
    """Where the cells of a grid begin, and the end: cut at side·i/grid, rounded down.

    >>> edges(448, 2), edges(7, 3)
    (array([  0, 224, 448]), array([0, 2, 4, 7]))
    """
    return np.arange(grid + 1) * side // grid


def cell_masses(maps: np.ndarray, grid: int) -> tuple[np.ndarray, np.ndarray]:
    """The positive and the negative mass of every cell, row by row: (…, h, w) → twice (…, grid²) float64.

    >>> cell_masses(np.array([[1.0, -2.0], [3.0, 4.0]]), 2)
    (array([1., 0., 3., 4.]), array([0., 2., 0., 0.]))
    """
    h, w = maps.shape[-2:]
    if len(maps.shape) == 3 and len(maps) >= MANY and maps.dtype in (np.float32, np.float64) and compiled():
        masses = compiled()(maps, edges(h, grid), edges(w, grid))
        return masses[..., 0], masses[..., 1]
    return _summed(np.maximum(maps, 0), grid), _summed(np.maximum(-maps, 0), grid)


def _summed(maps: np.ndarray, grid: int) -> np.ndarray:
    h, w = maps.shape[-2:]
    rows = np.add.reduceat(maps, edges(h, grid)[:-1], axis=-2, dtype=np.float64)
    return np.add.reduceat(rows, edges(w, grid)[:-1], axis=-1).reshape(*maps.shape[:-2], grid * grid)


@cache
def compiled() -> Any:
    """The loop over all maps, compiled; None without numba. Sums may be reordered, which float64 can afford."""
    if importlib.util.find_spec("numba") is None:
        return None
    import numba

    return numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(_loop)


def _loop(maps: np.ndarray, ys: np.ndarray, xs: np.ndarray) -> np.ndarray:
    """Σ max(a, 0) and Σ max(−a, 0) of every cell in one pass: what numba compiles."""
    rows, columns = len(ys) - 1, len(xs) - 1
    masses = np.zeros((len(maps), rows * columns, 2))
    for i in range(len(maps)):
        for r in range(rows):
            for y in range(ys[r], ys[r + 1]):
                for c in range(columns):
                    line = maps[i, y, xs[c] : xs[c + 1]]
                    up, down = 0.0, 0.0
                    for x in range(line.size):
                        a = np.float64(line[x])
                        up += a if a > 0 else 0.0
                        down += -a if a < 0 else 0.0
                    masses[i, r * columns + c, 0] += up
                    masses[i, r * columns + c, 1] += down
    return masses


def evidence(maps: np.ndarray, target: np.ndarray, grid: int) -> np.ndarray:
    """TP, FP, TN, FN of maps (…, h, w); `target` (…, grid²) says which cells show the target class. → (…, 4) float64.

    >>> evidence(np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([True, True, False, False]), 2)
    array([1., 7., 0., 2.])
    """
    positive, negative = cell_masses(maps, grid)
    target = np.asarray(target, bool)
    parts = (positive * target, positive * ~target, negative * ~target, negative * target)
    return np.stack([part.sum(axis=-1) for part in parts], axis=-1)


def rates(found: np.ndarray) -> dict[str, np.ndarray]:
    """Every rate of evidence (…, 4): TP, FP, TN, FN; NaN where its denominator is zero.

    precision = TP/(TP + FP), which is Focus; accuracy = (TP + TN)/all; recall = TP/(TP + FN);
    f1 = 2 TP/(2 TP + FP + FN); specificity = TN/(TN + FP); npv = TN/(TN + FN);
    balanced accuracy = (recall + specificity)/2;
    mcc = √(precision·recall·specificity·npv) − √((1−precision)(1−recall)(1−specificity)(1−npv)), Matthews' coefficient.

    >>> {name: round(float(value), 3) for name, value in rates(np.array([3.0, 1.0, 4.0, 2.0])).items()}
    {'precision': 0.75, 'accuracy': 0.7, 'recall': 0.6, 'f1': 0.667,
     'specificity': 0.8, 'npv': 0.667, 'balanced_accuracy': 0.7, 'mcc': 0.408}
    """
    tp, fp, tn, fn = np.moveaxis(np.asarray(found, np.float64), -1, 0)
    precision, recall, specificity, npv = _share(tp, fp), _share(tp, fn), _share(tn, fp), _share(tn, fn)
    wrong = (_share(fp, tp), _share(fn, tp), _share(fp, tn), _share(fn, tn))
    return {
        "precision": precision,
        "accuracy": _share(tp + tn, fp + fn),
        "recall": recall,
        "f1": _share(2 * tp, fp + fn),
        "specificity": specificity,
        "npv": npv,
        "balanced_accuracy": (recall + specificity) / 2,
        "mcc": np.sqrt(precision * recall * specificity * npv) - np.sqrt(np.prod(wrong, axis=0)),
    }


def _share(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / (a + b), NaN where both are zero."""
    with np.errstate(invalid="ignore"):
        return np.divide(a, a + b)


#: Why a rate does not exist, in words.
LACKS: dict[str, str] = {
    "precision": "no positive evidence anywhere",
    "accuracy": "the map is zero everywhere",
    "recall": "no evidence on the target's cells",
    "f1": "no positive evidence, and none against the target on its cells",
    "specificity": "no evidence outside the target's cells",
    "npv": "no negative evidence anywhere",
    "balanced_accuracy": "no evidence on, or none outside, the target's cells",
    "mcc": "a row or column of the confusion matrix is empty",
}
