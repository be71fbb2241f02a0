"""A checkpoint file in the layout of the official FunnyBirds models: ResNet-50, VGG16, ViT, or what its names tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from diorama.adapt.classifying import Classifier
from diorama.core.errors import InputError, did_you_mean
from diorama.models import full_size as originals
from diorama.models import timm, torchvision
from diorama.models.full_size import Normalise

if TYPE_CHECKING:
    from torch import Tensor

#: Networks that are recognised by the names and shapes of their weights.
_KNOWN = (
    *(f"resnet{n}" for n in (18, 34, 50, 101, 152)),
    *(f"vgg{n}{norm}" for n in (11, 13, 16, 19) for norm in ("", "_bn")),
    *("alexnet", "densenet121", "mobilenet_v2", "vit_b_16", "timm:vit_base_patch16_224"),
)
_TRANSFORMER_SIZE = 224


class Checkpoint(Classifier):
    """A network whose weights are in a file.

    path       safetensors, or a torch file with a state dict, alone or under the key `state_dict`
    arch       a name of torchvision, or timm:NAME; None reads it off the file
    classes    how many; None reads it off the file
    cam_layer  layer that Grad-CAM looks at; None for the last one with maps
    size       side of the images in pixels; FunnyBirds has 256
    normalise  none ([0, 1], as FunnyBirds), own (the statistics of ImageNet), half ((x − 0.5)/0.5)

    A transformer gets its images resized to 224 by nearest neighbours, as FunnyBirds' evaluation does.
    """

    cite = ("hesse2023",)
    located = ("path",)

    def __init__(
        self,
        path: str,
        arch: str | None = None,
        classes: int | None = None,
        cam_layer: str | None = None,
        size: int = 256,
        normalise: Normalise = "none",
    ):
        found = originals.read_file(path, "checkpoint")
        state = originals.tensors_of(found, path, "checkpoint")
        self.arch = arch or _named(found) or recognise(state, path)
        net = originals.loaded(_maker(self.arch), f"checkpoint({self.arch})", classes, state, path)
        resize = _TRANSFORMER_SIZE if "vit_" in self.arch and size != _TRANSFORMER_SIZE else None
        module = originals.wrapped(net, originals.statistics(normalise, originals.IMAGENET), resize)
        super().__init__(module, f"checkpoint({self.arch})", size, cam_layer)


def _maker(arch: str) -> originals.Maker:
    family, _, name = arch.rpartition(":")
    if family not in ("", "torchvision", "timm"):
        raise InputError(f"checkpoint: arch={arch!r}; {did_you_mean(family, ['timm', 'torchvision'])}")
    return timm.maker(name) if family == "timm" else torchvision.maker(name)


def _named(found: Any) -> str | None:
    """FunnyBirds writes the architecture beside the weights; its transformer has timm's names."""
    name = found.get("model") if isinstance(found, Mapping) else None
    return name if isinstance(name, str) and name in _KNOWN and not name.startswith("vit_") else None


def recognise(state: Mapping[str, Tensor], path: str) -> str:
    """The known network whose weights have the same names and, but for the last layer, shapes."""
    for arch in _KNOWN:
        if _fits(state, arch):
            return arch
    first = next(iter(state))
    raise InputError(
        f"checkpoint: the network in {path} is not recognised ({len(state)} tensors, the first is {first!r});"
        f" give arch=NAME of torchvision or timm:NAME"
    )


def _fits(state: Mapping[str, Tensor], arch: str) -> bool:
    import torch

    with torch.device("meta"):
        outline = _maker(arch)(None, False)
    head = originals.head_name(outline)
    own = {k: v.shape for k, v in outline.state_dict().items() if not k.endswith("num_batches_tracked")}
    given = {k: v.shape for k, v in state.items() if not k.endswith("num_batches_tracked")}
    return own.keys() == given.keys() and all(given[k] == own[k] for k in own if not k.startswith(f"{head}."))
