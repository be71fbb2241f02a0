"""Input × Gradient: the input times the gradient of the target's logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import gradient_module, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.methods.explain.gradients import Channels, as_answers, gradient


@dataclass(frozen=True, slots=True)
class InputXGradient(Explainer):
    """x · ∂f_target/∂x, signed, per channel (as FunnyBirds); x is the image in [0, 1]."""

    gradients = True
    cite = ("shrikumar2017",)

    channels: Channels = "keep"
    absolute: bool = False

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        x, target = tensors(model, images, targets)
        return as_answers(x * gradient(gradient_module(model), x, target), self.channels, self.absolute)
