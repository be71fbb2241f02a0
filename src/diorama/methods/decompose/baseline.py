"""BAS: all of the image is shading, or all of it is reflectance; the protocol chooses which."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import Decomposer
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import gray


@dataclass(frozen=True, slots=True)
class Baseline(Decomposer):
    """R = 1 or S = 1, gray.

    everything  the layer that takes the whole image: shading (R = 1) or reflectance (S = 1); None leaves the choice to
                the protocol's tuning

    Dark pixels are not clipped, as in the released code: only the algorithms that take a logarithm clip them.
    """

    cite = ("grosse2009",)

    everything: Literal["shading", "reflectance"] | None = None

    @property
    def grid(self) -> tuple[dict[str, str], ...]:
        """What tuning chooses from."""
        return ({"everything": "shading"}, {"everything": "reflectance"}) if self.everything is None else ()

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The whole image as one layer."""
        if self.everything is None:
            raise InputError("baseline: everything is not chosen; give 'shading' or 'reflectance'")
        mask = frames[0].mask[:, :, None]
        image = np.where(mask, gray(frames[0])[:, :, None], 0).astype(np.float32)
        ones = mask.astype(np.float32)
        return Layers(image, ones) if self.everything == "reflectance" else Layers(ones, image)
