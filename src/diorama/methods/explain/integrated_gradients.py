"""Integrated Gradients: the input minus a baseline, times the mean gradient along the line between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diorama.core.answers import Answer
from diorama.core.errors import InputError
from diorama.core.explaining import heatmaps, tensors


@dataclass(frozen=True, slots=True)
class IntegratedGradients:
    """(x − b) · ∫ ∂f/∂x along the line from the baseline b, a constant gray (0: black, as FunnyBirds), by Gauss–Legendre."""

    cite: ClassVar[tuple[str, ...]] = ("sundararajan2017",)

    steps: int = 50
    baseline: float = 0.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"integrated_gradients: steps={self.steps}: at least one is needed")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3); gradients pass in batches of the images' number."""
        from captum.attr import IntegratedGradients

        x, target = tensors(model, images, targets)
        attribution = IntegratedGradients(model.module).attribute(
            x, baselines=self.baseline, target=target, n_steps=self.steps, internal_batch_size=len(images)
        )
        return heatmaps(attribution.float())
