"""Saliency: the absolute gradient of the target's logit."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import gradient_module, tensors
from diorama.methods.explain.gradients import OfEveryValue, gradient


@dataclass(frozen=True, slots=True)
class Saliency(OfEveryValue):
    """|∂f_target/∂x| per channel, as in FunnyBirds' later additions; channels=max is the map of Simonyan et al."""

    cite = ("simonyan2014",)

    absolute: bool = True

    def attribution(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Any:
        """The gradient."""
        x, target = tensors(model, images, targets)
        return gradient(gradient_module(model), x, target)
