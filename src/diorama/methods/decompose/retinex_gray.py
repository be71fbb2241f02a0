"""GR-RET: gray Retinex; a gradient of log intensity above the threshold is reflectance, below it shading."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import Sweeping
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import Norm, check_norm, clipped_gray, log_threshold_grid, only, reconstruct
from diorama.solvers.poisson import Edges


@dataclass(frozen=True, slots=True)
class RetinexGray(Sweeping):
    """Keep ∇ log gray where |∇ log gray| > threshold.

    threshold  in log intensity per pixel; None: the protocol chooses among 15, 1e-3 … 10, as released (the MIT objects
               give .373)
    norm       l2 (least squares), l1 (by ADMM) or l1_irls (by reweighting, as released: slow); the threshold is tuned
               with l2
    """

    cite = ("land1971", "grosse2009")

    threshold: float | None = None
    norm: Norm = "l2"

    def __post_init__(self) -> None:
        check_norm("retinex_gray", self.norm, "threshold=0.373", self.threshold is None)
        if self.threshold is not None and self.threshold < 0:
            raise InputError(f"retinex_gray: threshold={self.threshold} is negative")

    @property
    def grid(self) -> tuple[dict[str, float], ...]:
        """What tuning chooses from."""
        return tuple({"threshold": t} for t in log_threshold_grid(-3, 1, 15)) if self.threshold is None else ()

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers at the given threshold."""
        if self.threshold is None:
            raise InputError("retinex_gray: threshold is not chosen; give one (tuning on the MIT objects gives 0.373)")
        return only(_at(frames[0], [self.threshold], self.norm))

    def sweep(self, frames: Sequence[Frame]) -> Iterator[Layers]:
        """The layers at every grid point, from one factorisation."""
        yield from _at(frames[0], [point["threshold"] for point in self.grid], self.norm)


def _at(frame: Frame, thresholds: list[float], norm: Norm) -> list[Layers]:
    image = clipped_gray(frame)
    gradient = Edges.of(frame.mask).differences(np.log(image))[:, None]
    return reconstruct(frame.mask, image, np.where(np.abs(gradient) > thresholds, gradient, 0), norm)
