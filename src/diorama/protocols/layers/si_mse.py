"""si-MSE: mean squared error of each whole layer after the best scale, masked (Barron) or over the image (Fan).

asks                How well {do} {methods} separate paint from light over the whole image?
si_mse              ↓ mean squared error of reflectance and shading after the best scale of each: 0 perfect
si_mse_reflectance  ↓ the same of the reflectance alone
si_mse_shading      ↓ the same of the shading alone
ln_si_mse           ↓ natural logarithm of si_mse, from which papers make geometric means
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.core.answers import Layers
from diorama.core.contracts import Bounds, World
from diorama.core.frame import Frame
from diorama.metrics.errors import si_mse
from diorama.protocols.layers import judging


@dataclass(frozen=True, slots=True)
class SiMse(judging.OnBothLayers):
    """½·si-MSE(reflectance) + ½·si-MSE(shading) in the truth's units of 0 to 1.

    preset    barron (barron2015; also Fan's MIT table): over the masked pixels. fan (fan2018, the MPI table): α·e
              clipped at 1, the sum divided by all pixels of the image, which a black background dilutes
    channels  gray (channel means), one scale for the three channels (as the released script of the MPI table), or each
              its own

    Papers give geometric means of it: exp of the mean of `ln_si_mse`.
    """

    cite = ("barron2015", "fan2018")
    ranges: ClassVar[dict[str, Bounds]] = {"ln_si_mse": (None, 0.0)}
    metrics: ClassVar[tuple[str, ...]] = ("si_mse", "si_mse_reflectance", "si_mse_shading", "ln_si_mse")

    preset: Literal["barron", "barron2015", "fan", "fan2018"] = "barron"
    channels: Literal["gray", "one", "each"] = "gray"

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        whole = self.preset.startswith("fan")
        scale = {"gray": "one per layer", "one": "one per layer", "each": "one per channel of a layer"}[self.channels]
        return judging.usual(world) | {
            "encoding": "linear, gray" if self.channels == "gray" else "linear, colour where both sides have it",
            "scale": scale + (", clipped at 1" if whole else ""),
            "mask": judging.mask_of(world) + (", the sum divided by all pixels" if whole else ""),
            "mean": "arithmetic over cases; papers give the geometric one, exp of the mean of ln_si_mse",
        }

    def both(self, frame: Frame, layers: Layers) -> tuple[float, float]:
        """si-MSE of reflectance and of shading."""
        whole = self.preset.startswith("fan")
        if self.channels == "gray":
            pairs = [(c[:, :, None], e[:, :, None]) for c, e in judging.gray_pairs(frame, layers)]
        else:
            pairs = judging.colour_pairs(frame, layers)
        reflectance, shading = (si_mse(c, e, frame.mask, self.channels == "each", whole, whole) for c, e in pairs)
        return reflectance, shading
