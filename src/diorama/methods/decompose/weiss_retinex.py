"""W+RET: Weiss's median gradients, thresholded like gray Retinex before the reconstruction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import gray
from diorama.methods.decompose.median import LIGHTS, median_gradient
from diorama.methods.decompose.thresholds import OneThreshold


@dataclass(frozen=True, slots=True)
class WeissRetinex(OneThreshold):
    """Keep the median gradient where it exceeds the threshold.

    threshold  in log intensity per pixel; None: the protocol chooses among 15, 1e-3 … 10
    norm       l2 (least squares), l1 (by ADMM) or l1_irls (by reweighting, as released: slow); the threshold is tuned
               with l2

    As in the released code the threshold comes before the single reconstruction; the paper's text reads as Retinex on a
    reconstructed image.
    """

    cite = ("grosse2009",)
    views = LIGHTS
    called = "weiss_retinex"
    tuned = "0.1 or 0.193"

    def gradients_of(self, frames: Sequence[Frame]) -> tuple[np.ndarray, np.ndarray]:
        """The channel mean of the first frame, and the median over the lights of log gradients."""
        return gray(frames[0]), median_gradient(frames)
