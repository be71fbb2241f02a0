"""DeepLift: the change of the logit from a black image, attributed by how much every unit changed (captum)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.methods.explain.gradients import OfEveryValue


@dataclass(frozen=True, slots=True)
class DeepLift(OfEveryValue):
    """captum's DeepLift (rescale rule) from a constant gray `baseline` (0: black, as FunnyBirds), signed, per channel.

    baseline  constant gray that the image is compared with, 0 (black) to 1

    Maps sum to f(x) − f(baseline) where every non-linear step is a ReLU, maximum, sigmoid or tanh module that is used
    once; a network that uses one of them twice (torchvision's ResNets) is refused, as captum cannot tell the uses apart.
    """

    cite = ("shrikumar2017",)

    baseline: float = 0.0

    def __post_init__(self) -> None:
        need("captum", "deep_lift", "torch")

    def refuses(self, model: Any) -> str:
        """Why a network is refused that uses an activation twice; empty for others."""
        from diorama.methods.explain.captum_calls import used_twice

        name = used_twice(module_of(model), model.size)
        reason = f"deep_lift needs a module for every activation, but the network uses {name!r} more than once"
        return reason if name else ""

    def attribution(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Any:
        """Captum's attribution."""
        from diorama.methods.explain.captum_calls import deep_lift

        x, target = tensors(model, images, targets)
        return deep_lift(module_of(model), x, target, self.baseline)
