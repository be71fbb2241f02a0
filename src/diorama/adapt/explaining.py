"""Helpers of explainers: images to tensors, attributions to heat maps, checks for optional libraries."""

import importlib.util
from typing import Any

import numpy as np

from diorama.adapt.classifying import pass_module
from diorama.core.answers import Answer, Heatmap, as_array
from diorama.core.errors import InputError


def tensors(model: Any, images: np.ndarray, targets: np.ndarray) -> tuple[Any, Any]:
    """Images and targets as torch tensors (n, 3, h, w) and (n,) on the model's device; channels last in memory.

    Both are copied to an accelerator in one transfer.
    """
    import torch

    module = module_of(model)
    place = next((p.device for p in (*module.parameters(), *module.buffers())), torch.device("cpu"))
    wanted = np.asarray(targets, np.int64)
    if place.type == "cpu":
        return torch.from_numpy(np.array(images)).permute(0, 3, 1, 2), torch.from_numpy(wanted)
    both = torch.from_numpy(np.concatenate([np.ravel(images), wanted.astype(np.float32).ravel()])).to(place)
    x, target = both[: images.size].reshape(images.shape), both[images.size :].reshape(wanted.shape)
    return x.permute(0, 3, 1, 2), target.long()


def module_of(model: Any) -> Any:
    """The model's torch module; InputError if it has none."""
    if model.module is None:
        raise InputError(
            f"{type(model).__name__} has no torch module (`module`) to take gradients of: use rise, lime or occlusion"
        )
    return model.module


def gradient_module(model: Any, layer: str | None = None) -> Any:
    """The torch module to take gradients of: the folded twin if its gradients (and `layer`) are the same."""
    module_of(model)  # raises an error with advice if there is none
    return pass_module(model, layer, gradients=True)


def heatmaps(attribution: Any, signed: bool = True) -> list[Answer]:
    """Attributions (n, c, h, w) or (n, h, w) as heat maps."""
    array = as_array(attribution)
    if array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    return [Heatmap(np.ascontiguousarray(one), signed) for one in array]


def need(library: str, method: str, extra: str) -> None:
    """Raise InputError unless an optional library is installed; the message names the extra to install."""
    if importlib.util.find_spec(library) is None:
        raise InputError(f"{method} needs {library}: pip install 'diorama[{extra}]'")
