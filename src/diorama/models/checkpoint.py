"""A network from a file of weights: from `tune`, from FunnyBirds' authors (seven families), or recognised by its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diorama.adapt.classifying import Classifier
from diorama.adapt.state_dicts import fill, read_file, tensors_of
from diorama.core.catalogue import build
from diorama.core.errors import InputError, did_you_mean
from diorama.core.scene import digest
from diorama.core.spec import Spec, parse
from diorama.io.files import read_json
from diorama.models import full_size as originals
from diorama.models import timm, torchvision
from diorama.models.full_size import Normalise

if TYPE_CHECKING:
    from torch import Tensor, nn

#: Networks of torchvision that are recognised by the names and shapes of their weights.
_KNOWN = (
    *(f"resnet{n}" for n in (18, 34, 50, 101, 152)),
    *(f"vgg{n}{norm}" for n in (11, 13, 16, 19) for norm in ("", "_bn")),
    *("alexnet", "densenet121", "mobilenet_v2", "vit_b_16"),
)
#: Networks that are part of this package (`models/families/released.py`).
_OURS = ("bagnet33", "x_resnet50", "bcos_resnet50", "protopnet_resnet50", "vit_base")
_TRANSFORMER_SIZE = 224
_FUNNYBIRDS_SIZE = 256
#: The weights in a folder that `tune` made.
_TUNED = "weights.safetensors"
#: Parameters that only say where a backbone's first weights came from.
_FIRST_WEIGHTS = ("checkpoint", "pretrained")


class Checkpoint(Classifier):
    """A network whose weights are in a file.

    path       safetensors, or a torch file with a state dict, alone or under the key `state_dict`
    arch       bagnet33, x_resnet50, bcos_resnet50, protopnet_resnet50, vit_base, a name of torchvision, or timm:NAME; None
               recognises it by the file's tensors
    classes    number of classes; None takes it from the file
    cam_layer  layer that Grad-CAM uses; None for the last one with feature maps
    size       side of the images in pixels; FunnyBirds has 256
    normalise  none ([0, 1], as FunnyBirds), own (the statistics of ImageNet), half ((x − 0.5)/0.5)

    Images for a transformer are resized to 224 by nearest neighbours, as in FunnyBirds' evaluation.

    For a folder that `tune` made, or the weights in it, the card gives the network and the size of its images; if the
    network was given to `tune` as a live object, `arch` must name the file that builds it, ./mine.py:build.
    """

    cite = ("hesse2023",)
    located = ("path",)

    def __init__(
        self,
        path: str,
        arch: str | None = None,
        classes: int | None = None,
        cam_layer: str | None = None,
        size: int | None = None,
        normalise: Normalise = "none",
    ):
        card = _card(Path(path).expanduser())
        if card:
            weights = str(Path(path).expanduser() / _TUNED if Path(path).expanduser().is_dir() else path)
            self.arch, module, self._made_by = _tuned(card, arch, weights)
            super().__init__(module, f"checkpoint({self.arch})", size or card["size"], cam_layer)
            return
        size, self._made_by = size or _FUNNYBIRDS_SIZE, ""
        content = read_file(path, "checkpoint")
        state = tensors_of(content, path, "checkpoint")
        self.arch = arch or _named(content) or recognise(state, path)
        net = _filled(self.arch, state, path, classes)
        resize = _TRANSFORMER_SIZE if "vit_" in self.arch and size != _TRANSFORMER_SIZE else None
        module = originals.wrapped(net, originals.statistics(normalise, originals.IMAGENET), resize)
        super().__init__(module, f"checkpoint({self.arch})", size, cam_layer or _cam_layer(self.arch))

    def fingerprint(self) -> str:
        """The digest of the weights and, for a tuned network, of the code that builds it."""
        return digest([super().fingerprint(), self._made_by]) if self._made_by else super().fingerprint()


def _filled(arch: str, state: Mapping[str, Tensor], path: str, classes: int | None) -> nn.Module:
    """The network of a name with the weights of a state dict."""
    if arch not in _OURS:
        return originals.loaded(_maker(arch), f"checkpoint({arch})", classes, state, path)
    from diorama.models.families import released

    family = released.RELEASED[arch]
    has = family.classes(state)
    if not has:
        raise InputError(f"checkpoint({arch}): {path} lacks {family.head!r}: it is a checkpoint of another network")
    if classes not in (None, has):
        raise InputError(f"checkpoint({arch}): classes={classes}, but the checkpoint was trained for {has} classes")
    net = originals.seeded(lambda: released.made(arch, state))
    fill(net, state, path, f"checkpoint({arch})")
    return net


def _cam_layer(arch: str) -> str | None:
    if arch not in _OURS:
        return None
    from diorama.models.families.released import CAM_LAYERS

    return CAM_LAYERS.get(arch)


def _card(path: Path) -> dict[str, Any] | None:
    """The card of a network that `tune` made: in this folder, or beside this file."""
    file = path / "card.json" if path.is_dir() else path.parent / "card.json"
    if not file.is_file() or (path.is_file() and path.name != _TUNED):
        return None
    card = read_json(file)
    return card if {"network", "classes", "size"} <= card.keys() else None


def _tuned(card: Mapping[str, Any], arch: str | None, weights: str) -> tuple[str, Any, str]:
    """A tuned network, built again: its name, the module with its weights, the digest of the code that built it."""
    network = arch or card["network"]
    if not network:
        raise InputError(
            f"checkpoint: {weights} is of a live network, {card['name']}: name the file that makes it, arch=./mine.py:build"
        )
    spec = parse(network)
    params = {k: v for k, v in spec.params.items() if k not in _FIRST_WEIGHTS or ":" not in spec.name}
    backbone = build("model", Spec(spec.name, params))
    module = backbone.object.module
    if module is None:
        raise InputError(f"checkpoint: arch={network!r} has no torch module")
    module = originals.with_classes(module, card["classes"], f"checkpoint({network})")
    fill(module, read_file(weights, "checkpoint"), weights, f"checkpoint({network})")
    return network, module, backbone.digest


def _maker(arch: str) -> originals.Maker:
    family, _, name = arch.rpartition(":")
    if family not in ("", "torchvision", "timm"):
        raise InputError(f"checkpoint: arch={arch!r}; {did_you_mean(family, ['timm', 'torchvision'])}")
    return timm.maker(name) if family == "timm" else torchvision.maker(name)


def _named(found: Any) -> str | None:
    """The architecture that FunnyBirds writes beside the weights; ignored for transformers, where FunnyBirds writes
    torchvision's name beside timm's weights.
    """
    name = found.get("model") if isinstance(found, Mapping) else None
    return name if isinstance(name, str) and name in _KNOWN and not name.startswith("vit_") else None


def recognise(state: Mapping[str, Tensor], path: str) -> str:
    """The known network whose weights have the same names and shapes, apart from the number of classes."""
    from diorama.models.families.released import shapes_of

    shapes, nearest = shapes_of(state), ("", 0, "")
    for arch in (*_OURS, *_KNOWN):
        own = _shapes(arch, state)
        if own == shapes:
            return arch
        shared = sum(shapes.get(name) == shape for name, shape in own.items())
        if own and shared > max(nearest[1], len(own) // 2):
            nearest = (arch, shared, _difference(own, shapes))
    raise InputError(f"checkpoint: the network in {path} is not recognised: {_hint(nearest, shapes)}")


def _hint(nearest: tuple[str, int, str], given: dict[str, Any]) -> str:
    if nearest[0]:
        return f"it is nearest to {nearest[0]}, but {nearest[2]}"
    return (
        f"{len(given)} tensors, the first is {next(iter(given))!r};"
        f" give arch={', '.join(_OURS)}, a NAME of torchvision or timm:NAME"
    )


def _difference(own: dict[str, Any], given: dict[str, Any]) -> str:
    """The first thing in which two state dicts differ."""
    name = next((n for n in own if given.get(n) != own[n]), None) or next(n for n in given if n not in own)
    if name not in given:
        return f"lacks {name!r}"
    return f"{name!r} is {given[name]}, not {own[name]}" if name in own else f"has the unknown {name!r}"


def _shapes(arch: str, state: Mapping[str, Tensor]) -> dict[str, Any]:
    """Names and shapes of a known network with as many classes as a state dict has; empty if that number is unknown."""
    import torch

    from diorama.models.families import released

    if arch in _OURS:
        return released.own_shapes(arch, state)
    with torch.device("meta"):
        net = _maker(arch)(None, False)
    own, head = released.shapes_of(net.state_dict()), originals.head_name(net)
    classes = released.shapes_of(state).get(f"{head}.weight", (0,))[:1]
    return {k: classes + v[1:] if k.startswith(f"{head}.") else v for k, v in own.items()}
