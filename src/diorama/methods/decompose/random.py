"""Chance: reflectance and shading of uniform noise, independent of the image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import Decomposer
from diorama.core.frame import Frame
from diorama.core.scene import rng


@dataclass(frozen=True, slots=True)
class Random(Decomposer):
    """Uniform noise in (0, 1), a function of the seed and the scene.

    seed  seed of the noise
    """

    seed: int = 0

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """Two layers of noise."""
        frame = frames[0]
        noise = rng(self.seed, "decompose/random", frame.scene.key).random((2, *frame.image.shape[:2], 1), np.float32)
        return Layers(noise[0], noise[1])
