"""Integrated Gradients: the input minus a baseline, times the mean gradient along the line between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diorama.core.answers import Answer
from diorama.core.errors import InputError
from diorama.core.explaining import module_of, tensors
from diorama.methods.explain._gradients import Channels, as_answers, gradient


@dataclass(frozen=True, slots=True)
class IntegratedGradients:
    """(x − b) · ∫ ∂f/∂x along the line from the baseline b, a constant gray (0: black, as FunnyBirds), by Gauss–Legendre.

    The settings of other papers have names of their own: `integrated_gradients_abs`, `integrated_gradients_acm`.
    """

    gradients: ClassVar[bool] = True
    cite: ClassVar[tuple[str, ...]] = ("sundararajan2017",)

    steps: int = 50
    baseline: float = 0.0
    channels: Channels = "keep"
    absolute: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"integrated_gradients: steps={self.steps}: at least one is needed")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3); `steps` passes of as many images as are given."""
        x, target = tensors(model, images, targets)
        nodes, weights = np.polynomial.legendre.leggauss(self.steps)  # on [−1, 1]
        line, mean = x - self.baseline, 0.0 * x
        for node, weight in zip(nodes, weights, strict=True):
            at = self.baseline + line * (0.5 + 0.5 * float(node))
            mean += 0.5 * float(weight) * gradient(module_of(model), at, target)
        return as_answers(line * mean, self.channels, self.absolute)
