"""Concept Sensitivity Metric: ratios of two branches' sensitivities, their smoothed logarithm, bootstrap draws.

CSM_S = R_Δa / S_Δa and CSM_R = S_Δi / R_Δi (Gupta, Saini and Narayanan, ICVGIP 2022), where R_Δa is the share of test images
whose loss in the reflectance branch falls when the activation moves towards the concept "albedo changes". The paper does
not say how ratios of many concept sets become one number; its tables fit a ratio of averages best. A set without a
sensitivity is NaN here and left out of the average it would be in.
"""

import numpy as np


def ratio_of_averages(above: np.ndarray, below: np.ndarray) -> float:
    """mean(above)/mean(below) over concept sets, each mean over the sets that have a value; NaN where there is none.

    >>> ratio_of_averages(np.array([0.2, 0.6]), np.array([0.1, np.nan])), ratio_of_averages(np.ones(1), np.zeros(1))
    (4.0, nan)
    """
    top, bottom = _mean(above), _mean(below)
    return float(top / bottom) if bottom > 0 else float("nan")


def mean_of_ratios(above: np.ndarray, below: np.ndarray) -> float:
    """mean(above/below) over the sets that have both and a positive denominator; one small denominator dominates it.

    >>> mean_of_ratios(np.array([0.2, 0.6, 0.5]), np.array([0.1, 0.6, 0.0]))
    1.5
    """
    known = ~np.isnan(above) & (below > 0)
    return float(np.mean(above[known] / below[known])) if known.any() else float("nan")


def smoothed(share: np.ndarray, n: int) -> np.ndarray:
    """(k + ½)/(n + 1) for a share k/n: never 0, never 1.

    >>> smoothed(np.array([0.0, 0.5, 1.0]), 9)
    array([0.05, 0.5 , 0.95])
    """
    return (np.asarray(share) * n + 0.5) / (n + 1)


def log_ratio(above: np.ndarray, below: np.ndarray, n: int) -> float:
    """The mean over sets of ln(smoothed above / smoothed below), n test images: 0 where the branches do not differ.

    >>> round(log_ratio(np.array([1.0, 0.5]), np.array([0.0, 0.5]), 9), 3)
    1.472
    """
    both = np.log(smoothed(above, n)) - np.log(smoothed(below, n))
    return float(_mean(both))


def resampled(negative: np.ndarray, images: np.ndarray, cavs: np.ndarray) -> np.ndarray:
    """The share of negative signs (images, CAVs) in every bootstrap draw of images × CAVs, (draws,).

    `images` (draws, images) and `cavs` (draws, CAVs) say how often each is drawn: both are resampled, because signs that
    share an image or a CAV are not independent.

    >>> resampled(np.array([[True, False]]), np.array([[1]]), np.array([[2, 0], [1, 1]]))
    array([1. , 0.5])
    """
    return ((images @ negative.astype(float)) * cavs).sum(axis=1) / (images.sum(axis=1) * cavs.sum(axis=1))


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
