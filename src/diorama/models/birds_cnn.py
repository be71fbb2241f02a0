"""A small residual network trained from scratch on staged birds: fifty classes, 128 pixels, 0.85 M parameters.

Trained as FunnyBirds trains its models: every second bird lacks random parts, and the loss counts every class that the
parts left are compatible with (Hesse et al. 2023, §4), so that a bird without a part is nothing new to the network. The
card beside the checkpoint (`models/zoo/birds_cnn.json`) has the recipe and the accuracy on held-out birds; `diorama
train birds_cnn` makes it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from diorama.models import _inference

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class BirdsCnn:
    """The classifier with the weights of `checkpoint`, a safetensors file; None is the bundled one.

    `module` is the torch module, for methods that need gradients: sRGB (n, 3, 128, 128) in [0, 1] in, logits out.
    """

    checkpoint: str | None = None

    cite: ClassVar[tuple[str, ...]] = ("hesse2023",)
    located: ClassVar[tuple[str, ...]] = ("checkpoint",)
    encoding: ClassVar[Literal["srgb"]] = "srgb"
    classes: ClassVar[int] = 50
    size: ClassVar[int] = 128
    layers: ClassVar[tuple[str, ...]] = ("stem", "block1", "block2", "block3", "block4", "pool")
    #: The last convolutional block: what Grad-CAM looks at.
    cam_layer: ClassVar[str] = "block4"

    def __post_init__(self) -> None:
        _inference.checkpoint_path(self.checkpoint, "birds_cnn")

    @property
    def path(self) -> Path:
        """The checkpoint file in use."""
        return _inference.checkpoint_path(self.checkpoint, "birds_cnn")

    @cached_property
    def module(self) -> nn.Module:
        """The network in eval mode, its parameters without gradients; made at first use."""
        _inference.require_torch("birds_cnn")
        from diorama.models._network import ResidualNetwork

        return _inference.load(ResidualNetwork(self.classes), self.path)

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, 128, 128, 3) float32 sRGB in [0, 1] → (n, 50) float32."""
        _inference.check_images(images, self.size)
        return _inference.logits(self.module, images)

    def features(self, images: np.ndarray, layer: str) -> np.ndarray:
        """The output of one of `layers`: (n, channels, h, w) float32."""
        _inference.check_images(images, self.size)
        _inference.check_layer(layer, self.layers)
        return _inference.features(self.module, images, layer)

    def fingerprint(self) -> str:
        """The digest of the weights, so that keys follow their content and not their place."""
        return _inference.content_digest(self.path)
