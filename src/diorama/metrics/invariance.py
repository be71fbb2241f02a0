"""Illumination invariance without ground truth: how much of the light's change is left in the reflectance.

For images I_v of one scene under lights v and answers R_v: the variance over v of log R_v, each shifted to zero mean over
the mask (so that no image's scale matters), divided by the same for log I_v. 0: the answer ignores the light; 1: it
changes as much as the image. Constant reflectance scores 0 without being right, hence `texture` beside it.
"""

import numpy as np


def centred_log(layer: np.ndarray, mask: np.ndarray, floor: float = 1e-3) -> np.ndarray:
    """log of a gray (h, w) layer on the mask, at least `floor` times its mean, shifted to zero mean.

    >>> centred_log(np.array([[1.0, np.e]]), np.ones((1, 2), bool)).round(6)
    array([-0.5,  0.5])
    """
    inside = layer[mask].astype(np.float64)
    mean = inside.mean()
    logs = np.log(np.maximum(inside, floor * mean)) if mean > 0 else np.zeros(len(inside))
    return logs - logs.mean()


def invariance(answers: np.ndarray, images: np.ndarray) -> float:
    """Variance over lights of centred logs (views, pixels), of the answers over that of the images; NaN if those agree.

    >>> images = np.array([[-1.0, 1.0], [1.0, -1.0]])
    >>> invariance(images, images), invariance(images / 2, images), invariance(images[:1].repeat(2, 0), images)
    (1.0, 0.25, 0.0)
    """
    change = images.var(axis=0).mean()
    return float(answers.var(axis=0).mean() / change) if change > 0 else float("nan")


def texture(answers: np.ndarray, images: np.ndarray) -> float:
    """Variance over pixels of the mean answer over that of the mean image: 0 for constant reflectance."""
    detail = images.mean(axis=0).var()
    return float(answers.mean(axis=0).var() / detail) if detail > 0 else float("nan")
