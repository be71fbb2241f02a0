"""DeepLift: the change of the logit from a black image, shared out by how much every unit changed (captum)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.methods.explain.gradients import Channels, as_answers


@dataclass(frozen=True, slots=True)
class DeepLift(Explainer):
    """captum's DeepLift (rescale rule) from a constant gray `baseline` (0: black, as FunnyBirds), signed, per channel.

    baseline  constant gray that the image is compared with, 0 (black) to 1
    channels  of the map: keep the three, their sum or their max
    absolute  takes the absolute value first

    Maps sum to f(x) − f(baseline) where every non-linear step is a ReLU, maximum, sigmoid or tanh module that is used
    once; a network that uses one of them twice (torchvision's ResNets) is refused, as captum cannot tell the uses apart.
    """

    gradients = True
    cite = ("shrikumar2017",)

    baseline: float = 0.0
    channels: Channels = "keep"
    absolute: bool = False

    def __post_init__(self) -> None:
        need("captum", "deep_lift", "torch")

    def refuses(self, model: Any) -> str:
        """Why a network is refused that uses an activation twice; empty for others."""
        from diorama.methods.explain.captum_calls import used_twice

        name = used_twice(module_of(model), model.size)
        return (
            f"deep_lift needs a module for every activation, but the network uses {name!r} more than once"
            if name
            else ""
        )

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        from diorama.methods.explain.captum_calls import deep_lift

        x, target = tensors(model, images, targets)
        return as_answers(deep_lift(module_of(model), x, target, self.baseline), self.channels, self.absolute)
