"""Unconfoundedness: do factors live in latents of their own? (CANDLE; Reddy et al. 2022, Eq. 1).

Q_i is the set of ρ latents chosen for factor i by IRS. UC = 1 − the mean over pairs of factors of |Q_i ∩ Q_j| / |Q_i ∪ Q_j|.

`published` is the released code: a slice that was meant to take the ρ largest entries takes the largest and then latents
at fixed places, M−1−ρ, M−1−2ρ, …, the same for all factors. So UC cannot exceed 2/3 at ρ = 2 with 10 latents, nor 1/4 at
ρ = 7 with 64, whatever the model, and falls with ρ for no reason of the model's. `corrected` takes the ρ largest entries
among active latents (ties: the first), once for all images, or for every image by the robustness within that image's own
group of each factor, averaged over images, as the expectation in Eq. 1 asks.
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, sample
from diorama.metrics.irs import robustness


def uc(codes: np.ndarray, factors: np.ndarray, rho: int = 1, rule: Rule = "spread", quantile: float = 0.99) -> Measured:
    """Corrected UC, `uc` with one choice of latents for all images and `uc_image` as Eq. 1; the matrix is IRS's.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> uc(g, g).values
    {'uc': 1.0, 'uc_image': 1.0}
    >>> uc(g[:, [0, 0]].sum(axis=1, keepdims=True), g).values
    {'uc': 0.0, 'uc_image': 0.0}
    """
    part = sample(codes, factors, rule)
    if part.empty or part.labels.shape[1] < 2:
        return part.nothing("uc", "uc_image")
    _check(rho, part.codes.shape[1])
    groups = robustness(part.codes, part.labels, quantile)
    matrix = np.stack([group.mean(axis=0) for group in groups], axis=1)
    chosen = top(matrix, rho)
    own = np.stack([top(group.T, rho).T[column] for group, column in zip(groups, part.labels.T, strict=True)], axis=1)
    values = {"uc": 1 - float(overlaps(chosen.T).mean()), "uc_image": 1 - float(overlaps(own).mean())}
    return part.measured(values, matrix, 1 - _per_factor(overlaps(chosen.T), len(groups)))


def uc_published(codes: np.ndarray, factors: np.ndarray, rho: int = 1, quantile: float = 0.99) -> Measured:
    """UC as released: latents that vary at all, factors in 20 bins, the slice described above.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> uc_published(g, g).value
    1.0
    """
    part = sample(codes, factors, "varies", bins=20)
    if part.empty or part.labels.shape[1] < 2:
        return part.nothing("uc")
    matrix = np.stack([r.mean(axis=0) for r in robustness(part.codes, part.labels, quantile)], axis=1)
    pairs = overlaps(released(matrix, rho).T)
    return part.measured({"uc": 1 - float(pairs.mean())}, matrix, 1 - _per_factor(pairs, matrix.shape[1]))


def top(matrix: np.ndarray, rho: int) -> np.ndarray:
    """The ρ largest entries of every column as a boolean matrix; ties go to the first row.

    >>> top(np.array([[0.1], [0.9], [0.9]]), 2).ravel()
    array([False,  True,  True])
    """
    rows = np.argsort(-matrix, axis=0, kind="stable")[:rho]
    chosen = np.zeros(matrix.shape, bool)
    np.put_along_axis(chosen, rows, True, axis=0)
    return chosen


def released(matrix: np.ndarray, rho: int) -> np.ndarray:
    """What the released slice takes from every column: the largest entry, swapped into the last place, then every ρ-th.

    >>> m = np.zeros((10, 1)); m[3] = 1
    >>> np.flatnonzero(released(m, 2))
    array([3, 7])
    """
    chosen = np.zeros(matrix.shape, bool)
    last = len(matrix) - 1
    for i, best in enumerate(matrix.argmax(axis=0)):
        places = np.arange(len(matrix))
        places[[best, last]] = places[[last, best]]
        chosen[places[::-rho][:rho], i] = True
    return chosen


def overlaps(chosen: np.ndarray) -> np.ndarray:
    """|Q_i ∩ Q_j| / |Q_i ∪ Q_j| of all pairs i < j of the sets (…, factors, latents), as (…, pairs).

    >>> overlaps(np.array([[True, False], [True, True]]))
    array([0.5])
    """
    i, j = np.triu_indices(chosen.shape[-2], 1)
    a, b = chosen[..., i, :], chosen[..., j, :]
    return (a & b).sum(axis=-1) / np.maximum((a | b).sum(axis=-1), 1)


def _per_factor(pairs: np.ndarray, factors: int) -> np.ndarray:
    """The mean overlap of each factor with the others."""
    square = np.zeros((factors, factors))
    square[np.triu_indices(factors, 1)] = pairs
    return (square + square.T).sum(axis=1) / (factors - 1)


def _check(rho: int, latents: int) -> None:
    if not 1 <= rho <= latents:
        raise ValueError(f"rho={rho}: {latents} latents are active, so rho is between 1 and {latents}")
