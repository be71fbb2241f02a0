"""InfoMEC: modularity, explicitness and compactness by information (Hsu et al. 2023).

NMI_li = I(z_l; g_i) / H(g_i), with I between a continuous latent and a discrete factor by nearest neighbours (Ross 2014;
k = 10). Over the latents whose range exceeds 1/20 of the largest,

    InfoM = (mean_l max_i NMI_li / Σ_i NMI_li − 1/F) / (1 − 1/F)      InfoC likewise over factors, with 1/M
    InfoE = mean_i 1 − (log loss of logistic regression of g_i on all latents) / (log loss without latents)

InfoE is fitted and judged on the same rows without a penalty, classes balanced, at most 100 steps, as released.
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, active, checked, entropy, mutual_information, sample, standardised
from diorama.metrics.regression import Softmax

#: At most this many distinct values make a latent discrete: neighbours of a repeated value are all at distance 0.
DISCRETE = 64


def infomec(
    codes: np.ndarray, factors: np.ndarray, rule: Rule = "range", k: int = 10, explicit: bool = True
) -> Measured:
    """InfoM, InfoE, InfoC; the matrix is NMI; per factor: its share of InfoC before normalising.

    `explicit=False` leaves out InfoE, which takes most of the time and has no null to compare it with.
    Latents with few distinct values count as discrete: their information is that of the values themselves.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)] * 8)
    >>> {name: round(value, 2) for name, value in infomec(g, g).values.items() if name != "info_e"}
    {'info_m': 1.0, 'info_c': 1.0}
    """
    part = sample(codes, factors, rule)
    if part.empty:
        return part.nothing(*(("info_m", "info_e", "info_c") if explicit else ("info_m", "info_c")))
    nmi = np.stack([_information(z, part.labels, k) for z in part.codes.T]) / entropy(part.labels)
    compact = _share(nmi)
    whole = checked(codes, factors)[0]
    values = {"info_m": _normalised(_share(nmi.T), part.labels.shape[1])}
    if explicit:
        values["info_e"] = _explicit(whole[:, active(whole, "varies")], part.labels)
    values["info_c"] = _normalised(compact, part.codes.shape[1])
    return part.measured(values, nmi, compact)


def _information(z: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    values, place = np.unique(z, return_inverse=True)
    if len(values) <= DISCRETE:
        return mutual_information(place[:, None], labels)[0]
    return np.array([neighbour_information(z, column, k) for column in labels.T])


def neighbour_information(z: np.ndarray, labels: np.ndarray, k: int = 10) -> float:
    """I(z; label) in nats of one continuous latent by nearest neighbours: ψ(N) + ⟨ψ(k)⟩ − ⟨ψ(N_class)⟩ − ⟨ψ(m)⟩ (Ross 2014).

    m counts the rows of any class closer than the k-th neighbour of the same class. Classes of one row do not count.

    >>> z = np.linspace(0, 1, 200)
    >>> round(neighbour_information(z, (z > 0.5).astype(int), 3), 2)
    0.69
    """
    from scipy.special import digamma

    counts = np.bincount(labels)
    enough = counts[labels] > 1
    z, labels, counts = z[enough], labels[enough], np.bincount(labels[enough])
    if not len(z):
        return 0.0
    order = np.lexsort((z, labels))
    radius = np.empty(len(z))
    neighbours = np.minimum(k, counts - 1)
    for start, count, near in zip(np.cumsum(counts) - counts, counts, neighbours, strict=True):
        if count:
            rows = order[start : start + count]
            radius[rows] = _nearest(z[rows], int(near)) * (1 - 1e-7)  # closer than: z + radius would round back
    ordered = np.sort(z)
    m = np.searchsorted(ordered, z + radius, "right") - np.searchsorted(ordered, z - radius, "left")
    terms = digamma(neighbours[labels]) - digamma(counts[labels]) - digamma(np.maximum(m, 1))
    return float(max(digamma(len(z)) + terms.mean(), 0.0))


def _nearest(ordered: np.ndarray, k: int) -> np.ndarray:
    """The distance of every entry of a sorted array to its k-th neighbour: it ends one of k + 1 windows."""
    padded = np.concatenate([np.full(k, -np.inf), ordered, np.full(k, np.inf)])
    n = len(ordered)
    ends = [np.maximum(ordered - padded[j : j + n], padded[j + k : j + k + n] - ordered) for j in range(k + 1)]
    return np.min(ends, axis=0)


def _share(nmi: np.ndarray) -> np.ndarray:
    """The largest entry of every column over its sum; 1 over the length where the sum is 0: nothing is concentrated."""
    total = nmi.sum(axis=0)
    return np.where(total > 0, nmi.max(axis=0) / np.where(total > 0, total, 1), 1 / len(nmi))


def _normalised(shares: np.ndarray, count: int) -> float:
    return float((shares.mean() - 1 / count) / (1 - 1 / count)) if count > 1 else float("nan")


def _explicit(codes: np.ndarray, labels: np.ndarray) -> float:
    x = standardised(codes)
    return float(np.mean([_predictive(x, column) for column in labels.T]))


def _predictive(x: np.ndarray, labels: np.ndarray) -> float:
    logs = Softmax.fit(x, labels, penalty=0.0, balanced=True).log_probabilities(x)
    # without latents the balanced fit gives every class the same probability
    return 1 + float(logs[np.arange(len(x)), labels].mean()) / np.log(labels.max() + 1)
