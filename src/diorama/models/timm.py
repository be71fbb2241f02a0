"""Any network of timm by name: timm:resnet50(classes=50, checkpoint=weights.safetensors); no weights are bundled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diorama.adapt.classifying import Classifier
from diorama.core.errors import InputError, did_you_mean
from diorama.models import full_size as originals
from diorama.models.full_size import Normalise

if TYPE_CHECKING:
    from torch import nn


class Timm(Classifier):
    """`timm.create_model(name)`. Without `checkpoint` or `pretrained` the weights are random, and every row says so.

    name        as `timm.create_model` knows it
    classes     how many; None for the network's own number
    checkpoint  file with a state dict: safetensors or torch
    pretrained  lets timm fetch its own weights
    cam_layer   layer that Grad-CAM looks at; None for the last one with maps
    size        side of the images in pixels; None for the network's own
    normalise   own (the network's statistics), none ([0, 1], as FunnyBirds), half ((x − 0.5)/0.5)
    """

    located = ("checkpoint",)

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
        full = f"timm:{name}"
        own = own_input(name)
        net = originals.made(maker(name, size), full, classes, checkpoint, pretrained)
        statistics = originals.statistics(normalise, (tuple(own.mean), tuple(own.std)))
        super().__init__(originals.wrapped(net, statistics), full, size or own.input_size[-1], cam_layer)
        self.note = "" if checkpoint or pretrained else f"{full}: {originals.UNTRAINED}"


def own_input(name: str) -> Any:
    """What timm says about a network: mean, std, input_size …; an unknown name is an error."""
    timm = originals.require("timm", f"timm:{name}")
    if not timm.is_model(name):
        raise InputError(f"timm has no network {name!r}; {did_you_mean(name.partition('.')[0], timm.list_models())}")
    return timm.get_pretrained_cfg(name)


def maker(name: str, size: int | None = None) -> originals.Maker:
    """Makes the network; one that is built for one size is built for `size`."""
    timm = originals.require("timm", f"timm:{name}")
    sized = {"img_size": size} if size and own_input(name).fixed_input_size else {}

    def make(classes: int | None, fetch: bool) -> nn.Module:
        counted = {} if classes is None else {"num_classes": classes}
        return timm.create_model(name, pretrained=fetch, **counted, **sized)

    return make
