"""PSNR: peak signal-to-noise ratio of each layer in decibel (Marigold-IID's protocol, aligned or not).

asks              How close {do} {methods} come to the true paint and light, in decibel?
psnr              ↑ peak signal-to-noise ratio of reflectance and shading in dB; 6 dB more halve the error, 100 is the
                  cap for equal images
psnr_reflectance  ↑ the same of the reflectance alone
psnr_shading      ↑ the same of the shading alone
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.core.answers import Layers
from diorama.core.contracts import World
from diorama.core.frame import Frame
from diorama.metrics.errors import PSNR_CAP, psnr
from diorama.protocols.layers import judging
from diorama.protocols.layers.marigold import shown_pairs


@dataclass(frozen=True, slots=True)
class Psnr(judging.OnBothLayers):
    """½·PSNR(reflectance) + ½·PSNR(shading) on the mask; equal images count 100 dB.

    preset  marigold: sRGB reflectance, not aligned; shading aligned and scaled to the 90th percentile. aligned: the same
            with reflectance aligned by least squares first, which relative methods need. rgbx: linear, nothing aligned
    """

    cite = ("ke2025", "zeng2024")
    direction = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, PSNR_CAP)
    metrics: ClassVar[tuple[str, ...]] = ("psnr", "psnr_reflectance", "psnr_shading")

    preset: Literal["aligned", "marigold", "rgbx"] = "aligned"

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        raw = self.preset == "rgbx"
        scale = {"rgbx": "none", "marigold": "reflectance none, shading least squares"}
        return judging.usual(world) | {
            "encoding": "linear" if raw else "sRGB reflectance; linear shading, 90th percentile of the truth at 0.8",
            "scale": scale.get(self.preset, "least squares, one per layer"),
            "mean": f"arithmetic over cases of decibels, at most {PSNR_CAP:g}",
        }

    def both(self, frame: Frame, layers: Layers) -> tuple[float, float]:
        """PSNR of reflectance and of shading."""
        aligned = self.preset == "aligned"
        pairs = judging.colour_pairs(frame, layers) if self.preset == "rgbx" else shown_pairs(frame, layers, aligned)
        reflectance, shading = (psnr(c, e, frame.mask) for c, e in pairs)
        return reflectance, shading
