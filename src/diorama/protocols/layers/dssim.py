"""DSSIM: structural dissimilarity (1 − SSIM)/2 of each layer (the MPI protocol; Marigold's SSIM).

asks               How well {do} {methods} keep the structure of paint and light?
dssim              ↓ structural dissimilarity (1 − SSIM)/2 of reflectance and shading: 0 the same, 0.5 unrelated
dssim_reflectance  ↓ the same of the reflectance alone
dssim_shading      ↓ the same of the shading alone
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import World
from diorama.core.errors import Undefined
from diorama.core.frame import Frame
from diorama.metrics.errors import scale
from diorama.metrics.ssim import best_ssim, dssim, moments
from diorama.protocols.layers import judging
from diorama.protocols.layers.marigold import shown_pairs


@dataclass(frozen=True, slots=True)
class Dssim(judging.OnBothLayers):
    """½·DSSIM(reflectance) + ½·DSSIM(shading), pixels off the mask black, which raises SSIM.

    preset  fan (fan2018; MPI), as the released script: layers after the least-squares scale, in colour (gray where
            truth or answer is gray); marigold: both sides as Marigold-IID shows them (see `psnr`)
    search  adds the search for the scale that maximises SSIM, which is released with the script but not called by it
    window  11 for the Gaussian window of Wang et al., 3 for the uniform 3×3 of some recent papers

    The script does not decode files; here layers are linear.
    """

    cite = ("wang2004", "fan2018", "ke2025")
    metrics: ClassVar[tuple[str, ...]] = ("dssim", "dssim_reflectance", "dssim_shading")

    preset: Literal["fan", "fan2018", "marigold"] = "fan"
    search: bool = False
    window: Literal[11, 3] = 11

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        fan = "least squares, then a search for the largest SSIM" if self.search else "least squares, one per layer"
        marigold = self.preset == "marigold"
        return judging.usual(world) | {
            "encoding": "sRGB reflectance, linear shading" if marigold else "linear, colour where both sides have it",
            "scale": "reflectance none, shading least squares" if marigold else fan,
            "window": "Gaussian 11×11, σ 1.5" if self.window == 11 else "uniform 3×3",
            "mask": judging.counted_mask(world),
        }

    def both(self, frame: Frame, layers: Layers) -> tuple[float, float]:
        """DSSIM of reflectance and of shading."""
        if min(frame.mask.shape) < self.window:
            raise Undefined(f"the image is smaller than the window of {self.window} pixels")
        if self.preset == "marigold":
            reflectance, shading = (self._at(c, e, 1.0, False) for c, e in shown_pairs(frame, layers))
        else:
            pairs = judging.colour_pairs(frame, layers)
            reflectance, shading = (self._at(c, e, float(scale(c, e, frame.mask)), self.search) for c, e in pairs)
        return reflectance, shading

    def _at(self, truth: np.ndarray, estimate: np.ndarray, alpha: float, search: bool) -> float:
        pair = moments(estimate, truth, self.window, 1.5 if self.window == 11 else None)
        return dssim(best_ssim(pair, alpha) if search else pair.ssim(alpha))
