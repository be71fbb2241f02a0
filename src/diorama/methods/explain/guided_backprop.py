"""Guided backpropagation: the gradient, of which every ReLU passes on only what is positive (captum)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.methods.explain.gradients import OfEveryValue


@dataclass(frozen=True, slots=True)
class GuidedBackprop(OfEveryValue):
    """captum's GuidedBackprop, signed, per channel. ReLUs must be modules; without any the plain gradient is left."""

    cite = ("springenberg2015",)

    def __post_init__(self) -> None:
        need("captum", "guided_backprop", "torch")

    def attribution(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Any:
        """Captum's attribution."""
        from diorama.methods.explain.captum_calls import guided

        x, target = tensors(model, images, targets)
        return guided(module_of(model), x, target)
