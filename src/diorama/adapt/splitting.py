"""Methods made from torch modules, and those that split an image into R and S, with access to inner layers for CSM."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from diorama.adapt.arrays import as_layers
from diorama.adapt.folding import Ask, Folded, folded, forward
from diorama.core.answers import Layers, as_array
from diorama.core.contracts import At, Layered, Method
from diorama.core.errors import InputError, which_layer
from diorama.core.frame import Frame

BRANCHES = ("reflectance", "shading")
#: The pseudo-layer that is the answer itself.
OUTPUT = "output"


class TorchMethod(Method):
    """A method that is a torch module."""

    def __init__(self, module: Any):
        self.module = module
        self.twins: dict[int, Folded | None] = {}

    def _output(self, images: Any, ask: Ask) -> Any:
        """The module's output for images (n, 3, h, w), computed by its folded twin if there is one."""
        side = images.shape[2]
        if side not in self.twins:
            self.twins[side] = folded(self.module, side, ask)
        twin = self.twins[side]
        return ask(twin.module if twin else self.module, images)

    def _tensor(self, images: Any) -> Any:
        import torch

        place = next((p.device for p in self.module.parameters()), None)
        return torch.from_numpy(np.ascontiguousarray(images)).to(place)

    def _images(self, frames: Sequence[np.ndarray]) -> Any:
        return self._tensor(np.stack(frames).transpose(0, 3, 1, 2))


class Splits(TorchMethod, Layered):
    """`module(x)` gives (reflectance, shading), each (1, 1 or 3, h, w), or both by name; x (1, 3, h, w); all linear light.

    Its layers are its submodules; a layer can be read if it runs once in a pass and gives one tensor.
    """

    @cached_property
    def layers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of all submodules, and `output`, the answer itself."""
        return (*(name for name, _ in self.module.named_modules() if name), OUTPUT)

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The two layers."""
        import torch

        with torch.no_grad():
            pair = by_branch(self._output(self._images([frames[0].linear()]), forward))
        return as_layers([as_array(pair[branch])[0].transpose(1, 2, 0) for branch in BRANCHES])

    def features(self, frames: Sequence[Frame], branch: str, layer: str) -> np.ndarray:
        """The output of a layer, flattened: (n, d) float32."""
        return self.features_of(frames, [(branch, [layer])])[0][0]

    def features_of(self, frames: Sequence[Frame], asked: Sequence[At]) -> list[list[np.ndarray]]:
        """The outputs of several layers, from one pass for each frame; all but `output` are the same for both branches."""
        import torch

        with torch.no_grad():
            seen = [self._record_pass(frame, asked) for frame in frames]
        return [
            [np.stack([_flat(activations[at(branch, layer)]) for activations, _ in seen]) for layer in layers]
            for branch, layers in asked
        ]

    def loss_grad(self, frames: Sequence[Frame], branch: str, layer: str, truths: Sequence[np.ndarray]) -> np.ndarray:
        """Gradients (n, d) float32 of each image's mean squared error by the output of a layer."""
        return self.loss_grads_of(frames, [(branch, [layer])], [truths])[0][0]

    def loss_grads_of(
        self, frames: Sequence[Frame], asked: Sequence[At], truths: Sequence[Sequence[np.ndarray]]
    ) -> list[list[np.ndarray]]:
        """Gradients for several branches, or several truths of one, from one forward pass for each frame."""
        found = [self._grads(f, asked, of_frame) for f, of_frame in zip(frames, zip(*truths, strict=True), strict=True)]
        return [[np.stack(rows) for rows in zip(*of_asked, strict=True)] for of_asked in zip(*found, strict=True)]

    def _grads(self, frame: Frame, asked: Sequence[At], truths: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        import torch

        with torch.enable_grad():
            activations, pair = self._record_pass(frame, asked)
            losses = [
                (pair[branch] - self._truth_tensor(truth, pair[branch])).square().mean()
                for (branch, _), truth in zip(asked, truths, strict=True)
            ]
            return [
                [_gradient(loss, activations[at(branch, layer)], branch, layer) for layer in layers]
                for loss, (branch, layers) in zip(losses, asked, strict=True)
            ]

    def _truth_tensor(self, truth: np.ndarray, answer: Any) -> Any:
        """A truth (h, w, 1 or 3) as a tensor (1, c, h, w) with the channels of the answer."""
        fitting = truth.mean(axis=2, keepdims=True) if answer.shape[1] == 1 else truth
        return self._tensor(fitting.transpose(2, 0, 1)[None].astype(np.float32))

    def _record_pass(self, frame: Frame, asked: Sequence[At]) -> tuple[dict[tuple[str, str], Any], dict[str, Any]]:
        """The outputs of the layers in one pass, and the reflectance and shading of that pass."""
        import torch

        seen: dict[str, list[Any]] = {layer: [] for _, layers in asked for layer in layers if layer != OUTPUT}
        hooks = [
            self._submodule(layer).register_forward_hook(lambda part, given, out, kept=kept: kept.append(out))
            for layer, kept in seen.items()
        ]
        try:
            images = self._images([frame.linear()]).requires_grad_(torch.is_grad_enabled())
            pair = by_branch(self.module(images))
        finally:
            for hook in hooks:
                hook.remove()
        parts = {("", layer): _single_output(layer, kept) for layer, kept in seen.items()}
        return parts | {(branch, OUTPUT): pair[branch] for branch in BRANCHES}, pair

    def _submodule(self, layer: str) -> Any:
        if layer not in self.layers:
            raise InputError(f"the network has no layer {layer!r}; {which_layer(layer, list(self.layers))}")
        return self.module.get_submodule(layer)


def at(branch: str, layer: str) -> tuple[str, str]:
    """The key of an activation: inner layers are shared by both branches, `output` is not."""
    return (branch, OUTPUT) if layer == OUTPUT else ("", layer)


def by_branch(found: Any) -> dict[str, Any]:
    """The reflectance and shading of an output: given by name, or reflectance first."""
    named = found if isinstance(found, Mapping) else dict(enumerate(found))
    keys = BRANCHES if set(BRANCHES) <= set(named) else tuple(named)
    if len(keys) != 2:
        raise InputError(f"a decomposition network gives (reflectance, shading), not {len(keys)} tensors")
    return {branch: named[key] for branch, key in zip(BRANCHES, keys, strict=True)}


def _single_output(layer: str, kept: Sequence[Any]) -> Any:
    import torch

    if len(kept) != 1:
        raise InputError(f"layer {layer!r} runs {len(kept)} times in one pass: choose one that runs once")
    if not isinstance(kept[0], torch.Tensor):
        raise InputError(f"layer {layer!r} gives {type(kept[0]).__name__}, not one tensor: choose another layer")
    return kept[0]


def _gradient(loss: Any, place: Any, branch: str, layer: str) -> np.ndarray:
    import torch

    if not place.requires_grad:
        raise InputError(f"layer {layer!r} has no gradient: choose one that the image goes through")
    (found,) = torch.autograd.grad(loss, place, retain_graph=True, allow_unused=True)
    if found is None:
        raise InputError(f"the {branch} does not depend on layer {layer!r}: choose one on the way to both branches")
    return _flat(found)


def _flat(tensor: Any) -> np.ndarray:
    """(1, c, h, w) → (h·w·c,), the order of a frame's layers; other activations are flattened as they are."""
    array = tensor.detach().cpu().numpy()[0]
    return np.asarray(array.transpose(1, 2, 0) if array.ndim == 3 else array, np.float32).ravel()
