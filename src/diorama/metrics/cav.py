"""Concept activation vectors: directions that separate a concept's activations from others', solved in the n×n Gram space.

Kim et al. 2018. Every trainer gives a direction w = Σ aᵢ xᵢ, so the matrix K = XXᵀ of all images is all a trainer
needs. It is made once, in chunks of columns; each further CAV costs n×n work, whatever the width d of the layer.
Directions point towards the concept (scikit-learn's and Google's label 0 is the concept: there it is −coef).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from diorama.metrics.cav_trainers import TRAINERS, Options, Trainer

#: Columns multiplied at once, in float32; the sums over chunks are float64.
COLUMNS = 4096
#: CAVs solved at once.
BATCH = 64

#: The rows of one CAV: images of the concept, and negatives.
Draw = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Cavs:
    """k CAVs: `coefficients` (k, n) over the rows they were fitted on and `intercepts`; `accuracy` and `auc` on the images
    held out of each draw (NaN without any); `directions` (k, d) float32, None for CAVs fitted on a Gram matrix alone.
    """

    coefficients: np.ndarray
    intercepts: np.ndarray
    accuracy: np.ndarray
    auc: np.ndarray
    directions: np.ndarray | None = None

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """How much of the concept is in new activations (m, d): x·w + b, (k, m), above 0 where the concept is recognised."""
        if self.directions is None:
            raise ValueError("these CAVs have no directions: multiply coefficients by gram(fitted rows, new rows)")
        return self.directions @ np.asarray(rows, np.float32).T + self.intercepts[:, None]


def gram(rows: np.ndarray, others: np.ndarray | None = None, origin: np.ndarray | None = None) -> np.ndarray:
    """(x − o)·(y − o) of all rows (n, d) and others (m, d), float64. Arrays may be memory maps: only a chunk of columns
    is copied at a time.

    >>> gram(np.array([[1, 2], [3, 4]], np.float32), origin=np.array([1, 2], np.float32))
    array([[0., 0.],
           [0., 8.]])
    """
    n, d = rows.shape
    products = np.zeros((n, n if others is None else len(others)))
    for start in range(0, d, COLUMNS):
        columns = slice(start, start + COLUMNS)
        shift = np.float32(0) if origin is None else np.asarray(origin[columns], np.float32)
        left = np.asarray(rows[:, columns], np.float32) - shift
        products += left @ (left if others is None else np.asarray(others[:, columns], np.float32) - shift).T
    return products


def draw_sets(
    positives: int, negatives: int, runs: int, rng: np.random.Generator, size: int | None = None
) -> list[Draw]:
    """The images of each run: `size` random ones of the concept and as many others, without repetition; None: all that fit.

    >>> [len(side) for side in draw_sets(5, 9, 1, np.random.default_rng(0))[0]]
    [5, 5]
    """
    size = min(positives, negatives) if size is None else size
    if not 0 < size <= min(positives, negatives):
        raise ValueError(f"sets of {size} images: there are {positives} of the concept and {negatives} others")
    return [
        (np.sort(rng.permutation(positives)[:size]), np.sort(rng.permutation(negatives)[:size])) for _ in range(runs)
    ]


def split(index: np.ndarray, held_out: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Images to fit on, and the share `held_out` of them at random; at least one image stays on each side.

    >>> [len(part) for part in split(np.arange(9), 0.33, np.random.default_rng(0))]
    [6, 3]
    """
    index = np.asarray(index)
    if not held_out or len(index) < 2:
        return index, index[:0]
    count = min(max(round(held_out * len(index)), 1), len(index) - 1)
    mixed = rng.permutation(index)
    return np.sort(mixed[count:]), np.sort(mixed[:count])


def fit_cavs(
    trainer: str,
    positives: np.ndarray,
    negatives: np.ndarray,
    draws: Sequence[Draw],
    rng: np.random.Generator,
    options: Options | None = None,
    held_out: float = 0.33,
) -> Cavs:
    """CAVs from activations (p, d) of the concept and (m, d) of others; a draw has indices into both.

    >>> x = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    >>> cavs = fit_cavs("ridge", x + [6, 0, 0], x, [(np.arange(20), np.arange(20))], np.random.default_rng(0))
    >>> int(cavs.directions[0].argmax()), bool(cavs.accuracy[0] > 0.9)
    (0, True)
    """
    p = len(positives)
    # only hinge SGD depends on the origin
    origin = None if trainer == "hinge_sgd" else np.mean(negatives, axis=0)
    nn, pp, pn = gram(negatives, None, origin), gram(positives, None, origin), gram(positives, negatives, origin)
    row_draws = [(np.asarray(a), p + np.asarray(b)) for a, b in draws]
    cavs = fit_gram(trainer, np.block([[pp, pn], [pn.T, nn]]), row_draws, rng, options, held_out)
    a = cavs.coefficients.astype(np.float32)
    if origin is not None:  # intercepts belong to x − o
        cavs = replace(
            cavs, intercepts=cavs.intercepts - (a[:, :p] @ (positives @ origin) + a[:, p:] @ (negatives @ origin))
        )
    return replace(cavs, directions=np.asarray(a[:, :p] @ positives + a[:, p:] @ negatives, np.float32))


def fit_gram(
    trainer: str | Trainer,
    gram: np.ndarray,
    draws: Sequence[Draw],
    rng: np.random.Generator,
    options: Options | None = None,
    held_out: float = 0.33,
) -> Cavs:
    """CAVs in the Gram space (n, n) of all rows; a draw has the rows of the concept and of the negatives."""
    solve = trainer if callable(trainer) else _named(trainer)
    parts = [[split(side, held_out, rng) for side in draw] for draw in draws]
    seeds = rng.integers(1, 2**31 - 1, len(parts))
    coefficients, intercepts = np.zeros((len(parts), len(gram))), np.zeros(len(parts))
    for members in _batches([(len(p[0]), len(n[0])) for p, n in parts]):
        rows = np.array([np.concatenate([parts[i][0][0], parts[i][1][0]]) for i in members])
        labels = np.where(np.arange(rows.shape[1]) < len(parts[members[0]][0][0]), 1.0, -1.0)
        grams = gram[rows[:, :, None], rows[:, None, :]]
        _check_varies(grams)
        labels = np.broadcast_to(labels, rows.shape)
        a, b = solve(grams, labels, options or Options(), seeds[members])
        coefficients[np.array(members)[:, None], rows], intercepts[members] = a, b
    measured = np.array(
        [_held_out(gram, c, b, p[1], n[1]) for c, b, (p, n) in zip(coefficients, intercepts, parts, strict=True)]
    )
    return Cavs(coefficients, intercepts, measured[:, 0], measured[:, 1])


def _named(trainer: str) -> Trainer:
    if trainer not in TRAINERS:
        raise ValueError(f"no CAV trainer {trainer!r}; there are: {', '.join(TRAINERS)}")
    return TRAINERS[trainer]


def _batches(sizes: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The draws in groups of at most BATCH that have the same numbers of images on both sides."""
    groups: dict[tuple[int, int], list[int]] = {}
    for i, size in enumerate(sizes):
        groups.setdefault(size, []).append(i)
    return [members[i : i + BATCH] for members in groups.values() for i in range(0, len(members), BATCH)]


def _check_varies(grams: np.ndarray) -> None:
    """Refuse draws whose images all have the same activations, up to the rounding of float32 products."""
    diagonal = np.trace(grams, axis1=1, axis2=2)
    if (diagonal - grams.mean(2).sum(1) <= 1e-6 * np.abs(diagonal)).any():
        raise ValueError("activations are constant over the images of a CAV: no direction parts them")


def _held_out(gram: np.ndarray, a: np.ndarray, b: float, pos: np.ndarray, neg: np.ndarray) -> tuple[float, float]:
    if not len(pos) or not len(neg):
        return np.nan, np.nan
    high, low = gram[pos] @ a + b, gram[neg] @ a + b
    right = (high > 0).sum() + (low <= 0).sum()
    above = (high[:, None] > low).mean() + (high[:, None] == low).mean() / 2
    return right / (len(pos) + len(neg)), float(above)


def save_cavs(path: Path | str, cavs: Cavs, meta: dict[str, Any]) -> None:
    """Write directions, intercepts and their quality as NPZ; `meta` (layer, model, concept …) is in it as JSON."""
    if cavs.directions is None:
        raise ValueError("these CAVs have no directions to save: fit them with fit_cavs")
    arrays = {name: getattr(cavs, name) for name in ("directions", "intercepts", "accuracy", "auc")}
    np.savez_compressed(path, meta=np.array(json.dumps(meta)), **arrays)


def load_cavs(path: Path | str) -> tuple[Cavs, dict[str, Any]]:
    """The inverse of `save_cavs`; never reads pickled data."""
    with np.load(path, allow_pickle=False) as arrays:
        values = [arrays[name] for name in ("intercepts", "accuracy", "auc", "directions")]
        return Cavs(np.zeros((len(values[0]), 0)), *values), json.loads(str(arrays["meta"]))
