"""What gray Retinex and Weiss with Retinex share: one threshold on log gradients, given or tuned by the protocol."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bounds import NotNegative
from diorama.core.contracts import Sweeping
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import Norm, check_norm, log_threshold_grid, only, reconstruct


@dataclass(frozen=True, slots=True)
class OneThreshold(Sweeping):
    """Keep a gradient of log intensity where it exceeds the threshold."""

    #: The method's name, and what tuning on the MIT objects gives, for messages.
    called: ClassVar[str]
    tuned: ClassVar[str]

    threshold: NotNegative | None = None
    norm: Norm = "l2"

    def __post_init__(self) -> None:
        check_norm(self.called, self.norm, f"threshold={self.tuned}", self.threshold is None)

    @abstractmethod
    def gradients_of(self, frames: Sequence[Frame]) -> tuple[np.ndarray, np.ndarray]:
        """The gray image (h, w) that is split, and the gradients (edges, 1) of its logarithm that may be kept."""

    @property
    def grid(self) -> tuple[dict[str, float], ...]:
        """What tuning chooses from."""
        return tuple({"threshold": t} for t in log_threshold_grid(-3, 1, 15)) if self.threshold is None else ()

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers at the given threshold."""
        if self.threshold is None:
            raise InputError(
                f"{self.called}: threshold is not chosen; give one (tuning on the MIT objects gives {self.tuned})"
            )
        return only(self._at(frames, [self.threshold]))

    def sweep(self, frames: Sequence[Frame]) -> Iterator[Layers]:
        """The layers at every grid point, from one factorisation."""
        yield from self._at(frames, [point["threshold"] for point in self.grid])

    def _at(self, frames: Sequence[Frame], thresholds: list[float]) -> list[Layers]:
        image, gradient = self.gradients_of(frames)
        return reconstruct(frames[0].mask, image, np.where(np.abs(gradient) > thresholds, gradient, 0), self.norm)
