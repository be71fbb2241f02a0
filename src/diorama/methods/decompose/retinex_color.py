"""COL-RET: colour Retinex; a gradient is reflectance where chromaticity or brightness changes by more than a threshold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import Sweeping
from diorama.core.errors import InputError
from diorama.core.frame import Frame, channel_mean
from diorama.methods.decompose.gradients import Norm, channels, check_norm, log_threshold_grid, only, reconstruct
from diorama.solvers.poisson import Edges


@dataclass(frozen=True, slots=True)
class RetinexColor(Sweeping):
    """Keep ∇ log gray where ‖chroma gradient‖ > chroma or |brightness gradient| > brightness.

    brightness  threshold of the brightness gradient, in log intensity per pixel; None: tuned with `chroma` by the
                protocol over 5 × 5 values, 10^-1.5 … 1 each, as released (the MIT objects give 1.0)
    chroma      threshold of the chroma gradient; None: tuned (the MIT objects give .075)
    norm        l2 (least squares), l1 (by ADMM) or l1_irls (by reweighting, as released: slow); thresholds are tuned
                with l2

    With g the log gradient of the three channels, brightness is its mean and chroma its deviation from the mean, as in
    the released code; the paper's text thresholds ‖brightness‖ = √3·|mean| and copies that gradient instead.
    """

    cite = ("grosse2009",)

    brightness: float | None = None
    chroma: float | None = None
    norm: Norm = "l2"

    def __post_init__(self) -> None:
        if (self.brightness is None) != (self.chroma is None):
            raise InputError("retinex_color: give both brightness and chroma, or neither to have them tuned")
        check_norm("retinex_color", self.norm, "brightness=1.0, chroma=0.075", self.chroma is None)

    @property
    def grid(self) -> tuple[dict[str, float], ...]:
        """What tuning chooses from: 5 × 5 thresholds, 10^-1.5 … 1 each."""
        steps = log_threshold_grid(-1.5, 0, 5)
        return tuple({"brightness": b, "chroma": c} for b in steps for c in steps) if self.brightness is None else ()

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers at the given thresholds."""
        if self.brightness is None or self.chroma is None:
            raise InputError(
                "retinex_color: thresholds are not chosen (the MIT objects give brightness=1, chroma=0.075)"
            )
        return only(_at(frames[0], [{"brightness": self.brightness, "chroma": self.chroma}], self.norm))

    def sweep(self, frames: Sequence[Frame]) -> Iterator[Layers]:
        """The layers at every grid point, from one factorisation."""
        yield from _at(frames[0], self.grid, self.norm)


def _at(frame: Frame, points: Sequence[dict[str, float]], norm: Norm) -> list[Layers]:
    edges, colour = Edges.of(frame.mask), channels(frame)
    gradient = edges.differences(np.log(colour))
    mean = gradient.mean(axis=1, keepdims=True)
    chroma, brightness = np.linalg.norm(gradient - mean, axis=1)[:, None], np.abs(mean)
    is_reflectance = (chroma > [p["chroma"] for p in points]) | (brightness > [p["brightness"] for p in points])
    image = channel_mean(colour)  # the mean of the clipped channels, as released; gray Retinex clips the mean
    return reconstruct(frame.mask, image, np.where(is_reflectance, edges.differences(np.log(image))[:, None], 0), norm)
