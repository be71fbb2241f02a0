"""Saliency: the absolute gradient of the target's logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import gradient_module, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.methods.explain.gradients import Channels, as_answers, gradient


@dataclass(frozen=True, slots=True)
class Saliency(Explainer):
    """|∂f_target/∂x| per channel, as FunnyBirds' later additions; `channels=max` is the map of Simonyan et al."""

    gradients = True
    cite = ("simonyan2014",)

    channels: Channels = "keep"
    absolute: bool = True

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        x, target = tensors(model, images, targets)
        return as_answers(gradient(gradient_module(model), x, target), self.channels, self.absolute)
