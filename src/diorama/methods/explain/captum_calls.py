"""Calls of captum that put hooks on activations: its warnings are silenced, and networks it cannot handle are refused
before the run.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING

import torch
from captum.attr import DeepLift, GuidedBackprop
from torch import nn

from diorama.adapt.classifying import USUAL_SIZE, place_of_module

if TYPE_CHECKING:
    from torch import Tensor

_ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.Sigmoid, nn.Tanh, nn.Softplus, nn.MaxPool2d, nn.Softmax)


def guided(module: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Guided backpropagation (n, 3, h, w)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU activations")
        return GuidedBackprop(module).attribute(x.detach().requires_grad_(True), target=target).detach()


def deep_lift(module: nn.Module, x: Tensor, target: Tensor, baseline: float) -> Tensor:
    """DeepLift (n, 3, h, w)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Setting forward, backward hooks and attributes on non-linear")
        x = x.detach().requires_grad_(True)
        return DeepLift(module).attribute(x, torch.full_like(x, baseline), target=target).detach()


def used_twice(module: nn.Module, size: int | None) -> str:
    """The name of an activation that runs more than once in a pass, or an empty string."""
    calls: Counter[str] = Counter()
    named = [(name, part) for name, part in module.named_modules() if isinstance(part, _ACTIVATIONS)]
    hooks = [part.register_forward_hook(lambda *_, name=name: calls.update([name])) for name, part in named]
    side = size or USUAL_SIZE
    try:
        with torch.no_grad():
            module(torch.zeros(1, 3, side, side, device=place_of_module(module)))
    finally:
        for hook in hooks:
            hook.remove()
    return next((name for name, count in calls.items() if count > 1), "")
