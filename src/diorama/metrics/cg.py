"""Counterfactual generativeness: does moving a factor's latents change that factor, and only it? (Reddy et al. 2022).

For image x with code z and factor i with latents Q_i, p is the classifier's probability of the true value of i on decoded
codes, and ICE_Q = |p(z) − p(z with the latents Q moved to their value farthest from z in the data)|:

    own = ICE of Q_i        other = ICE of all other latents

    Eq. 3 (the definition, of average effects)    mean over factors of |mean over images of own − mean over images of other|
    Eq. 4 (the estimate; the released code)       mean over factors and images of |own − other|

Eq. 4 is never below Eq. 3: differences of both signs cancel before the absolute value in Eq. 3 and add up in Eq. 4. Both
reward wrong assignments: where Q_i does nothing and the others destroy the image, |own − other| is large. `corrected` is the
signed mean of own − other, with both parts, beside the value of random sets of the same size. A
factor that the classifier does not recognise on real images (accuracy below 0.95) has no CG. Moving one latent alone from
its least to its largest value gives the matrix of average causal effects (An et al. 2023), which needs no sets.
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

    `cg` is signed, `cg_eq3` and `cg_eq4` are the paper's two, all over the factors whose classifier is good enough; only
    `active` latents are moved. The matrix is `chosen`; per factor: signed CG.
    """
    own, other = effects(judge, codes, labels, chosen, active)
    known = np.ones(labels.shape[1], bool) if accuracy is None else np.asarray(accuracy) >= ENOUGH
    signed = (own - other).mean(axis=0)
    parts = {
        "cg": signed,
        "cg_own": own.mean(axis=0),
        "cg_other": other.mean(axis=0),
        "cg_eq3": np.abs(signed),
        "cg_eq4": np.abs(own - other).mean(axis=0),
    }
    values = {name: float(part[known].mean()) if known.any() else float("nan") for name, part in parts.items()}
    mask = np.ones(codes.shape[1], bool) if active is None else active
    return Measured(values, chosen.astype(float), np.where(known, signed, np.nan), mask)


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
    """Random sets of active latents of the same sizes as `chosen`: the null of CG.

    >>> random_sets(np.array([[True], [False]]), np.array([True, True]), np.random.default_rng(0)).sum()
    np.int64(1)
    """
    drawn = np.zeros_like(chosen)
    places = np.flatnonzero(active)
    for i, size in enumerate(chosen.sum(axis=0)):
        drawn[rng.choice(places, min(int(size), len(places)), replace=False), i] = True
    return drawn
