"""How Marigold-IID scales and encodes layers before it compares them (Ke et al. 2025)."""

import numpy as np

from diorama.core.answers import Layers
from diorama.core.frame import Frame, linear_to_srgb
from diorama.metrics.errors import scale
from diorama.protocols.layers.judging import colour_pairs

_LUMINANCE = np.array([0.3, 0.59, 0.11])


def shown_pairs(frame: Frame, layers: Layers, align_reflectance: bool = False) -> list[tuple[np.ndarray, np.ndarray]]:
    """(truth, estimate) of both layers in [0, 1], zero off the mask.

    Reflectance in sRGB, not aligned unless asked for; shading aligned by least squares, then both sides scaled so that
    the 90th percentile of the truth's luminance becomes 0.8, and clipped.
    """
    (true_r, r), (true_s, s) = colour_pairs(frame, layers)
    if align_reflectance:
        r = r * scale(true_r, r, frame.mask)
    s, gain = s * scale(true_s, s, frame.mask), _gain(true_s, frame.mask)
    return [(linear_to_srgb(true_r), linear_to_srgb(r)), (np.clip(true_s * gain, 0, 1), np.clip(s * gain, 0, 1))]


def _gain(shading: np.ndarray, mask: np.ndarray) -> float:
    inside = shading[mask]
    luminance = inside @ _LUMINANCE if inside.shape[1] == 3 else inside[:, 0]
    return 0.8 / max(float(np.quantile(luminance, 0.9)), 1e-12)
