"""What the bundled classifiers of staged birds share: fifty classes, 128 pixels, weights from a safetensors file.

Trained as FunnyBirds trains its models: every second bird lacks random parts, and the loss counts every class that the
parts left are compatible with (Hesse et al. 2023, §4), so that a bird without a part is nothing new to the network. The
card beside a checkpoint (`models/zoo/NAME.json`) has the recipe and the accuracy on held-out birds; `diorama train NAME`
makes it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from diorama.adapt import folding
from diorama.core.contracts import Model
from diorama.io.digests import file_digest
from diorama.models import weights

if TYPE_CHECKING:
    from torch import nn

    from diorama.adapt.folding import Folded


@dataclass(frozen=True)
class BirdClassifier(Model):
    """A network for staged birds.

    checkpoint  safetensors file with its weights; None for the bundled one

    `module` is the torch module, for methods that need gradients: sRGB (n, 3, 128, 128) in [0, 1] in, logits out.
    """

    checkpoint: str | None = None

    cite: ClassVar[tuple[str, ...]] = ("hesse2023",)
    located = ("checkpoint",)
    classes = 50
    size = 128

    def __post_init__(self) -> None:
        weights.checkpoint_path(self.checkpoint, self.name)

    @property
    def path(self) -> Path:
        """The checkpoint file in use."""
        return weights.checkpoint_path(self.checkpoint, self.name)

    @property
    def differentiable(self) -> bool:
        """True, said without loading the network; without torch there is none."""
        weights.require_torch(self.name)
        return True

    @cached_property
    def module(self) -> nn.Module:
        """The network in eval mode, its parameters without gradients; made at first use."""
        weights.require_torch(self.name)
        from diorama.models.birds.networks import network

        return weights.load(network(self.name, self.classes), self.path)

    @cached_property
    def folded(self) -> Folded | None:
        """Its faster twin."""
        return folding.folded(self.module, self.size)

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, 128, 128, 3) float32 sRGB in [0, 1] → (n, 50) float32."""
        weights.check_images(images, self.size)
        return weights.logits(weights.pass_module(self), images)

    def features(self, images: np.ndarray, layer: str) -> np.ndarray:
        """The output of one of `layers`: (n, channels, h, w) float32."""
        weights.check_images(images, self.size)
        weights.check_layer(layer, self.layers)
        return weights.features(self.module, images, layer)

    def fingerprint(self) -> str:
        """The digest of the weights, so that keys follow their content and not their place."""
        return file_digest(self.path)
