"""Chance: codes of Gaussian noise, independent of the image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diorama.core.bounds import Count
from diorama.core.contracts import Decoding
from diorama.core.frame import Frame
from diorama.core.scene import rng


@dataclass(frozen=True, slots=True)
class Random(Decoding):
    """Independent standard normal numbers, a function of the seed and the scene.

    latents  number of latents
    seed     seed of the noise
    """

    latents: Count = 10
    seed: int = 0

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """Noise (n, latents)."""
        return np.stack([rng(self.seed, "represent/random", f.scene.key).standard_normal(self.latents) for f in frames])

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Images (n, 64, 64, 3) of uniform noise, a function of the seed and the code."""
        keys = [row.tobytes().hex() for row in np.ascontiguousarray(codes, np.float64)]
        return np.stack([rng(self.seed, "represent/random", key).random((64, 64, 3), np.float32) for key in keys])
