"""Attributors of captum and zennit as explainers: made for one network, or for any."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diorama.adapt.classifying import is_module
from diorama.adapt.explaining import heatmaps, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer, Model
from diorama.core.guard import attempt


class Attributor(Explainer):
    """An object with captum's `attribute(x, target=)`. The network it was made for is replaced by the model's copy."""

    gradients = True

    def __init__(self, given: Any):
        self.given = given

    def refuses(self, model: Model) -> str:
        """Refuse an object that was made for another network."""
        if not any(is_module(part) for part in self._parts()) or self._is_for(model):
            return ""
        kind = type(self.given).__name__
        return f"this {kind} was made for another network than {model.name}: give the class, or one for this network"

    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Its attributions."""
        x, target = tensors(model, images, targets)
        return heatmaps(self._attribute(self._for_model(model), x.requires_grad_(True), target))

    def _attribute(self, given: Any, x: Any, target: Any) -> Any:
        return given.attribute(x, target=target)

    def _parts(self) -> list[Any]:
        """The values of its attributes; for `net.forward` the network."""
        return [getattr(part, "__self__", part) for part in vars(self.given).values()]

    def _is_for(self, model: Model) -> bool:
        return any(id(part) in model.copies for part in self._parts())

    def _for_model(self, model: Model) -> Any:
        """A copy of the object with the model's module in place of the user's; the object itself if it cannot be copied."""
        if not self._is_for(model):
            return self.given
        copied = attempt(lambda: copy.deepcopy(self.given, dict(model.copies)))
        return self.given if copied.error else copied.value


class AttributorFactory(Explainer):
    """A class, or a function of one argument, that makes an attributor for a network."""

    gradients = True

    def __init__(self, make: Callable[[Any], Any]):
        self.make = make

    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """The attributions of the attributor made for this model."""
        made = self.make(model.module)
        return (Zennit(made) if not hasattr(made, "attribute") else Attributor(made)).explain(model, images, targets)


class Zennit(Attributor):
    """An attributor of zennit: called with the image and a one-hot of the target, unless it has its own `attr_output`."""

    def _attribute(self, given: Any, x: Any, target: Any) -> Any:
        if given.attr_output_fn.__name__ != "identity":
            return given(x)[1]
        import torch

        return given(x, lambda logits: torch.zeros_like(logits).scatter_(1, target[:, None], 1.0))[1]


class Composite(Explainer):
    """A composite of zennit, for any network: the gradient under its rules."""

    gradients = True

    def __init__(self, given: Any):
        self.given = given

    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """The relevance of every input value."""
        from zennit.attribution import Gradient

        return Zennit(Gradient(model.module, self.given)).explain(model, images, targets)
