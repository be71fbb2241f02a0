"""What the gradient-domain algorithms share: log intensities, kept gradients, reconstruction (Grosse et al. 2009)."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from diorama.core.answers import Layers
from diorama.core.errors import InputError
from diorama.core.frame import Frame, channel_mean
from diorama.core.guard import Note
from diorama.solvers.dct_cg import reconstruction
from diorama.solvers.l1 import admm, irls
from diorama.solvers.poisson import components, poisson

#: Least squares; L1 by the alternating direction method of multipliers; L1 by reweighting, slow, as released.
Norm = Literal["l2", "l1", "l1_irls"]

#: Intensities are clipped to at least 3/255 of an 8-bit step on the released scale (0 to 257) before the logarithm.
FLOOR = 3 * 255 / 65535


def gray(frame: Frame) -> np.ndarray:
    """The channel mean in linear light, (h, w) float64."""
    return channel_mean(frame.linear())


def clipped_gray(frame: Frame) -> np.ndarray:
    """The channel mean in linear light, clipped from below."""
    return np.maximum(gray(frame), FLOOR)


def channels(frame: Frame) -> np.ndarray:
    """The channels in linear light, (h, w, 3) float64, each clipped from below."""
    return np.maximum(frame.linear().astype(np.float64), FLOOR)


def log_threshold_grid(low: float, high: float, count: int) -> list[float]:
    """`count` thresholds from 10^low to 10^high, evenly spaced in the logarithm."""
    return [float(t) for t in np.logspace(low, high, count)]


def reconstruct(mask: np.ndarray, intensity: np.ndarray, kept: np.ndarray, norm: Norm = "l2") -> list[Layers]:
    """Layers of a gray image from the gradients (edges, n) that are reflectance: R = exp(r), S = I/R, zero off the mask.

    `norm` is the norm of the gradients' residuals: least squares, or L1 by ADMM or by reweighting.
    """
    if (count := components(mask)[1]) > 1:
        _note(f"the mask has {count} separate components: each is reconstructed up to a scale of its own")
    inside = intensity[mask]
    index = np.flatnonzero(mask)
    return [Layers(_fill(mask, index, r), _fill(mask, index, inside / r)) for r in np.exp(_solve(mask, kept, norm)).T]


def _solve(mask: np.ndarray, kept: np.ndarray, norm: Norm) -> np.ndarray:
    if norm == "l2":
        return reconstruction(mask, kept)
    return (admm if norm == "l1" else irls)(poisson(mask), kept)


def check_norm(method: str, norm: str, tuned: str = "", unchosen: bool = False) -> None:
    """Refuse an unknown norm, and an L1 norm without thresholds: those are always tuned with L2 (Grosse et al. 2009)."""
    if norm not in get_args(Norm):
        raise InputError(f"{method}: norm={norm!r} is not one of {', '.join(map(repr, get_args(Norm)))}")
    if norm != "l2" and unchosen:
        raise InputError(
            f"{method}: thresholds are tuned with norm='l2'; with norm={norm!r} give them (the MIT objects give {tuned})"
        )


def only(layers: Sequence[Layers]) -> Layers:
    """The one decomposition in a list of one."""
    (single,) = layers
    return single


def _fill(mask: np.ndarray, index: np.ndarray, values: np.ndarray) -> np.ndarray:
    image = np.zeros(mask.size, np.float32)
    image[index] = values
    return image.reshape(*mask.shape, 1)


def _note(text: str) -> None:
    import warnings

    warnings.warn(text, Note, stacklevel=3)
