"""Interventional robustness score: how little a latent moves while one factor is fixed (Suter et al. 2019).

For latent l and factor i with values v, over the rows with g_i = v: d_li(v) is the 0.99 quantile of |z_l − mean z_l|. With
D_l = max |z_l − mean z_l| over all rows,

    R_li = 1 − mean_v d_li(v) / D_l        IRS = Σ_l D_l · max_i R_li / Σ_l D_l

as in disentanglement_lib, with factors in 20 bins; the paper takes the maximum, `quantile=1`. The quantile is in the
numerator alone, so that codes without any relation to the factors score well above 0, and a latent that hardly moves can
win: read it beside its permutation null, with the rule `spread`.
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, sample


def irs(
    codes: np.ndarray, factors: np.ndarray, rule: Rule = "varies", bins: int | None = 20, quantile: float = 0.99
) -> Measured:
    """IRS, its matrix R (latents, factors), and per factor the largest R over latents, whose mean is `irs_chosen`.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> irs(g, g).value
    1.0
    """
    part = sample(codes, factors, rule, bins)
    if part.empty:
        return part.nothing("irs", "irs_chosen")
    matrix = np.stack([r.mean(axis=0) for r in robustness(part.codes, part.labels, quantile)], axis=1)
    value = float(np.average(matrix.max(axis=1), weights=_reach(part.codes)))
    return part.measured({"irs": value, "irs_chosen": float(matrix.max(axis=0).mean())}, matrix, matrix.max(axis=0))


def robustness(codes: np.ndarray, labels: np.ndarray, quantile: float = 0.99) -> list[np.ndarray]:
    """1 − d_li(v) / D_l for every factor i, as (values, latents); the mean over values is a column of R."""
    scaled = codes / (4 * _reach(codes))
    return [1 - 4 * _quantiles(scaled, column, quantile) for column in labels.T]


def _reach(codes: np.ndarray) -> np.ndarray:
    return np.abs(codes - codes.mean(axis=0)).max(axis=0)


def _quantiles(codes: np.ndarray, labels: np.ndarray, quantile: float) -> np.ndarray:
    """The quantile of |z − group mean| in every group, (groups, latents), for codes whose range is at most ½.

    One sort of (group + deviation) per latent puts every group's deviations in order at once.
    """
    order = np.argsort(labels.astype(np.int16) if labels.max() < 2**15 else labels, kind="stable")  # a radix sort
    counts = np.bincount(labels)
    starts = np.cumsum(counts) - counts
    grouped = codes[order]
    means = np.add.reduceat(grouped, starts) / counts[:, None]
    group = np.repeat(np.arange(len(counts), dtype=float), counts)
    keys = np.sort(np.ascontiguousarray(np.abs(grouped - np.repeat(means, counts, axis=0)).T) + group, axis=1)
    rank = quantile * (counts - 1)
    low = rank.astype(int)
    lower, upper = keys[:, starts + low], keys[:, starts + np.minimum(low + 1, counts - 1)]
    return (lower + (upper - lower) * (rank - low) - np.arange(len(counts))).T
