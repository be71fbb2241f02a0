"""Gradients of a target's logit with respect to the image: one forward and one backward pass, the model unchanged."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diorama.adapt.explaining import heatmaps
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor, nn

#: How the colour channels of a map are combined: kept, summed, or their maximum.
Channels = Literal["keep", "sum", "max"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfEveryValue(Explainer):
    """An explainer that attributes something to every value of the image.

    channels  colour channels of the map: keep the three (as FunnyBirds), their sum or their max
    absolute  takes the absolute value first; False keeps the sign
    """

    gradients = True

    channels: Channels = "keep"
    absolute: bool = False

    @abstractmethod
    def attribution(self, model: Any, images: np.ndarray, targets: np.ndarray) -> "Tensor":
        """The attribution of every value, (n, 3, h, w)."""

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3), or (h, w, 1) where channels are reduced."""
        return as_answers(self.attribution(model, images, targets), self.channels, self.absolute)


def gradient(module: "nn.Module", x: "Tensor", target: "Tensor") -> "Tensor":
    """∂f_target/∂x of every image of a batch (n, 3, h, w); f are the logits."""
    return next(gradients(module, x, target[None]))


def gradients(module: "nn.Module", x: "Tensor", targets: "Tensor") -> "Iterator[Tensor]":
    """∂f_target/∂x of a batch for targets (k, n), one after the other: one forward pass, k backward."""
    import torch

    with torch.enable_grad():
        x = x.detach().requires_grad_(True)
        logits = module(x)
    for k, target in enumerate(targets, 1):
        with torch.enable_grad():
            total = chosen(logits, target).sum()
        yield torch.autograd.grad(total, x, retain_graph=k < len(targets))[0]


def chosen(logits: "Tensor", target: "Tensor") -> "Tensor":
    """The target's logit of every image, (n,)."""
    return logits.gather(1, target[:, None])[:, 0]


def as_answers(attribution: "Tensor", channels: Channels, absolute: bool) -> list[Answer]:
    """Heat maps (h, w, 3), or (h, w, 1) where channels are reduced; the absolute value is taken before the reduction."""
    if absolute:
        attribution = attribution.abs()
    if channels == "sum":
        attribution = attribution.sum(dim=1, keepdim=True)
    elif channels == "max":
        attribution = attribution.amax(dim=1, keepdim=True)
    return heatmaps(attribution, signed=not absolute)


def layer_of(module: "nn.Module", name: str, method: str) -> "nn.Module":
    """The submodule of that name. Raises InputError with the nearest names where there is none."""
    if reason := missing_layer(module, name, method):
        raise InputError(reason)
    return module.get_submodule(name)


def missing_layer(module: "nn.Module", name: str | None, method: str) -> str:
    """A message with the nearest names if a module has no layer of this name; empty if it has one, or `name` is None."""
    names = [n for n, _ in module.named_modules() if n]
    known = name is None or name in names
    return "" if known else f"{method}: the model has no layer {name!r}; {did_you_mean(str(name), names)}"
