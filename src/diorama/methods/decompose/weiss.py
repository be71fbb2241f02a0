"""W: Weiss's multi-image estimator; reflectance gradients are the median over ten lights."""

from collections.abc import Sequence
from dataclasses import dataclass

from diorama.core.answers import Layers
from diorama.core.contracts import Decomposer
from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import Norm, check_norm, gray, only, reconstruct
from diorama.methods.decompose.median import LIGHTS, median_gradient


@dataclass(frozen=True, slots=True)
class Weiss(Decomposer):
    """Median of the log gradients over the ten lights, then reconstruction; S = I/R for the frame itself.

    norm  l2 (least squares), l1 (by ADMM) or l1_irls (by reweighting, as released: slow)
    """

    cite = ("weiss2001", "grosse2009")
    views = LIGHTS

    norm: Norm = "l2"

    def __post_init__(self) -> None:
        check_norm("weiss", self.norm)

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers of frames[0], seen under the lights of frames[1:]."""
        return only(reconstruct(frames[0].mask, gray(frames[0]), median_gradient(frames), self.norm))
