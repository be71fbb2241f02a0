"""Constant: one layer is constant, the other is the image; a metric that scores this well can be fooled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import Decomposer
from diorama.core.frame import Frame


@dataclass(frozen=True, slots=True)
class Constant(Decomposer):
    """One layer is 1, the other is the image; in colour, on the mask.

    layer  the constant one: reflectance (R = 1 and S = I) or shading (S = 1 and R = I)

    Constant reflectance scores the share of inequalities in WHDR, a perfect invariance and a perfect reconstruction.
    `baseline` is the gray version that the MIT protocol tunes.
    """

    cite = ("bell2014",)

    layer: Literal["reflectance", "shading"] = "reflectance"

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The image in one layer."""
        image, mask = frames[0].linear(), frames[0].mask[:, :, None]
        whole, ones = np.where(mask, image, np.float32(0)), mask.astype(np.float32)
        return Layers(ones, whole) if self.layer == "reflectance" else Layers(whole, ones)
