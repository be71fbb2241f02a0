"""Leak: the truth with a known share of one layer planted in the other; needs frames with truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bounds import Positive, Within
from diorama.core.contracts import Decomposer
from diorama.core.errors import InputError
from diorama.core.frame import Frame


@dataclass(frozen=True, slots=True)
class Leak(Decomposer):
    """R̂·Ŝ is R·S at any α: α = 0 is the truth, α = 1 the image itself in one layer.

    alpha  the share α that leaks, 0 to 1
    into   the layer it leaks into: reflectance (R̂ = R·S^α, Ŝ = S^(1−α)) or shading (Ŝ = S·R^α, R̂ = R^(1−α))
    scale  multiplies R̂ and divides Ŝ, which must not change a scale-invariant score
    """

    cite = ("gupta2022",)
    given_truth = True

    alpha: Annotated[float, Within(0, 1)] = 0.0
    into: Literal["reflectance", "shading"] = "reflectance"
    scale: Positive = 1.0

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The true layers of the frame with the leak."""
        truth = frames[0].truth
        if truth.get("reflectance") is None or truth.get("shading") is None:
            raise InputError(
                f"leak needs the true reflectance and shading, which {frames[0].scene.world} does not have"
            )
        layers = truth["reflectance"], truth["shading"]
        gains, loses = layers if self.into == "reflectance" else layers[::-1]
        leaked = np.maximum(loses, 1e-6) ** np.float32(self.alpha)
        leaky = [gains * leaked, loses / leaked]
        reflectance, shading = leaky if self.into == "reflectance" else leaky[::-1]
        return Layers(reflectance * np.float32(self.scale), shading / np.float32(self.scale))
