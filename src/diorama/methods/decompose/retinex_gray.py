"""GR-RET: gray Retinex; a gradient of log intensity above the threshold is reflectance, below it shading."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import clipped_gray
from diorama.methods.decompose.thresholds import OneThreshold
from diorama.solvers.poisson import Edges


@dataclass(frozen=True, slots=True)
class RetinexGray(OneThreshold):
    """Keep ∇ log gray where |∇ log gray| > threshold.

    threshold  in log intensity per pixel; None: the protocol chooses among 15, 1e-3 … 10, as released (the MIT objects
               give .373)
    norm       l2 (least squares), l1 (by ADMM) or l1_irls (by reweighting, as released: slow); the threshold is tuned
               with l2
    """

    cite = ("land1971", "grosse2009")
    called = "retinex_gray"
    tuned = "0.373"

    def gradients_of(self, frames: Sequence[Frame]) -> tuple[np.ndarray, np.ndarray]:
        """The channel mean, and the gradients of its logarithm."""
        image = clipped_gray(frames[0])
        return image, Edges.of(frames[0].mask).differences(np.log(image))[:, None]
