"""Makes methods from objects with a verb, captum and zennit attributors, factories of them, and plain functions."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from diorama.adapt.arrays import as_layers
from diorama.adapt.attributors import Attributor, AttributorFactory, Composite, Zennit
from diorama.adapt.classifying import is_module
from diorama.adapt.encoders import Network, transformer
from diorama.adapt.explaining import heatmaps, tensors
from diorama.adapt.models import model as as_model
from diorama.adapt.wrapping import has, require, wrapped
from diorama.core.answers import Answer, Layers
from diorama.core.contracts import (
    Control,
    Decoding,
    Decomposer,
    Encoder,
    Explainer,
    Fitting,
    ImageByImage,
    Layered,
    Method,
    Model,
    Saved,
    Sweeping,
    Trainer,
)
from diorama.core.errors import InputError
from diorama.core.frame import Frame

#: The members by which a kind of method is recognised.
_SIGNS: dict[Any, tuple[str, ...]] = {
    ImageByImage: ("explain_targets",),
    Explainer: ("explain",),
    Sweeping: ("decompose", "sweep"),
    Layered: ("decompose", "features", "loss_grad", "layers"),
    Decomposer: ("decompose",),
    Decoding: ("encode", "decode"),
    Encoder: ("encode",),
    Trainer: ("solve",),
    Saved: ("load",),
    Fitting: ("fit", "fitted"),
}


def method(given: Any, name: str) -> Method:
    """A method from an object with a verb of one of the tracks, an object with `attribute`, or a function."""
    if isinstance(given, Control) and not given.given_truth:
        raise InputError(f"{name} is a control, which sees the truth: controls are the protocol's own (--controls)")
    if isinstance(given, Method):
        return given
    bases = [kind for kind, signs in _SIGNS.items() if has(given, *signs)]
    if bases and bases != [Fitting] and not _encodes_tensors(given):
        return wrapped(given, bases)
    if found := _from_library(given):
        return found
    if callable(given):
        return Function(given)
    require(given, ("explain, decompose, encode or solve",), "method", name)
    raise InputError(f"{name} is no method")


def _encodes_tensors(given: Any) -> bool:
    """Whether `encode` is that of a torch module, which takes a tensor, and not that of our contract, which takes frames."""
    if not is_module(given) or not has(given, "encode"):
        return False
    return next(iter(inspect.signature(given.encode).parameters), "") != "frames"


def _from_library(given: Any) -> Method | None:
    """A method from an object of torch, captum, zennit or scikit-learn, or one with the same members."""
    if is_module(given):
        return Network(given)
    if has(given, "attribute"):
        return AttributorFactory(given) if inspect.isclass(given) else Attributor(given)
    if has(given, "composite", "model", "forward"):
        return Zennit(given)
    if has(given, "context", "register", "handles"):
        return Composite(given)
    return transformer(given) if has(given, "fit", "transform") else None


def explain(given: Any, model: Any, images: np.ndarray, targets: np.ndarray) -> list[Answer]:
    """The answers of any explainer about images (n, h, w, 3), for one target class each, of any model."""
    asked = method(given, _name(given)).for_track("explain")
    assert isinstance(asked, Explainer)
    known = as_model(model, _name(model)) if has(model, "logits") else model  # a module alone is enough for gradients
    return list(asked.explain(known, images, targets))


class Function(Method):
    """A plain function; the protocol that judges it decides its track."""

    def __init__(self, given: Callable[..., Any]):
        self.given = given

    def for_track(self, track: str) -> Method:
        """The function as a method of a track."""
        return _TRACKS[track](self.given)


class _FunctionMethod(Method):
    def __init__(self, given: Callable[..., Any]):
        self.given = given


class _FunctionExplainer(_FunctionMethod, Explainer):
    """`(module, x, target) -> map`, or a function of one argument that makes an object with `attribute`.

    x (n, 3, h, w) is plain data, which the function may clone, change or give gradients (`x.requires_grad_()`).
    """

    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """One map for each image."""
        if inspect.isfunction(self.given) and len(inspect.signature(self.given).parameters) == 1:
            return AttributorFactory(self.given).explain(model, images, targets)
        x, target = tensors(model, images, targets)
        return heatmaps(_call_function(self.given, model.module, x, target))


class _FunctionDecomposer(_FunctionMethod, Decomposer):
    """`frames -> Layers`, or (reflectance, shading)."""

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers that the function returns."""
        return as_layers(self.given(frames))


class _FunctionEncoder(_FunctionMethod, Encoder):
    """`images (n, h, w, 3) -> codes`."""

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """The codes that the function returns."""
        return self.given(np.stack([frame.srgb() for frame in frames]))


class _FunctionTrainer(_FunctionMethod, Trainer):
    """`(grams, labels, seeds) -> coefficients, intercepts`."""

    def solve(self, grams: np.ndarray, labels: np.ndarray, seeds: Any) -> Any:
        """The function's solution."""
        return self.given(grams, labels, seeds)


_TRACKS: dict[str, type[_FunctionMethod]] = {
    "explain": _FunctionExplainer,
    "decompose": _FunctionDecomposer,
    "represent": _FunctionEncoder,
    "concept": _FunctionTrainer,
}


def _call_function(function: Callable[..., Any], module: Any, x: Any, target: Any) -> Any:
    """The result of a user's function; if it needs x.grad but did not request it, it is called again with an x that
    requires gradients.
    """
    x = x.contiguous()  # so that it can be viewed in another shape
    try:
        return function(module, x.clone(), target)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
    return function(module, x.requires_grad_(True), target)


def _name(given: Any) -> str:
    return str(getattr(given, "__name__", type(given).__name__))
