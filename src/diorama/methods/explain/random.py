"""Chance: a heat map of Gaussian noise, independent of the model and the image's content."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Heatmap
from diorama.core.contracts import Explainer
from diorama.core.scene import rng
from diorama.methods.explain.passes import pixels


@dataclass(frozen=True, slots=True)
class Random(Explainer):
    """Standard normal noise, a function of the seed, the pixels and the target.

    seed  seed of the noise
    """

    seed: int = 0

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w)."""
        return [Heatmap(self._noise(x, int(t)), signed=True) for x, t in zip(images, targets, strict=True)]

    def _noise(self, image: np.ndarray, target: int) -> np.ndarray:
        return rng(self.seed, "explain/random", pixels(image), target).standard_normal(image.shape[:2], np.float32)
