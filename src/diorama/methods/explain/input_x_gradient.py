"""Input × Gradient: the input times the gradient of the target's logit."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import gradient_module, tensors
from diorama.methods.explain.gradients import OfEveryValue, gradient


@dataclass(frozen=True, slots=True)
class InputXGradient(OfEveryValue):
    """x · ∂f_target/∂x, signed, per channel (as FunnyBirds); x is the image in [0, 1]."""

    cite = ("shrikumar2017",)

    def attribution(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Any:
        """The image times the gradient."""
        x, target = tensors(model, images, targets)
        return x * gradient(gradient_module(model), x, target)
