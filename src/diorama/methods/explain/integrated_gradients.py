"""Integrated Gradients: the input minus a baseline, times the mean gradient along the line between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diorama.adapt.explaining import gradient_module, tensors
from diorama.core.answers import Answer, as_array
from diorama.core.bounds import Count
from diorama.core.contracts import SharedPasses
from diorama.methods.explain.gradients import Channels, as_answers, gradients


@dataclass(frozen=True, slots=True)
class IntegratedGradients(SharedPasses):
    """(x − b) · ∫ ∂f/∂x along the line from the baseline b, by Gauss–Legendre.

    steps     points on the line; 50 as FunnyBirds
    baseline  b, a constant gray between 0 (black, as FunnyBirds) and 1
    channels  colour channels of the map: keep the three (as FunnyBirds), their sum or their max
    absolute  takes the absolute value first

    The settings of other papers have names of their own: `integrated_gradients_abs`, `integrated_gradients_acm`.
    """

    gradients = True
    cite: ClassVar[tuple[str, ...]] = ("sundararajan2017",)

    steps: Count = 50
    baseline: float = 0.0
    channels: Channels = "keep"
    absolute: bool = False

    @property
    def shared(self) -> tuple[Any, ...]:
        """Maps that differ only in `channels` and `absolute` are computed from the same passes."""
        return "integrated gradients", self.steps, self.baseline

    def passes(self, model: Any, images: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Attributions (k, n, 3, h, w) for targets (k, n): `steps` forward and k · `steps` backward passes of n images."""
        import torch

        x, target = tensors(model, images, targets)
        nodes, weights = np.polynomial.legendre.leggauss(self.steps)  # on [−1, 1]
        line, means = x - self.baseline, [0.0 * x for _ in target]
        for node, weight in zip(nodes, weights, strict=True):
            at = self.baseline + line * (0.5 + 0.5 * float(node))
            for k, gradient in enumerate(gradients(gradient_module(model), at, target)):
                means[k] += 0.5 * float(weight) * gradient
        return as_array(line * torch.stack(means))

    def maps(self, passed: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        import torch

        return as_answers(torch.from_numpy(passed), self.channels, self.absolute)
