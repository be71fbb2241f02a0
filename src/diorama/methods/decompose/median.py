"""Weiss's estimator: the median over lights of the log gradient is the gradient of log reflectance (ICCV 2001)."""

from collections.abc import Sequence

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import clipped_gray
from diorama.solvers.poisson import Edges

#: The ten further lights of the MIT set-up; the frame to decompose is not one of them.
LIGHTS = tuple({"light": i} for i in range(1, 11))


def median_gradient(frames: Sequence[Frame]) -> np.ndarray:
    """The median of the log gray gradients of frames[1:] on the mask of frames[0], (edges, 1)."""
    if len(frames) < 3:
        raise InputError(f"Weiss's algorithm needs several lights of one scene, got {len(frames) - 1}")
    edges = Edges.of(frames[0].mask)
    return np.median([edges.differences(np.log(clipped_gray(frame))) for frame in frames[1:]], axis=0)[:, None]
