"""Modularity and explicitness: does a latent serve one factor, and can all factors be read off? (Ridgeway & Mozer 2018)."""

import numpy as np

from diorama.metrics.codes import Measured, Rule, binned, halves, mutual_information, sample, standardised
from diorama.metrics.regression import Softmax


def modularity(codes: np.ndarray, factors: np.ndarray, rule: Rule = "varies", bins: int = 20) -> Measured:
    """Mean over latents of 1 − (Σ_i I_i² − max_i I_i²) / (max_i I_i² · (F − 1)), with I_i = I(z; g_i); 0 if max is 0.

    Untrained networks score high (0.87 on sprites): a latent that carries almost nothing can still be modular. Per factor:
    the mean over the latents that serve it best, NaN for a factor that no latent serves.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> modularity(g, g).value
    1.0
    """
    part = sample(codes, factors, rule)
    if part.empty or part.labels.shape[1] < 2:
        return part.nothing("modularity")
    information = mutual_information(binned(part.codes, bins), part.labels)
    squares = information**2
    top = squares.max(axis=1)
    rest = squares.sum(axis=1) - top
    others = part.labels.shape[1] - 1
    per_latent = np.where(top > 0, 1 - rest / np.where(top > 0, top * others, 1), 0.0)
    served = [per_latent[information.argmax(axis=1) == i] for i in range(others + 1)]
    per_factor = np.array([s.mean() if len(s) else np.nan for s in served])
    return part.measured({"modularity": float(per_latent.mean())}, information, per_factor)


def explicitness(
    codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator, rule: Rule = "varies", share: float = 2 / 3
) -> Measured:
    """Mean over factors of the mean one-vs-rest area under the ROC curve of logistic regression on standardised codes.

    Fitted on `share` of the rows, judged on the rest; chance is 0.5. The matrix is |weight| averaged over classes.

    >>> g = np.array([[i, j] for i in range(8) for j in range(2)] * 8)
    >>> explicitness(g, g[:, 1], np.random.default_rng(0)).value
    1.0
    """
    part = sample(codes, factors, rule)
    if part.empty:
        return part.nothing("explicitness")
    train, test = halves(len(part.codes), share, rng)
    x = standardised(part.codes, part.codes[train])
    models = [Softmax.fit(x[train], column[train], penalty=1.0) for column in part.labels.T]
    areas = [_area(m.probabilities(x[test]), c[test]) for m, c in zip(models, part.labels.T, strict=True)]
    weights = np.stack([np.abs(m.weights).mean(axis=1) for m in models], axis=1)
    known = ~np.isnan(areas)
    value = float(np.mean(np.array(areas)[known])) if known.any() else float("nan")
    return part.measured({"explicitness": value}, weights, np.array(areas))


def _area(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """The mean area under the ROC curve over the classes that some, but not all, test rows have."""
    from scipy.stats import rankdata

    areas = []
    for c in range(probabilities.shape[1]):
        own = labels == c
        if own.any() and not own.all():
            ranks = rankdata(probabilities[:, c])
            n, m = own.sum(), (~own).sum()
            areas.append((ranks[own].sum() - n * (n + 1) / 2) / (n * m))
    return float(np.mean(areas)) if areas else float("nan")
