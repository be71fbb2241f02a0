"""The networks of FunnyBirds whose code the authors released, recognised by the names and shapes of a state dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import torch

from diorama.models.families.bagnet import BagNet
from diorama.models.families.bcos import BcosNet
from diorama.models.families.protopnet import ProtoPNet
from diorama.models.families.vit import VisionTransformer
from diorama.models.families.xdnn import XNet

if TYPE_CHECKING:
    from torch import Tensor, nn

State = Mapping[str, "Tensor"]
Shapes = dict[str, tuple[int, ...]]


class Family(NamedTuple):
    """The tensor whose length gives the number of classes, its rows for each class, and the network's builder."""

    head: str
    rows: int
    make: Callable[[int, State], nn.Module]

    def classes(self, state: State) -> int:
        """The number of classes of a state dict; 0 if the head's weight is missing."""
        return len(state.get(self.head, ())) // self.rows


def _protopnet(classes: int, state: State) -> nn.Module:
    return ProtoPNet(classes, each=max(1, len(state.get("prototype_vectors", ())) // classes))


#: The networks by name.
RELEASED = {
    "bagnet33": Family("fc.weight", 1, lambda classes, _: BagNet(classes)),
    "x_resnet50": Family("fc.weight", 1, lambda classes, _: XNet(classes)),
    "bcos_resnet50": Family("0.fc.linear.weight", 2, lambda classes, _: BcosNet(classes)),
    "protopnet_resnet50": Family("last_layer.weight", 1, _protopnet),
    "vit_base": Family("head.weight", 1, lambda classes, _: VisionTransformer(classes)),
}
#: The layer that Grad-CAM uses, where the last map is a map of classes.
CAM_LAYERS = {"bcos_resnet50": "0.layer4"}


def made(arch: str, state: State) -> nn.Module:
    """The network of a name in the size of a state dict, which must have the head's weight; with random weights."""
    family = RELEASED[arch]
    return family.make(family.classes(state), state)


def own_shapes(arch: str, state: State) -> Shapes:
    """Names and shapes of the network of a name in the size of a state dict; empty if the head's weight is missing."""
    if not RELEASED[arch].classes(state):
        return {}
    with torch.device("meta"):
        return shapes_of(made(arch, state).state_dict())


def shapes_of(tensors: Mapping[str, Tensor]) -> Shapes:
    """Names and shapes of a state dict, without the counters of batches, which old files lack."""
    return {k: tuple(v.shape) for k, v in tensors.items() if not k.endswith("num_batches_tracked")}
