"""Guided backpropagation: the gradient with only positive values passed back through every ReLU (captum)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.methods.explain.gradients import OfEveryValue


@dataclass(frozen=True, slots=True)
class GuidedBackprop(OfEveryValue):
    """captum's GuidedBackprop, signed, per channel. ReLUs must be modules; without any it is the plain gradient."""

    cite = ("springenberg2015",)

    def __post_init__(self) -> None:
        need("captum", "guided_backprop", "torch")

    def attribution(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Any:
        """Captum's attribution."""
        from diorama.methods.explain.captum_calls import guided

        x, target = tensors(model, images, targets)
        return guided(module_of(model), x, target)
