"""Explainers of every kind, asked in one way: our own, captum and zennit objects, factories of them, plain functions."""

import importlib.util
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Heatmap
from diorama.core.errors import AnswerError, InputError


def explain(method: Any, model: Any, images: np.ndarray, targets: np.ndarray) -> list[Answer]:
    """What a method says about images (n, h, w, 3) for one target class each.

    Accepted: `method.explain(model, images, targets)`; an object with captum's `attribute(x, target=)`; a function of one
    argument that makes such an object from the model's torch module; a function `(module, x, target) -> map`, which
    gets x (n, 3, h, w) as plain data, to be cloned, altered or asked for gradients (`x.requires_grad_()`) as it likes.
    """
    if hasattr(method, "explain"):
        return list(method.explain(model, images, targets))
    if inspect.isfunction(method) and len(inspect.signature(method).parameters) == 1:
        method = method(model.module)
    x, target = tensors(model, images, targets)
    if hasattr(method, "attribute"):
        return heatmaps(method.attribute(x.requires_grad_(True), target=target))
    if callable(method):
        return heatmaps(_called(method, model.module, x, target))
    raise AnswerError(f"{type(method).__name__} cannot explain: it has neither explain nor attribute")


def _called(function: Callable[..., Any], module: Any, x: Any, target: Any) -> Any:
    """What a user's function gives; one that takes the gradient at x without asking for it is called again with one."""
    x = x.contiguous()  # so that it can be viewed in another shape
    try:
        return function(module, x.clone(), target)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
    return function(module, x.requires_grad_(True), target)


def tensors(model: Any, images: np.ndarray, targets: np.ndarray) -> tuple[Any, Any]:
    """Images and targets as torch tensors (n, 3, h, w) and (n,) on the model's device; channels last in memory."""
    import torch

    module = module_of(model)
    place = next((p.device for p in (*module.parameters(), *module.buffers())), torch.device("cpu"))
    x = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).to(place)
    return x, torch.from_numpy(np.asarray(targets, np.int64)).to(place)


def module_of(model: Any) -> Any:
    """The model's torch module. Raises InputError where it has none: what needs gradients cannot be asked then."""
    module = getattr(model, "module", None)
    if module is None:
        raise InputError(
            f"{type(model).__name__} has no torch module (`module`) to take gradients of: use rise, lime or occlusion"
        )
    return module


def heatmaps(attribution: Any, signed: bool = True) -> list[Answer]:
    """Attributions (n, c, h, w) or (n, h, w) as heat maps."""
    array = attribution.detach().cpu().numpy() if hasattr(attribution, "detach") else np.asarray(attribution)
    if array.ndim == 4:
        array = array.transpose(0, 2, 3, 1)
    return [Heatmap(np.ascontiguousarray(one), signed) for one in array]


def need(library: str, method: str, extra: str) -> None:
    """Raise InputError unless an optional library is installed; the message names the extra that brings it."""
    if importlib.util.find_spec(library) is None:
        raise InputError(f"{method} needs {library}: pip install 'diorama[{extra}]'")
