"""What the bundled classifiers of staged birds share: fifty classes, 128 pixels, weights from a safetensors file.

They are trained like FunnyBirds' models: half of the birds lack random parts, and the loss counts every class that is
compatible with the remaining parts (Hesse et al. 2023, §4), so that birds without a part are not out of distribution. The
card beside a checkpoint (`models/zoo/NAME.json`) has the recipe and the accuracy on held-out birds; `diorama train NAME`
makes it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from diorama.adapt import classifying, folding
from diorama.adapt.weights import Weighted
from diorama.core.contracts import Model

if TYPE_CHECKING:
    from torch import nn

    from diorama.adapt.folding import Folded


@dataclass(frozen=True)
class BirdClassifier(Weighted, Model):
    """A network for staged birds.

    `module` is the torch module, for methods that need gradients: sRGB (n, 3, 128, 128) in [0, 1] in, logits out.
    """

    checkpoint: str | None = None

    cite: ClassVar[tuple[str, ...]] = ("hesse2023",)
    classes = 50
    size = 128

    def network(self) -> nn.Module:
        """The network named `name`, with fresh weights."""
        from diorama.models.birds.networks import network

        return network(self.name, self.classes)

    @cached_property
    def folded(self) -> Folded | None:
        """The network's faster twin."""
        return folding.folded(self.module, self.size)

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, 128, 128, 3) float32 sRGB in [0, 1] → (n, 50) float32."""
        classifying.check_images(images, self.size)
        return classifying.logits(classifying.pass_module(self), images)

    def features(self, images: np.ndarray, layer: str) -> np.ndarray:
        """The output of one of `layers`: (n, channels, h, w) float32."""
        classifying.check_images(images, self.size)
        classifying.check_layer(layer, self.layers)
        return classifying.features(self.module, images, layer)
