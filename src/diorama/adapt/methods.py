"""Methods of every kind: objects with a verb, captum and zennit attributors, factories of them, plain functions."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
    if bases and bases != [Fitting]:
        return wrapped(given, bases)
    if has(given, "attribute"):
        return Attributor(given)
    if callable(given):
        return Function(given)
    require(given, ("explain, decompose, encode or solve",), "method", name)
    raise InputError(f"{name} is no method")


def explain(given: Any, model: Any, images: np.ndarray, targets: np.ndarray) -> list[Answer]:
    """What any kind of explainer says about images (n, h, w, 3) for one target class each, of any kind of model."""
    asked = method(given, _name(given)).for_track("explain")
    assert isinstance(asked, Explainer)
    known = as_model(model, _name(model)) if has(model, "logits") else model  # a module alone is enough for gradients
    return list(asked.explain(known, images, targets))


class Attributor(Explainer):
    """An object with captum's `attribute(x, target=)`; zennit's attributors made by a factory have it too."""

    gradients = True

    def __init__(self, given: Any):
        self.given = given

    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """What it attributes."""
        x, target = tensors(model, images, targets)
        return heatmaps(self.given.attribute(x.requires_grad_(True), target=target))


class Function(Method):
    """A plain function, whose track is that of the protocol that asks it."""

    def __init__(self, given: Callable[..., Any]):
        self.given = given

    def for_track(self, track: str) -> Method:
        """The function as a method of a track."""
        kinds: dict[str, type[_OfTrack]] = {"explain": _Explains, "decompose": _Decomposes, "represent": _Encodes}
        if track not in kinds:
            raise InputError(f"{_name(self.given)} is a function, which no protocol of the {track} track can ask")
        return kinds[track](self.given)


class _OfTrack(Method):
    def __init__(self, given: Callable[..., Any]):
        self.given = given


class _Explains(_OfTrack, Explainer):
    """`(module, x, target) -> map`, or a function of one argument that makes an object with `attribute`.

    x (n, 3, h, w) is plain data, to be cloned, altered or asked for gradients (`x.requires_grad_()`) as it likes.
    """

    def explain(self, model: Model, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """One map for each image."""
        if inspect.isfunction(self.given) and len(inspect.signature(self.given).parameters) == 1:
            return Attributor(self.given(model.module)).explain(model, images, targets)
        x, target = tensors(model, images, targets)
        return heatmaps(_called(self.given, model.module, x, target))


class _Decomposes(_OfTrack, Decomposer):
    """`frames -> Layers`."""

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """What it gives."""
        return self.given(frames)


class _Encodes(_OfTrack, Encoder):
    """`images (n, h, w, 3) -> codes`."""

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """What it gives."""
        return self.given(np.stack([frame.srgb() for frame in frames]))


def _called(function: Callable[..., Any], module: Any, x: Any, target: Any) -> Any:
    """What a user's function gives; one that takes the gradient at x without asking for it is called again with one."""
    x = x.contiguous()  # so that it can be viewed in another shape
    try:
        return function(module, x.clone(), target)
    except RuntimeError as error:
        if "does not require grad" not in str(error):
            raise
    return function(module, x.requires_grad_(True), target)


def _name(given: Any) -> str:
    return str(getattr(given, "__name__", type(given).__name__))
