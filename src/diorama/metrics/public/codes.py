"""Disentanglement: codes (N, M) against factors (N, F), which may be words.

Factors are an array, a table of columns by name, or a list of records by name. The interval resamples rows: value ± 1.96
standard errors over `resamples` bootstrap samples (resampled rows repeat, which lifts scores that count coincidences:
that is why no percentiles are used). Scores that fit models have `resamples=0` by default: each would fit them again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from diorama.metrics.beta_vae import beta_vae_score
from diorama.metrics.cg import Judge, effects
from diorama.metrics.cg import cg as cg_score
from diorama.metrics.codes import Measured, active
from diorama.metrics.dci import Estimator
from diorama.metrics.dci import dci as dci_score
from diorama.metrics.factor_vae import factor_vae_score
from diorama.metrics.infomec import infomec as infomec_score
from diorama.metrics.irs import irs as irs_score
from diorama.metrics.irs import robustness
from diorama.metrics.mig import mig as mig_score
from diorama.metrics.modularity import explicitness as explicitness_score
from diorama.metrics.modularity import modularity as modularity_score
from diorama.metrics.public.measurement import Measurement, mean_of, resampled
from diorama.metrics.sap import sap as sap_score
from diorama.metrics.uc import top
from diorama.metrics.uc import uc as uc_score

Score = Callable[[np.ndarray, np.ndarray], Measured]


def factor_table(factors: Any) -> np.ndarray:
    """Factors as numbers (N, F): columns of numbers stay as they are, words are numbered in alphabetical order.

    >>> factor_table([{"shape": "cube", "size": 1.5}, {"shape": "ball", "size": 2.0}]).tolist()
    [[1.0, 1.5], [0.0, 2.0]]
    """
    if isinstance(factors, Mapping):
        columns = [np.asarray(column) for column in factors.values()]
    elif isinstance(factors, Sequence) and len(factors) and isinstance(factors[0], Mapping):
        columns = [np.asarray([record[name] for record in factors]) for name in factors[0]]
    else:
        array = np.asarray(factors)
        if array.ndim not in (1, 2):
            raise ValueError(f"factors have shape {array.shape}: give (images, factors)")
        columns = [array] if array.ndim == 1 else list(array.T)
    return np.stack([_numbers(column) for column in columns], axis=1)


def _numbers(column: np.ndarray) -> np.ndarray:
    """A column as numbers: an object column may hold numbers, or words."""
    if column.dtype.kind in "bifu":
        return column.astype(np.float64)
    if all(isinstance(value, int | float | np.number) for value in column.tolist()):
        return column.astype(np.float64)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)


def _measurement(codes: Any, factors: Any, score: Score, resamples: int, seed: int) -> Measurement:
    z, g = np.asarray(codes, np.float64), factor_table(factors)
    own = score(z, g)
    name = next(iter(own.values))
    cut = resampled(name, lambda rows: score(z[rows], g[rows]).value, len(z), seed, resamples, dict(own.values))
    lacks = f"{int(own.active.sum())} latents are active: too few, or no factor varies"
    why = "" if own.value == own.value else lacks
    return Measurement(name, own.value, cut.interval, len(z), dict(own.values), matrix=own.matrix, reason=why)


def mig(codes: Any, factors: Any, resamples: int = 20, seed: int = 0) -> Measurement:
    """Mutual information gap, with MIG-sup and DMIG (Chen et al. 2018); 1 is best. Small samples bias it downwards.

    >>> g = np.array([[i, j] for i in "abcd" for j in "wxyz"])
    >>> z = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> round(mig(z, g, resamples=0).value, 6)
    1.0
    """
    return _measurement(codes, factors, mig_score, resamples, seed)


def irs(codes: Any, factors: Any, resamples: int = 20, seed: int = 0) -> Measurement:
    """Interventional robustness score (Suter et al. 2019); 1 is best. Unrelated codes score well above 0."""
    return _measurement(codes, factors, irs_score, resamples, seed)


def uc(codes: Any, factors: Any, rho: int = 1, resamples: int = 20, seed: int = 0) -> Measurement:
    """Unconfoundedness: do factors live in latents of their own, ρ for each (Reddy et al. 2022)? 1 is best."""
    return _measurement(codes, factors, lambda z, g: uc_score(z, g, rho), resamples, seed)


def sap(codes: Any, factors: Any, resamples: int = 20, seed: int = 0) -> Measurement:
    """Separated attribute predictability (Kumar et al. 2018); higher is better."""
    return _measurement(codes, factors, lambda z, g: sap_score(z, g, np.random.default_rng(seed)), resamples, seed)


def modularity(codes: Any, factors: Any, resamples: int = 20, seed: int = 0) -> Measurement:
    """Does a latent serve one factor (Ridgeway & Mozer 2018)? 1 is best; untrained networks score high too."""
    return _measurement(codes, factors, modularity_score, resamples, seed)


def explicitness(codes: Any, factors: Any, resamples: int = 0, seed: int = 0) -> Measurement:
    """Can all factors be read off linearly (Ridgeway & Mozer 2018)? An area under the ROC curve: ½ is chance."""
    return _measurement(
        codes, factors, lambda z, g: explicitness_score(z, g, np.random.default_rng(seed)), resamples, seed
    )


def dci(
    codes: Any, factors: Any, estimator: Estimator = "extra_trees", resamples: int = 0, seed: int = 0
) -> Measurement:
    """Disentanglement, with completeness and informativeness (Eastwood & Williams 2018); 1 is best. Needs scikit-learn."""

    def score(z: np.ndarray, g: np.ndarray) -> Measured:
        return dci_score(z, g, np.random.default_rng(seed), estimator=estimator)

    return _measurement(codes, factors, score, resamples, seed)


def infomec(codes: Any, factors: Any, resamples: int = 0, seed: int = 0) -> Measurement:
    """Modularity, with explicitness and compactness by information (Hsu et al. 2023); 1 is best."""
    return _measurement(codes, factors, infomec_score, resamples, seed)


def beta_vae(codes: Any, factors: Any, resamples: int = 0, seed: int = 0) -> Measurement:
    """The β-VAE score: do differences of codes show which factor was fixed (Higgins et al. 2017)? 1 is best."""
    return _measurement(codes, factors, lambda z, g: beta_vae_score(z, g, np.random.default_rng(seed)), resamples, seed)


def factor_vae(codes: Any, factors: Any, resamples: int = 0, seed: int = 0) -> Measurement:
    """The FactorVAE score: does the latent that varies least name the factor that was fixed (Kim & Mnih 2018)?"""
    return _measurement(
        codes, factors, lambda z, g: factor_vae_score(z, g, np.random.default_rng(seed)), resamples, seed
    )


def cg(judge: Judge, codes: Any, factors: Any, sets: Any = None, rho: int = 1) -> Measurement:
    """Counterfactual generativeness (Reddy et al. 2022): does moving a factor's latents change that factor, and only it?

    `judge(codes)` gives for every factor the probabilities (n, values) of a classifier on the decoded codes, its values in
    order (words: alphabetical). `sets` (M, F) flags the latents of each factor; None takes the ρ that IRS chooses. The
    number is the signed one, with the paper's two beside it; the interval is over images.

    >>> z = np.array([[i, j] for i in (0.0, 1.0) for j in (0.0, 1.0)])
    >>> cg(lambda c: [np.stack([1 - c[:, k], c[:, k]], axis=1) for k in (0, 1)], z, z.astype(int)).value
    1.0
    """
    z, g = np.asarray(codes, np.float64), factor_table(factors)
    labels = np.stack([np.unique(column, return_inverse=True)[1] for column in g.T], axis=1)
    alive = active(z, "spread")
    chosen = _chosen(z, labels, alive, rho) if sets is None else np.asarray(sets, bool)
    own, other = effects(judge, z, labels, chosen, alive)
    lead = mean_of("cg", (own - other).mean(axis=1), (-1.0, 1.0))
    values = cg_score(judge, z, labels, chosen, alive).values
    return Measurement("cg", values["cg"], lead.interval, len(z), dict(values), lead.each, chosen.astype(float))


def _chosen(codes: np.ndarray, labels: np.ndarray, alive: np.ndarray, rho: int) -> np.ndarray:
    """The ρ most robust active latents of every factor."""
    if not 1 <= rho <= int(alive.sum()):
        raise ValueError(
            f"rho={rho}: {int(alive.sum())} latents are active, so rho is between 1 and {int(alive.sum())}"
        )
    matrix = np.full((codes.shape[1], labels.shape[1]), -np.inf)
    matrix[alive] = np.stack([r.mean(axis=0) for r in robustness(codes[:, alive], labels)], axis=1)
    return top(matrix, rho)
