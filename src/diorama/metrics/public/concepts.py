"""Concepts: directions in a layer, and how predictions move along them."""

from typing import Any

import numpy as np

from diorama.metrics.cav import draw_sets, fit_gram, gram
from diorama.metrics.csm import ratio_of_averages
from diorama.metrics.csm import resampled as resampled_shares
from diorama.metrics.public.measurement import Measurement, resampled
from diorama.metrics.tcav import Sign, permutation_test, scores_of


def tcav(
    gradients: Any,
    concept: Any,
    others: Any,
    sign: Sign = 1,
    trainer: str = "ridge",
    runs: int = 30,
    permutations: int = 199,
    seed: int = 0,
) -> Measurement:
    """TCAV (Kim et al. 2018): the share of images whose prediction rises along the concept's direction.

    `gradients` (n, d) of the logit by a layer for each test image (of a loss: `sign=-1`), activations of the concept's
    images (p, d) and of other images (m, d). The number is the mean over `runs` CAVs, each fitted on two thirds of the
    concept's images and as many others; the interval resamples test images and CAVs, as signs that share either are not
    independent. Beside it: the same for random images against random images, held-out accuracy, and `permutation_p`:
    whether the concept's mean strength stands out among those of random images labelled as the concept.

    >>> x = np.random.default_rng(0).normal(size=(40, 3))
    >>> tcav(np.ones((5, 3)) * [1, 0, 0], x[:20] + [9, 0, 0], x[20:], permutations=19).value
    1.0
    """
    g, p, m = (np.asarray(x, np.float32).reshape(len(x), -1) for x in (gradients, concept, others))
    if len(p) < 2 or len(m) < 2 or g.shape[1] != p.shape[1] or p.shape[1] != m.shape[1]:
        raise ValueError(
            f"gradients {g.shape}, concept {p.shape}, others {m.shape}: give (images, d), at least two of both"
        )
    rows, generator = np.vstack([p, m]), np.random.default_rng(seed)
    kernel, cross = gram(rows, None, m.mean(axis=0)), gram(g, rows - m.mean(axis=0))
    draws = [(a, b + len(p)) for a, b in draw_sets(len(p), len(m), runs, generator)]
    cavs = fit_gram(trainer, kernel, draws, generator)
    rising = sign * scores_of(cavs.coefficients, cross) > 0
    null = _random_score(trainer, kernel, cross, len(p), len(m), runs, sign, generator)
    tested = permutation_test(trainer, kernel, cross, draws, sign, generator, permutations)
    value = float(rising.mean())
    beside = {"tcav": value, "random": null, "accuracy": float(np.nanmean(cavs.accuracy)), "permutation_p": tested.p}
    return Measurement("tcav", value, _interval(rising, generator), len(g), beside, rising.mean(axis=0))


def _random_score(
    trainer: str, kernel: np.ndarray, cross: np.ndarray, p: int, m: int, runs: int, sign: Sign, rng: np.random.Generator
) -> float:
    """The mean share for CAVs of random images against other random images."""
    half = min(m // 2, p)
    if half < 2:
        return float("nan")
    orders = [rng.permutation(m) + p for _ in range(runs)]
    cavs = fit_gram(trainer, kernel, [(order[:half], order[half : 2 * half]) for order in orders], rng)
    return float((sign * scores_of(cavs.coefficients, cross) > 0).mean())


def _interval(rising: np.ndarray, rng: np.random.Generator, resamples: int = 999) -> tuple[float, float] | None:
    """The middle 95 % of the share over resamples of CAVs and images (CAVs, images)."""
    cavs, images = rising.shape
    if images < 3 or cavs < 3:
        return None
    times = [rng.multinomial(n, np.full(n, 1 / n), resamples) for n in (images, cavs)]
    low, high = np.quantile(resampled_shares(rising.T, *times), [0.025, 0.975])
    return float(low), float(high)


def csm(above: Any, below: Any, resamples: int = 999, seed: int = 0) -> Measurement:
    """Concept sensitivity metric: the ratio of two branches' mean sensitivities over concept sets (Gupta et al. 2022).

    `above` and `below` (sets,) are shares of test images, NaN for a set without one. The interval resamples sets.

    >>> csm([0.2, 0.6, 0.4], [0.1, 0.3, 0.2]).value
    2.0
    """
    top, bottom = np.asarray(above, float), np.asarray(below, float)
    if top.shape != bottom.shape or top.ndim != 1:
        raise ValueError(f"above {top.shape} and below {bottom.shape}: give one share for each concept set in both")
    return resampled("csm", lambda rows: ratio_of_averages(top[rows], bottom[rows]), len(top), seed, resamples, {})
