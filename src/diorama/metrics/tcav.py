"""TCAV: the share of images whose prediction rises along a concept's direction, and whether that share means anything.

Kim et al. 2018. The sign is explicit: +1 for gradients of a logit (the concept raises it where gradient·direction > 0),
−1 for gradients of a loss (it helps where gradient·direction < 0). The two give different scores (tensorflow/tcav#124).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diorama.metrics.cav import Draw, fit_gram
from diorama.metrics.cav_trainers import Options, Trainer

Sign = Literal[-1, 1]
#: CAVs of relabelled images that are fitted at once.
RELABELLED = 512


def share(derivatives: np.ndarray, sign: Sign) -> np.ndarray:
    """The TCAV score of directional derivatives (…, n), however they were computed. Zero counts as no effect.

    >>> share(np.array([[-1.0, 0.0, 2.0, -3.0]]), -1)
    array([0.5])
    """
    return (sign * derivatives > 0).mean(axis=-1)


def scores_of(coefficients: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Directional derivatives (k, n) of CAVs in dual form, from cross = gram(gradients, rows they were fitted on).

    Each trainer's coefficients but hinge SGD's sum to zero, so that the origin of the rows does not matter.

    >>> scores_of(np.array([[1.0, -1.0]]), np.array([[3.0, 1.0], [0.0, 2.0]]))
    array([[ 2., -2.]])
    """
    return coefficients @ cross.T


def strength(coefficients: np.ndarray, gram: np.ndarray, cross: np.ndarray, sign: Sign) -> np.ndarray:
    """sign · mean over images of gradient·w/‖w‖, for CAVs in dual form (k,). Unlike the share it does not saturate: where
    gradients are alike, near the output, any direction has a share of 0 or 1.

    >>> strength(np.array([[2.0, 0.0]]), np.eye(2), np.array([[3.0, 1.0], [1.0, 2.0]]), 1)
    array([2.])
    """
    length = np.sqrt(np.maximum(((coefficients @ gram) * coefficients).sum(axis=1), 1e-300))
    return sign * scores_of(coefficients, cross).mean(axis=1) / length


def t_test(concept: np.ndarray, random: np.ndarray) -> float:
    """The published p: a two-sided t-test with equal variances of the scores of concept and of random CAVs.

    These scores share test images and random sets, so p gets as small as one likes with more runs. NaN where it is
    undefined: fewer than two scores on a side, or all scores the same.

    >>> round(t_test(np.array([0.8, 0.9, 0.85]), np.array([0.5, 0.4, 0.6])), 4), t_test(np.ones(3), np.ones(3))
    (0.0056, nan)
    """
    from scipy.stats import ttest_ind

    if min(len(concept), len(random)) < 2:
        return float("nan")
    if np.ptp(concept) == 0 and np.ptp(random) == 0:
        return float("nan") if concept[0] == random[0] else 0.0
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one side may be constant
        return float(ttest_ind(random, concept).pvalue)


def sign_tests(concept: np.ndarray, random: np.ndarray, images: int) -> np.ndarray:
    """p of every CAV alone (k,): the same t-test of its signs on the test images against those of all random CAVs.

    `concept` (k,) and `random` (m,) are scores, shares of the same `images`: signs are 0 or 1, so that shares determine the
    test. NaN where no sign differs from any other.

    >>> sign_tests(np.array([0.9, 0.5]), np.array([0.4, 0.6]), 20).round(4)
    array([0.002, 1.   ])
    """
    from scipy.stats import ttest_ind_from_stats

    def deviation(share: np.ndarray, n: int) -> np.ndarray:
        return np.sqrt(share * (1 - share) * n / max(n - 1, 1))

    chance, many = random.mean(), images * len(random)
    with np.errstate(all="ignore"):
        test = ttest_ind_from_stats(concept, deviation(concept, images), images, chance, deviation(chance, many), many)
    constant = (deviation(concept, images) == 0) & (deviation(chance, many) == 0)
    return np.where(constant, np.where(concept == chance, np.nan, 0.0), test.pvalue)


def permutation_p(observed: float, null: np.ndarray) -> float:
    """p = #{|Tᵦ − c| ≥ |T₀ − c|} / (B + 1) over all B + 1 values, the observed one included; c is their mean.

    Exact where the observed value and the others are exchangeable, two-sided, never zero.

    >>> permutation_p(0.9, np.array([0.5, 0.4, 0.6]))
    0.25
    """
    everything = np.append(null, observed)
    distance = np.abs(everything - everything.mean())
    return float((distance >= distance[-1] - 1e-12).mean())


@dataclass(frozen=True, slots=True, eq=False)
class Permuted:
    """The mean strength of the concept's CAVs, that of each relabelling, and p."""

    observed: float
    null: np.ndarray
    p: float


def permutation_test(
    trainer: str | Trainer,
    gram: np.ndarray,
    cross: np.ndarray,
    draws: Sequence[Draw],
    sign: Sign,
    rng: np.random.Generator,
    permutations: int = 199,
    options: Options | None = None,
) -> Permuted:
    """Does the concept's mean strength stand out when its name is given to random images instead?

    Each relabelling shuffles all images, the concept's and the negatives, over the rows that `draws` name, and fits the CAVs
    again, in the Gram space. If the concept is a random set like any other, its strength is exchangeable with those.
    `cross` (n, rows) is gram(gradients, rows).
    """
    count, each = len(gram), max(RELABELLED // max(len(draws), 1), 1)
    orders = [np.arange(count), *(rng.permutation(count) for _ in range(permutations))]
    means = []
    for start in range(0, len(orders), each):
        shuffled = [(order[a], order[b]) for order in orders[start : start + each] for a, b in draws]
        a = fit_gram(trainer, gram, shuffled, rng, options, 0.0).coefficients
        means.append(strength(a, gram, cross, sign).reshape(-1, len(draws)).mean(axis=1))
    observed, *null = np.concatenate(means)
    return Permuted(float(observed), np.array(null), permutation_p(observed, np.array(null)))


def gram_cosines(coefficients: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """The cosines of CAVs in dual form: aKa′ over their norms, without the directions themselves.

    >>> gram_cosines(np.array([[1.0, 0.0], [1.0, 1.0]]), np.eye(2)).round(2)
    array([[1.  , 0.71],
           [0.71, 1.  ]])
    """
    inner = coefficients @ gram @ coefficients.T
    norm = np.sqrt(np.diag(inner))
    return inner / norm[:, None] / norm
