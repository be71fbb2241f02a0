"""What the classifiers of factors share: a checkpoint, the side of its images, the values of each factor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from diorama.adapt.weights import Weighted
from diorama.core.contracts import Model
from diorama.core.errors import InputError
from diorama.io.images import resize

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class FactorJudge(Weighted, Model):
    """Logits of the values of every factor, concatenated; `heads` is the number of values of each.

    Images larger than those it was trained on (64 pixels, or 32) are resized to that square by area, as for the learners.
    """

    checkpoint: str | None = None

    cite: ClassVar[tuple[str, ...]] = ("reddy2022",)
    channels: ClassVar[int] = 3
    size = None

    @property
    def classes(self) -> int:  # type: ignore[override]
        """The number of all logits."""
        return sum(self.heads or ())

    @cached_property
    def side(self) -> int:
        """The side of the images it was trained on, read from the weights."""
        from safetensors import safe_open

        from diorama.models.factor_layers import NARROW

        with safe_open(self.path, "np") as file:
            wide = file.get_slice("dense.weight").get_shape()[1]
        return 8 * round((wide / NARROW) ** 0.5)

    def network(self) -> nn.Module:
        """The network for images of this side."""
        from diorama.models.factor_layers import FactorNetwork

        return FactorNetwork(self.channels, self.side, self.heads or ())

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, h, w, 3) float32 sRGB → (n, classes)."""
        import torch

        if images.ndim != 4 or images.shape[3] != 3 or min(images.shape[1:3]) < self.side:
            raise InputError(
                f"images are {images.shape}: {self.name} takes (n, h, w, 3) of at least {self.side} pixels"
            )
        small = np.stack([squeezed(image, self.side) for image in images])
        scaled = small.mean(axis=3, keepdims=True) if self.channels == 1 else small
        place = next(self.module.parameters()).device
        with torch.inference_mode():
            x = torch.from_numpy(np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), np.float32)).to(place)
            return np.asarray(self.module(x).cpu().numpy())


def squeezed(image: np.ndarray, side: int) -> np.ndarray:
    """An image resized to a square."""
    return image if image.shape[:2] == (side, side) else resize(np.asarray(image, np.float32), side, side)
