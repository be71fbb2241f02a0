"""Counterfactual generativeness: does moving a factor's latents change that factor, and only it? (Reddy et al. 2022).

For image x with code z and factor i with latents Q_i, p is the classifier's probability of the true value of i on decoded
codes, and ICE_Q = |p(z) − p(z with the latents Q moved to their value farthest from z in the data)|:

    own = ICE of Q_i        other = ICE of all other latents        published CG = mean over factors and images |own − other|

The absolute value rewards wrong assignments: where Q_i does nothing and the others destroy the image, |own − other| is
large. `corrected` is the signed mean of own − other, with both parts, beside the value of random sets of the same size. A
factor that the classifier cannot tell on real images (accuracy below 0.95) has no CG. Moving a latent by itself from its
least to its largest value gives the matrix of average causal effects (An et al. 2023), which needs no sets at all.
"""

from collections.abc import Callable

import numpy as np

from diorama.metrics.codes import Measured

#: codes (n, M) → for every factor the probabilities (n, values) of the classifier on the decoded codes.
Judge = Callable[[np.ndarray], list[np.ndarray]]
#: Accuracy on real images below which a factor's CG is undefined.
ENOUGH = 0.95


def farthest(codes: np.ndarray) -> np.ndarray:
    """For every entry the value of its column that is farthest from it: always the column's least or largest.

    >>> farthest(np.array([[0.0], [1.0], [4.0]])).ravel()
    array([4., 4., 0.])
    """
    low, high = codes.min(axis=0), codes.max(axis=0)
    return np.where(codes - low > high - codes, low, high)


def cg(
    judge: Judge,
    codes: np.ndarray,
    labels: np.ndarray,
    chosen: np.ndarray,
    active: np.ndarray | None = None,
    accuracy: np.ndarray | None = None,
) -> Measured:
    """CG of the sets `chosen` (M, F), with (1 + 2F)·N decodes; labels (N, F) index the judge's probabilities.

    `cg` is signed, `cg_absolute` as published, both over the factors whose classifier is good enough; only `active` latents
    are moved. The matrix is `chosen`; per factor: signed CG.
    """
    own, other = effects(judge, codes, labels, chosen, active)
    known = np.ones(labels.shape[1], bool) if accuracy is None else np.asarray(accuracy) >= ENOUGH
    signed = np.where(known, (own - other).mean(axis=0), np.nan)
    parts = {"cg": own - other, "cg_own": own, "cg_other": other, "cg_absolute": np.abs(own - other)}
    values = {name: float(part[:, known].mean()) if known.any() else float("nan") for name, part in parts.items()}
    mask = np.ones(codes.shape[1], bool) if active is None else active
    return Measured(values, chosen.astype(float), signed, mask)


def effects(
    judge: Judge, codes: np.ndarray, labels: np.ndarray, chosen: np.ndarray, active: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ICE (N, F) of each factor's own latents, and of all other active ones."""
    factual, far = judge(codes), farthest(codes)
    movable = np.ones(codes.shape[1], bool) if active is None else active
    rows, own, other = np.arange(len(codes)), np.empty(labels.shape), np.empty(labels.shape)
    for i, label in enumerate(labels.T):
        before = factual[i][rows, label]
        for out, moved in ((own, chosen[:, i] & movable), (other, ~chosen[:, i] & movable)):
            out[:, i] = np.abs(before - judge(np.where(moved, far, codes))[i][rows, label])
    return own, other


def random_sets(chosen: np.ndarray, active: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sets of the same sizes drawn from the active latents: the null of CG.

    >>> random_sets(np.array([[True], [False]]), np.array([True, True]), np.random.default_rng(0)).sum()
    np.int64(1)
    """
    drawn = np.zeros_like(chosen)
    places = np.flatnonzero(active)
    for i, size in enumerate(chosen.sum(axis=0)):
        drawn[rng.choice(places, min(int(size), len(places)), replace=False), i] = True
    return drawn


def average_causal_effects(judge: Judge, codes: np.ndarray) -> np.ndarray:
    """(latents, factors): the mean over images of ½ Σ_v |p_v(z_l := max) − p_v(z_l := min)|, with 2·M·N decodes.

    >>> half = lambda z: [np.stack([z[:, 0], 1 - z[:, 0]], axis=1)]
    >>> average_causal_effects(half, np.array([[0.0, 0.0], [1.0, 5.0]])).ravel()
    array([1., 0.])
    """
    found = []
    for latent in range(codes.shape[1]):
        low, high = codes.copy(), codes.copy()
        low[:, latent], high[:, latent] = codes[:, latent].min(), codes[:, latent].max()
        pairs = zip(judge(high), judge(low), strict=True)
        found.append([float(np.abs(a - b).sum(axis=1).mean() / 2) for a, b in pairs])
    return np.array(found)
