"""Activations of a layer of a classifier, and gradients of its output with respect to them, flattened.

Callers pass images in chunks of a fixed size, so that a value does not depend on the number of images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.adapt.classifying import existing_layer
from diorama.adapt.explaining import module_of, tensors
from diorama.core.errors import InputError, which_layer

if TYPE_CHECKING:
    from torch import Tensor

#: Outputs (n, classes) and targets (n,) → one number per image.
Objective = Callable[["Tensor", "Tensor"], "Tensor"]


def layer_name(model: Any, layer: str | None) -> str:
    """The full name of a layer of the model's module; None is the last of its `layers`."""
    module, outer = module_of(model), list(model.layers)
    names = [name for name, _ in module.named_modules() if name]
    if layer is None:
        return existing_layer(module, outer[-1] if outer else names[-1], "the model")
    if layer in names or f"net.{layer}" in names:
        return existing_layer(module, layer, "the model")
    raise InputError(f"the model has no layer {layer!r}; {which_layer(layer, names, outer)}")


def activations(model: Any, images: np.ndarray, layer: str) -> np.ndarray:
    """The output of a layer for images (n, h, w, 3), flattened: (n, d) float32."""
    import torch

    x, _ = tensors(model, images, np.zeros(len(images)))
    with torch.no_grad():
        return _flat(_at_layer(model, x, layer)[0])


def layer_gradients(
    model: Any, images: np.ndarray, targets: np.ndarray, layer: str, objective: Objective
) -> np.ndarray:
    """The gradient of each image's objective with respect to the output of a layer, flattened: (n, d) float32."""
    import torch

    x, goal = tensors(model, images, np.zeros(len(images)))
    goal = torch.from_numpy(np.asarray(targets)).to(x.device)
    with torch.enable_grad():
        at, out = _at_layer(model, x, layer)
        value = objective(out, goal).sum()
        gradient = torch.autograd.grad(value, at, allow_unused=True)[0] if value.requires_grad else None
    if gradient is None:
        raise InputError(f"the output does not depend on layer {layer!r} in a differentiable way: choose another layer")
    return _flat(gradient)


def _at_layer(model: Any, x: Tensor, layer: str) -> tuple[Tensor, Tensor]:
    """The layer's output, as a leaf of the graph, and the model's output computed from it."""
    import torch

    outputs: list[Tensor] = []

    def keep(module: Any, given: Any, out: Any) -> Tensor:
        if not isinstance(out, torch.Tensor):
            raise InputError(f"layer {layer!r} gives {type(out).__name__}, not one tensor: choose another layer")
        outputs.append(out.detach().requires_grad_(torch.is_grad_enabled()))
        return outputs[-1]

    module = module_of(model)
    hook = module.get_submodule(layer).register_forward_hook(keep)
    try:
        out = module(x)
    finally:
        hook.remove()
    if len(outputs) != 1:
        raise InputError(f"layer {layer!r} runs {len(outputs)} times in one pass: choose one that runs once")
    return outputs[0], out


def _flat(found: Tensor) -> np.ndarray:
    return found.detach().float().cpu().contiguous().numpy().reshape(len(found), -1)
