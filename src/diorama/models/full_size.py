"""What full-size networks share: the normalisation they were trained with, weights from a file, a note if there are none.

A wrapped network is `normalise`, `resize` (only if it needs a fixed size) and `net` in sequence. The normalisation is a
batch norm with fixed statistics, so that tools can handle it like any layer (for LRP, zennit passes relevance through it
unchanged).
"""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from diorama.adapt.classifying import Classifier
from diorama.adapt.explaining import need
from diorama.adapt.state_dicts import fill, read_state
from diorama.core.errors import InputError
from diorama.core.guard import attempt

if TYPE_CHECKING:
    from torch import Tensor, nn


#: own: what the network was trained with; none: [0, 1] as it is (FunnyBirds); half: (x − 0.5)/0.5 (Arias-Duart et al.).
Normalise = Literal["own", "none", "half"]
#: Mean and standard deviation of every channel.
Statistics = tuple[tuple[float, ...], tuple[float, ...]]
IMAGENET: Statistics = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_HALF: Statistics = ((0.5,) * 3, (0.5,) * 3)
UNTRAINED = "the weights are random: an untrained network"


def statistics(choice: Normalise, own: Statistics) -> Statistics | None:
    """The statistics that a choice of normalisation stands for."""
    return {"own": own, "none": None, "half": _HALF}[choice]


def wrapped(net: nn.Module, normalise: Statistics | None, resize: int | None = None) -> nn.Module:
    """The network after its normalisation and, as FunnyBirds does for transformers, nearest-neighbour resizing."""
    from torch import nn

    parts: OrderedDict[str, nn.Module] = OrderedDict()
    if normalise is not None:
        parts["normalise"] = _normaliser(*normalise)
    if resize is not None:
        parts["resize"] = nn.Upsample(size=(resize, resize), mode="nearest")
    return nn.Sequential(OrderedDict([*parts.items(), ("net", net)])) if parts else net


def _normaliser(mean: tuple[float, ...], std: tuple[float, ...]) -> nn.Module:
    import torch
    from torch import nn

    norm = nn.BatchNorm2d(3, eps=0.0, affine=False)
    norm.running_mean, norm.running_var = torch.tensor(mean), torch.tensor(std) ** 2
    return norm


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """A network with random weights that are the same every time."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make()


def head_name(net: nn.Module) -> str:
    """The layer that gives the logits: the last linear or convolutional one."""
    from torch import nn

    return [name for name, part in net.named_modules() if isinstance(part, nn.Linear | nn.Conv2d)][-1]


def with_classes(module: nn.Module, classes: int, name: str) -> nn.Module:
    """The network with a new last layer for this number of classes, unless it has that number already."""
    from torch import nn

    last = head_name(module)
    layer = module.get_submodule(last)
    if not isinstance(layer, nn.Linear):
        raise InputError(f"{name}: its last layer, {last}, is not linear: give it {classes} outputs yourself")
    if layer.out_features != classes:
        put(module, last, seeded(lambda: nn.Linear(layer.in_features, classes, layer.bias is not None)))
    return module


def put(module: nn.Module, name: str, part: nn.Module) -> None:
    """Replace the layer of this name."""
    outer, _, inner = name.rpartition(".")
    setattr(module.get_submodule(outer), inner, part)


def classes_in(state: Mapping[str, Tensor], net: nn.Module, asked: int | None, name: str) -> int | None:
    """The number of classes that a checkpoint was trained for; an error if another number was asked for."""
    weight = state.get(f"{head_name(net)}.weight")
    trained_for = None if weight is None else int(weight.shape[0])
    if asked is not None and trained_for is not None and asked != trained_for:
        raise InputError(f"{name}: classes={asked}, but the checkpoint was trained for {trained_for} classes")
    return trained_for or asked


#: Builds a network with a number of classes (None: its own), its library's weights fetched or not.
Maker = Callable[[int | None, bool], "nn.Module"]


def made(make: Maker, name: str, classes: int | None, checkpoint: str | None, pretrained: bool = False) -> nn.Module:
    """A network with the weights of a checkpoint, with those its library fetches, or with random ones."""
    if checkpoint and pretrained:
        raise InputError(f"{name}: give checkpoint or pretrained=True, not both")
    if checkpoint:
        return loaded(make, name, classes, read_state(checkpoint, name), checkpoint)
    return _fetched(make, name, classes) if pretrained else seeded(lambda: make(classes, False))


def loaded(make: Maker, name: str, classes: int | None, state: Mapping[str, Tensor], path: str) -> nn.Module:
    """A network with a state dict and its number of classes."""
    import torch

    with torch.device("meta"):  # names and shapes only
        outline = make(None, False)
    net = seeded(lambda: make(classes_in(state, outline, classes, name), False))
    fill(net, state, path, name)
    return net


def _fetched(make: Maker, name: str, classes: int | None) -> nn.Module:
    outcome = attempt(lambda: make(classes, True))
    if outcome.error:
        raise InputError(
            f"{name}: pretrained=True could not fetch the weights ({outcome.reason[:160]}); give checkpoint=FILE"
        ) from outcome.error
    return outcome.value


class Named(Classifier):
    """A network of a library by name. Without `checkpoint` or `pretrained` the weights are random, and every row says so.

    name        the library's name of the network
    classes     number of classes; None for the network's own
    checkpoint  file with a state dict: safetensors or torch
    pretrained  lets the library fetch its own weights
    cam_layer   layer that Grad-CAM uses; None for the last one with feature maps
    size        side of the images in pixels; None for the network's own
    normalise   own (the network's statistics), none ([0, 1], as FunnyBirds), half ((x − 0.5)/0.5)
    """

    located = ("checkpoint",)
    library: ClassVar[str]

    def __init__(
        self,
        name: str,
        classes: int | None = None,
        checkpoint: str | None = None,
        pretrained: bool = False,
        cam_layer: str | None = None,
        size: int | None = None,
        normalise: Normalise = "own",
    ):
        full = f"{self.library}:{name}"
        own, side = self.own_input(name)
        net = made(self.maker(name, size), full, classes, checkpoint, pretrained)
        super().__init__(wrapped(net, statistics(normalise, own)), full, size or side, cam_layer)
        self.note = "" if checkpoint or pretrained else f"{full}: {UNTRAINED}"

    def own_input(self, name: str) -> tuple[Statistics, int]:
        """The statistics that a network was trained with, and the side of its images; an unknown name is an error."""
        raise NotImplementedError

    def maker(self, name: str, size: int | None) -> Maker:
        """The function that builds the network for images of a size."""
        raise NotImplementedError


def require(library: str, name: str) -> Any:
    """A library of the extra `zoos`, imported; both need torchvision, which needs care (`adapt/torchvision_ops.py`)."""
    need("torch", name, "torch")
    from diorama.adapt.torchvision_ops import make_importable

    try:
        make_importable()
        return importlib.import_module(library)
    except ImportError as error:
        raise InputError(f"{name} needs {library}: pip install 'diorama[zoos]' ({error})") from error
