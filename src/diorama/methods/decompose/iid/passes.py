"""What the three decomposition networks share: images in, layers, inner activations and gradients of the loss out.

An image is divided by its 99th percentile, so exposure does not matter, clipped to [0, 1], resized to 64×64 (by area; the
networks were trained at that size, and activations of all images then have one length) and gamma-encoded. The output is
resized bilinearly to the frame's grid and decoded to linear light. The scale of both layers is relative. Frames pass one
by one, so that an answer does not depend on the other frames of a call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from diorama.adapt.folding import folded
from diorama.adapt.weights import Weighted
from diorama.core.answers import Layers
from diorama.core.contracts import At, Layered
from diorama.core.errors import InputError, did_you_mean, which_layer
from diorama.core.frame import Frame

if TYPE_CHECKING:
    from torch import Tensor, nn

    from diorama.adapt.folding import Folded

SIDE = 64
UNET_LAYERS = (*(f"encoder{i}" for i in range(1, 6)), *(f"decoder{i}" for i in range(1, 6)), "output")


def exposed(images: np.ndarray, share: float = 0.99) -> np.ndarray:
    """Linear images (…, h, w, 3) over the `share` quantile of their pixels' largest channel, clipped to [0, 1].

    >>> exposed(np.array([[[2.0, 1.0, 0.5]] * 50])).max(axis=(0, 1)).tolist()
    [1.0, 0.5, 0.25]
    """
    top = np.quantile(images.max(axis=-1), share, axis=(-2, -1), keepdims=True)[..., None]
    return np.clip(images / np.maximum(top, 1e-6), 0, 1).astype(np.float32)


class HookedNetwork(Layered):
    """A decomposition network that passes frames one by one; a subclass has the module and makes its input of a frame.

    `loss_grad` differentiates the mean squared error, in linear light on the frame's grid, of one image's layer; a truth
    with more channels than the layer is averaged over them, one with fewer is repeated.
    """

    name: str
    branches: ClassVar[tuple[str, ...]] = ("reflectance", "shading")
    scale: ClassVar[str] = "relative"

    @property
    @abstractmethod
    def module(self) -> nn.Module:
        """The network: images → a map for every branch; `component` and `place` as in `networks.py`."""

    @abstractmethod
    def network_input(self, frame: Frame) -> Tensor:
        """The network's input (1, 3, h, w) for a frame."""

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers of frames[0]."""
        import torch

        with torch.no_grad():
            outputs = self.outputs(frames[0], self.twin.module if self.twin else self.module)
            layers = [_to_numpy(self._on_grid(frames[0], name, outputs[name])) for name in ("reflectance", "shading")]
        return Layers(*layers)

    @property
    def twin(self) -> Folded | None:
        """The faster twin that `decompose` uses; activations and gradients come from the network itself."""
        return None

    def features(self, frames: Sequence[Frame], branch: str, layer: str) -> np.ndarray:
        """Activations (n, d) float32; those of `output` are the layer on the frame's grid."""
        return self.features_at(frames, branch, [layer])[0]

    def features_at(self, frames: Sequence[Frame], branch: str, layers: Sequence[str]) -> list[np.ndarray]:
        """Activations of several layers, from one pass for each frame."""
        return self.features_of(frames, [(branch, layers)])[0]

    def features_of(self, frames: Sequence[Frame], asked: Sequence[At]) -> list[list[np.ndarray]]:
        """Activations of layers of several branches, from one pass for each frame."""
        import torch

        self._check(asked)
        with torch.no_grad():
            passed = [self.activations_and_answers(frame, asked) for frame in frames]
        return [
            [np.stack([_to_numpy(of_frame[k][0][layer]).ravel() for of_frame in passed]) for layer in layers]
            for k, (_, layers) in enumerate(asked)
        ]

    def loss_grad(self, frames: Sequence[Frame], branch: str, layer: str, truths: Sequence[np.ndarray]) -> np.ndarray:
        """Gradients (n, d) float32 of each image's mean squared error with respect to the activations of a layer."""
        return self.loss_grads(frames, branch, [layer], truths)[0]

    def loss_grads(
        self, frames: Sequence[Frame], branch: str, layers: Sequence[str], truths: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Gradients with respect to several layers, from one pass for each frame."""
        return self.loss_grads_of(frames, [(branch, layers)], [truths])[0]

    def loss_grads_of(
        self, frames: Sequence[Frame], asked: Sequence[At], truths: Sequence[Sequence[np.ndarray]]
    ) -> list[list[np.ndarray]]:
        """Gradients for several branches, or for several truths of one, from one forward pass for each frame."""
        self._check(asked)
        grads = [self._grads(f, asked, of_frame) for f, of_frame in zip(frames, zip(*truths, strict=True), strict=True)]
        return [[np.stack(rows) for rows in zip(*of_asked, strict=True)] for of_asked in zip(*grads, strict=True)]

    def _grads(self, frame: Frame, asked: Sequence[At], truths: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        import torch

        grads = []
        with torch.enable_grad():
            passed = self.activations_and_answers(frame, asked)
            for (activations, answer), (_, layers), truth in zip(passed, asked, truths, strict=True):
                loss = (answer - _matched(truth, answer)).square().mean()
                inner = [activations[layer] for layer in layers]
                grads.append(torch.autograd.grad(loss, inner, retain_graph=True))
        return [[_to_numpy(grad).ravel() for grad in of_asked] for of_asked in grads]

    def activations_and_answers(self, frame: Frame, asked: Sequence[At]) -> list[tuple[dict[str, Tensor], Tensor]]:
        """For each branch and its layers: their activations, and the branch's answer; all from one pass."""
        activations: list[dict[str, Tensor]] = [{} for _ in asked]

        def recorder(k: int, layer: str) -> Callable[..., None]:
            def hook(module: nn.Module, given: Any, out: Tensor) -> None:
                activations[k].setdefault(layer, out)

            return hook

        hooks = [
            self.module.place(branch, layer).register_forward_hook(recorder(k, layer))  # type: ignore[operator]
            for k, (branch, layers) in enumerate(asked)
            for layer in layers
            if layer != "output"
        ]
        try:
            outputs = self.outputs(frame, self.module)
        finally:
            for hook in hooks:
                hook.remove()
        answers = {branch: self._on_grid(frame, branch, outputs[branch]) for branch, _ in asked}
        return [
            ({**known, "output": answers[branch]}, answers[branch])
            for known, (branch, _) in zip(activations, asked, strict=True)
        ]

    def layer_of(self, frame: Frame, branch: str) -> Tensor:
        """A layer (1, c, h, w) in linear light on the frame's grid."""
        return self._on_grid(frame, branch, self.outputs(frame, self.module)[branch])

    def outputs(self, frame: Frame, module: nn.Module) -> Mapping[str, Tensor]:
        """The outputs of the network, or of its twin, for a frame: a map of the network's size for every branch."""
        import torch

        device = next(module.parameters()).device
        return module(self.network_input(frame).to(device).requires_grad_(torch.is_grad_enabled()))

    def _on_grid(self, frame: Frame, branch: str, output: Tensor) -> Tensor:
        """An output of the network as a layer."""
        import torch

        image = tensor(exposed(frame.linear())).to(output.device)
        if image.shape[2:] != output.shape[2:]:
            output = torch.nn.functional.interpolate(output, size=image.shape[2:], mode="bilinear", align_corners=False)
        return self.module.component(branch, output, image)  # type: ignore[operator]

    def _check(self, asked: Sequence[At]) -> None:
        for branch, layers in asked:
            if branch not in self.branches:
                raise InputError(f"{self.name} has no branch {branch!r}; {did_you_mean(branch, list(self.branches))}")
            for layer in layers:
                if layer not in self.layers:
                    raise InputError(f"{self.name} has no layer {layer!r}; {which_layer(layer, list(self.layers))}")


@dataclass(frozen=True)
class IidNetwork(Weighted, HookedNetwork):
    """A bundled network, which `diorama train NAME` makes again, or the same network with other weights."""

    checkpoint: str | None = None

    layers = UNET_LAYERS

    def network(self) -> nn.Module:
        """The network named `name`, with fresh weights."""
        from diorama.methods.decompose.iid.networks import NETWORKS

        return NETWORKS[self.name]()

    @cached_property
    def twin(self) -> Folded | None:
        """The faster twin that `decompose` uses."""
        return folded(self.module, SIDE)

    def network_input(self, frame: Frame) -> Tensor:
        """The network's input (1, 3, 64, 64) for a frame."""
        from diorama.methods.decompose.iid.networks import GAMMA

        return tensor(shrunk(frame)) ** GAMMA


def shrunk(frame: Frame) -> np.ndarray:
    """The frame's linear image, resized to 64×64 and `exposed`."""
    import cv2

    image = frame.linear()
    if image.shape[:2] != (SIDE, SIDE):
        image = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return exposed(image)


def tensor(image: np.ndarray) -> Tensor:
    """(h, w, 3) → (1, 3, h, w)."""
    import torch

    return torch.from_numpy(image.transpose(2, 0, 1)[None].copy())


def _matched(truth: np.ndarray, answer: Tensor) -> Any:
    """A truth (h, w, 1 or 3) as (1, c, h, w) with the channels of the answer."""
    import torch

    if truth.shape[:2] != answer.shape[2:]:
        raise InputError(
            f"a truth is {truth.shape[:2]}, its frame {tuple(answer.shape[2:])}: give it on the frame's grid"
        )
    fitting = truth.mean(axis=2, keepdims=True) if answer.shape[1] == 1 else truth
    return torch.from_numpy(np.ascontiguousarray(fitting.transpose(2, 0, 1)[None], np.float32)).to(answer.device)


def _to_numpy(tensor: Tensor) -> np.ndarray:
    """(1, c, h, w) → (h, w, c) float32, like layers of frames; activations of other shapes without the first axis."""
    array = tensor.detach().cpu().numpy()[0]
    return array.transpose(1, 2, 0).astype(np.float32) if array.ndim == 3 else array.astype(np.float32)
