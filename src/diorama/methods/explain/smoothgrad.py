"""SmoothGrad: the gradient of the target's logit, averaged over noisy copies of the image."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import gradient_module, tensors
from diorama.core.bounds import Count, NotNegative
from diorama.core.scene import rng
from diorama.methods.explain.gradients import OfEveryValue, gradient
from diorama.methods.explain.passes import pixels


@dataclass(frozen=True, slots=True)
class Smoothgrad(OfEveryValue):
    """|mean over samples of ∂f_target/∂x at x + ε|, ε ~ N(0, σ²), not clipped; a function of the seed and the pixels.

    samples  number of noisy copies; Smilkov et al. advise 50
    noise    σ as a share of max x − min x; Smilkov et al. advise .1 to .2
    seed     seed of the noise
    """

    cite = ("smilkov2017",)

    samples: Count = 50
    noise: NotNegative = 0.15
    absolute: bool = True
    seed: int = 0

    def attribution(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Any:
        """The mean gradient; each pass is a batch of all images given."""
        total: Any = 0.0
        for noisy in self._copies(images):
            x, target = tensors(model, noisy, targets)
            total = total + gradient(gradient_module(model), x, target)
        return total / self.samples

    def _copies(self, images: np.ndarray) -> Iterator[np.ndarray]:
        generators = [rng(self.seed, "explain/smoothgrad", pixels(image)) for image in images]
        widths = self.noise * np.ptp(images, axis=(1, 2, 3))
        for _ in range(self.samples):
            noise = np.stack([one.standard_normal(images.shape[1:], np.float32) for one in generators])
            yield images + noise * widths[:, None, None, None].astype(np.float32)
