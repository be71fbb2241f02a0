"""Makes models from torch modules and plain functions.

A model has `logits((n, h, w, 3) float32 sRGB in [0, 1]) -> (n, classes)`, `classes`, and, if it is a network, the torch
`module`: sRGB (n, 3, h, w) in, logits out, in eval mode, without gradients on its parameters.
"""

from __future__ import annotations

import copy
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.adapt.folding import folded
from diorama.core import device
from diorama.core.answers import as_array
from diorama.core.contracts import Model
from diorama.core.errors import InputError, did_you_mean
from diorama.core.guard import attempt

if TYPE_CHECKING:
    from torch import Tensor, nn

#: The side of the first trial image for a model that does not say its input size.
USUAL_SIZE = 224


def adapt(given: Any, name: str, side: int | None = None) -> Any:
    """A model from a torch module (copied, so that the user's stays unchanged) or a function images → logits.

    `side` is the size of the world's images; it is used for a network that neither states its size nor accepts the
    usual one.
    """
    if is_module(given):
        copies: dict[int, Any] = {}
        module = copy.deepcopy(given, copies)
        made = Classifier(module, name, _int_attribute(given, "size"), getattr(given, "cam_layer", None), side)
        made.copies = copies
        return made
    if callable(given):
        return Function(given, name, side or USUAL_SIZE)
    raise InputError(
        f"{name} is {type(given).__name__}, not a model: give a torch module, a function images → logits,"
        " or an object with logits and classes"
    )


def pass_module(model: Any, layer: str | None = None, gradients: bool = False) -> Any:
    """The torch module to pass images through: the folded twin, unless it has no such layer or gradients."""
    twin = model.folded
    return twin.module if twin is not None and twin.serves(layer, gradients) else model.module


def is_module(given: Any) -> bool:
    """Whether something is a torch module, or a class of them."""
    torch = sys.modules.get("torch")  # a module cannot exist before torch is imported
    if torch is None:
        return False
    return issubclass(given, torch.nn.Module) if isinstance(given, type) else isinstance(given, torch.nn.Module)


def _int_attribute(given: Any, name: str) -> int | None:
    value = getattr(given, name, None)
    return value if isinstance(value, int) else None


class Classifier(Model):
    """A torch module as a model. `size` None: images of any size; `cam_layer` None: the last feature map, if any."""

    def __init__(
        self,
        module: nn.Module,
        name: str,
        size: int | None = None,
        cam_layer: str | None = None,
        side: int | None = None,
    ):
        module = prepared(module)
        asked = size or _first_side(module, side)
        self.module = laid_out(module, asked)
        self.name, self.size = name, size
        seen = first_pass(self.module, asked, name)
        self.classes, self.layers = seen.classes, seen.layers
        self.cam_layer = seen.cam_layer if cam_layer is None else existing_layer(self.module, cam_layer, name)
        self.folded = folded(self.module, asked)

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, h, w, 3) float32 sRGB in [0, 1] → (n, classes) float32."""
        check_images(images, self.size)
        return logits(pass_module(self), images)

    def features(self, images: np.ndarray, layer: str) -> np.ndarray:
        """The output of one of `layers`."""
        check_images(images, self.size)
        check_layer(layer, self.layers)
        return features(self.module, images, layer)

    def fingerprint(self) -> str:
        """The digest of the weights."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return state_digest(self.module)


class Function(Model):
    """A function (n, h, w, 3) float32 sRGB → (n, classes). It has no gradients: methods that need them are skipped."""

    def __init__(self, function: Callable[[np.ndarray], Any], name: str, side: int = USUAL_SIZE):
        self._function, self.name, self.size = function, name, _int_attribute(function, "size")
        side = self.size or side
        outcome = attempt(lambda: self.logits(np.zeros((1, side, side, 3), np.float32)))
        if outcome.error:
            raise InputError(f"{name} cannot be asked about a {side}×{side} image: {outcome.reason}") from outcome.error
        self.classes = int(outcome.value.shape[1])

    def logits(self, images: np.ndarray) -> np.ndarray:
        """The logits that the function returns, (n, classes)."""
        found = self._function(images)
        array = as_array(found)
        if array.ndim != 2 or len(array) != len(images):
            raise InputError(f"{self.name} gave {array.shape} for {len(images)} images: logits are (n, classes)")
        return array


@dataclass(frozen=True, slots=True)
class FirstPass:
    """What a trial pass tells about a module: its number of classes, its outer layers, its last feature map."""

    classes: int
    layers: tuple[str, ...]
    cam_layer: str | None


def place(module: nn.Module) -> nn.Module:
    """One of our own modules, prepared, with channels last in memory, which is faster."""
    import torch

    return prepared(module).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def prepared(module: nn.Module) -> nn.Module:
    """The module in eval mode, float32, without gradients on its parameters, on the device in use.

    Activations no longer work in place, so that a hook on a layer sees the layer's output; no value changes.
    """
    for part in module.modules():
        if getattr(part, "inplace", False) is True:
            part.inplace = False  # type: ignore[assignment]
    return module.eval().requires_grad_(False).float().to(device.current())


def _first_side(module: nn.Module, side: int | None) -> int:
    """The side of the trial image: 224, so that the digest does not depend on the world; `side` if the network refuses
    that.
    """
    import torch

    trial = torch.zeros(1, 3, USUAL_SIZE, USUAL_SIZE, device=place_of_module(module))
    return USUAL_SIZE if side is None or _output(module, trial) is not None else side


def laid_out(module: nn.Module, size: int) -> nn.Module:
    """A user's module with channels last in memory; unchanged, and given contiguous images, if it cannot work so.

    It cannot if it views weights or activations in another shape: the view fails, or has other values. The outputs for
    two images are compared in both layouts.
    """
    import torch

    trial = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0)).to(place_of_module(module))
    expected = _output(module, trial)
    module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    found = _output(module, trial.contiguous(memory_format=torch.channels_last))
    if expected is None or (found is not None and _nearly_equal(found, expected)):
        return module
    module.to(memory_format=torch.contiguous_format).register_forward_pre_hook(_make_contiguous)  # type: ignore[call-overload]
    return module


def _output(module: nn.Module, x: Tensor) -> Tensor | None:
    """The output of a module; None if it fails or returns no tensor, which `first_pass` reports."""
    import torch

    with torch.inference_mode():
        found = attempt(lambda: module(x)).value
    return found if isinstance(found, torch.Tensor) else None


def _nearly_equal(a: Tensor, b: Tensor) -> bool:
    import torch

    return a.shape == b.shape and torch.allclose(a, b, 1e-3, 1e-3 * float(b.abs().max()), equal_nan=True)


def _make_contiguous(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    return (given[0].contiguous(), *given[1:])


def first_pass(module: nn.Module, size: int, name: str) -> FirstPass:
    """Pass one black image through a module and record the shapes in its outer layers."""
    import torch

    shapes: dict[str, tuple[int, ...]] = {}
    hooks = [m.register_forward_hook(_note_shape(shapes, n)) for n, m in outer_layers(module)]
    try:
        with torch.inference_mode():
            outcome = attempt(lambda: module(torch.zeros(1, 3, size, size, device=place_of_module(module))))
    finally:
        for hook in hooks:
            hook.remove()
    if outcome.error:
        raise InputError(f"{name} cannot be asked about a {size}×{size} image: {outcome.reason}") from outcome.error
    shape = tuple(getattr(outcome.value, "shape", ()))
    if len(shape) != 2 or shape[0] != 1:
        kind = f"{shape}" if shape else type(outcome.value).__name__
        raise InputError(f"{name} gave {kind} for one image: a classifier gives logits (n, classes)")
    return FirstPass(shape[1], tuple(shapes), _last_map(module, shapes))


def _note_shape(shapes: dict[str, tuple[int, ...]], name: str) -> Callable[..., None]:
    def hook(module: nn.Module, given: Any, out: Any) -> None:
        if hasattr(out, "shape"):
            shapes[name] = tuple(out.shape)

    return hook


def outer_layers(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The children of a module by name; of a wrapper (`models/full_size.py`), the children of its `net`."""
    for name, child in module.named_children():
        if name == "net":
            yield from ((f"net.{inner}", m) for inner, m in child.named_children())
        else:
            yield name, child


def _last_map(module: nn.Module, shapes: dict[str, tuple[int, ...]]) -> str | None:
    """The layer for Grad-CAM: the last one with output (n, c, h, w) that is not a pooling. None for transformers, whose
    layers give tokens (n, t, c) or maps with the channels last."""
    from torch import nn

    if any(len(shape) == 3 for shape in shapes.values()):
        return None
    maps = [n for n, s in shapes.items() if len(s) == 4 and min(s[2:]) > 1 and "pool" not in n.rpartition(".")[2]]
    if not maps or isinstance(module.get_submodule(maps[-1]), nn.LayerNorm):
        return None
    return maps[-1]


def existing_layer(module: nn.Module, layer: str, name: str) -> str:
    """The full name of a layer; `net.` may be left out."""
    names = [n for n, _ in module.named_modules() if n]
    for full in (layer, f"net.{layer}"):
        if full in names:
            return full
    raise InputError(f"{name} has no layer {layer!r}; {did_you_mean(layer, names)}")


def check_images(images: np.ndarray, size: int | None) -> None:
    """Raise InputError unless images are (n, size, size, 3) float32; any height and width where `size` is None."""
    if not isinstance(images, np.ndarray) or images.dtype != np.float32:
        kind = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise InputError(f"images are {kind}: give a float32 array in [0, 1]")
    fits = images.ndim == 4 and images.shape[3] == 3 and (size is None or images.shape[1:3] == (size, size))
    if not fits:
        wanted = f"(n, {size}, {size}, 3)" if size else "(n, h, w, 3)"
        raise InputError(f"images are {images.shape}: this model takes {wanted}")


def check_layer(layer: str, layers: tuple[str, ...]) -> None:
    """Raise InputError unless a layer is one of the model's."""
    if layer not in layers:
        raise InputError(f"no layer {layer!r}; {did_you_mean(layer, list(layers))}")


def logits(module: nn.Module, images: np.ndarray) -> np.ndarray:
    """(n, h, w, 3) → (n, classes) float32."""
    import torch

    with torch.inference_mode():
        found = [module(chunk).float().cpu().numpy() for chunk in _chunks(module, images)]
    return np.concatenate(found)


def features(module: nn.Module, images: np.ndarray, layer: str) -> np.ndarray:
    """The output of a layer: (n, channels, h, w) float32."""
    import torch

    kept: list[np.ndarray] = []
    hook = module.get_submodule(layer).register_forward_hook(lambda _, __, out: kept.append(out.float().cpu().numpy()))
    try:
        with torch.inference_mode():
            for chunk in _chunks(module, images):
                module(chunk)
    finally:
        hook.remove()
    return np.concatenate(kept)


def _chunks(module: nn.Module, images: np.ndarray) -> Iterator[Tensor]:
    import torch

    place = place_of_module(module)
    size = device.chunk(place.type)
    for i in range(0, max(len(images), 1), size):
        yield torch.from_numpy(np.array(images[i : i + size])).permute(0, 3, 1, 2).to(place)  # channels last: faster


def place_of_module(module: nn.Module) -> Any:
    """The torch device that a module is on."""
    first = next(module.parameters(), None)
    import torch

    return torch.device(device.current()) if first is None else first.device


def state_digest(module: nn.Module) -> str:
    """The digest of every name, shape and value of a module's state."""
    total = hashlib.blake2b(digest_size=16)
    for name, tensor in module.state_dict().items():
        values = tensor.detach().cpu().contiguous()
        total.update(f"{name}{tuple(values.shape)}{values.dtype}\0".encode())
        total.update(values.flatten().view(values.dtype).numpy().tobytes())
    return total.hexdigest()
