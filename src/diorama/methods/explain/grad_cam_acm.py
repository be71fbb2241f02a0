"""Grad-CAM as in the Attribution Confusion Matrix: bilinear, ReLU, shifted to a minimum of 0 and a maximum of 1."""

from dataclasses import dataclass
from typing import Literal

from diorama.methods.explain.grad_cam import GradCam


@dataclass(frozen=True, slots=True)
class GradCamAcm(GradCam):
    """Grad-CAM of Arias-Duart et al. The shift changes their precision; `grad_cam_acm(shift=False)` leaves it out."""

    cite = ("selvaraju2017", "ariasduart2023")

    upsample: Literal["nearest", "bilinear"] = "bilinear"
    shift: bool = True
