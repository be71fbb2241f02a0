"""MCC and R²: how identifiability is measured today (Hyvärinen & Morioka 2016; Khemakhem et al. 2020)."""

from typing import Literal

import numpy as np

from diorama.metrics.codes import Measured, Rule, checked, halves, sample

Correlation = Literal["linear", "spearman"]


def mcc(codes: np.ndarray, factors: np.ndarray, kind: Correlation = "linear", rule: Rule = "varies") -> Measured:
    """Mean over factors of |correlation| with the latent assigned to them; no latent is assigned to two factors.

    The assignment is the one with the largest sum. `spearman` correlates ranks and so forgives monotone distortions. A
    factor counts as a number: of factors without an order (shape, scene) it depends on how their values are numbered.
    Factors beyond the number of latents count 0. The matrix is |correlation|; per factor: that of its latent.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> round(mcc(-g[:, ::-1] * 3.0, g).value, 6), round(mcc(np.exp(g), g, "spearman").value, 6)
    (1.0, 1.0)
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.stats import rankdata

    name = "mcc" if kind == "linear" else "mcc_spearman"
    part, values = sample(codes, factors, rule), checked(codes, factors)[1]
    if part.empty:
        return part.nothing(name)
    g = values[:, part.varying]
    ranked = kind == "spearman"
    matrix = np.abs(_correlations(*(rankdata(x, axis=0) if ranked else x for x in (part.codes, g))))
    latents, columns = linear_sum_assignment(-matrix)
    per_factor = np.zeros(g.shape[1])
    per_factor[columns] = matrix[latents, columns]
    return part.measured({name: float(per_factor.mean())}, matrix, per_factor)


def r2(codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator, rule: Rule = "varies") -> Measured:
    """Mean over factors of the R² of a linear regression on all codes, fitted on half of the rows, judged on the other.

    R² = 1 − Σ(g − ĝ)² / Σ(g − mean g)² on the judged half; it is below 0 where the regression is worse than the mean. The
    matrix is |weight| for standardised codes.

    >>> g = np.array([[i, j] for i in range(8) for j in range(8)])
    >>> round(r2(g @ np.array([[1.0, 2.0], [0.5, -1.0]]), g, np.random.default_rng(0)).value, 6)
    1.0
    """
    part, values = sample(codes, factors, rule), checked(codes, factors)[1]
    if part.empty:
        return part.nothing("r2")
    g = values[:, part.varying]
    fitted, judged = halves(len(g), 0.5, rng)
    x = np.column_stack([part.codes, np.ones(len(g))])
    weights = np.linalg.lstsq(x[fitted], g[fitted], rcond=None)[0]
    residual = ((g[judged] - x[judged] @ weights) ** 2).sum(axis=0)
    total = ((g[judged] - g[judged].mean(axis=0)) ** 2).sum(axis=0)
    per_factor = np.where(total > 0, 1 - residual / np.where(total > 0, total, 1), np.nan)
    value = float(np.nanmean(per_factor)) if (total > 0).any() else float("nan")
    return part.measured({"r2": value}, np.abs(weights[:-1]) * part.codes.std(axis=0)[:, None], per_factor)


def _correlations(z: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Pearson's correlation of every column of z with every column of g."""
    a, b = (x - x.mean(axis=0) for x in (z, g))
    return (a.T @ b) / np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
