"""Guided backpropagation: the gradient, of which every ReLU passes on only what is positive (captum)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.methods.explain.gradients import Channels, as_answers


@dataclass(frozen=True, slots=True)
class GuidedBackprop(Explainer):
    """captum's GuidedBackprop, signed, per channel. ReLUs must be modules; without any the plain gradient is left."""

    gradients = True
    cite = ("springenberg2015",)

    channels: Channels = "keep"
    absolute: bool = False

    def __post_init__(self) -> None:
        need("captum", "guided_backprop", "torch")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        from diorama.methods.explain.captum_calls import guided

        x, target = tensors(model, images, targets)
        return as_answers(guided(module_of(model), x, target), self.channels, self.absolute)
