"""Any classifier of torchvision by name: torchvision:vgg16(classes=50, checkpoint=weights.pth); no weights are bundled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diorama.adapt.classifying import USUAL_SIZE, Classifier
from diorama.core.errors import InputError, did_you_mean
from diorama.models import full_size as originals
from diorama.models.full_size import Normalise

if TYPE_CHECKING:
    from torch import nn


class Torchvision(Classifier):
    """`torchvision.models.<name>`. Without `checkpoint` or `pretrained` the weights are random, and every row says so.

    name        of the function in `torchvision.models`
    classes     how many; None for the network's own number
    checkpoint  file with a state dict: safetensors or torch
    pretrained  lets torchvision fetch its default weights
    cam_layer   layer that Grad-CAM looks at; None for the last one with maps
    size        side of the images in pixels
    normalise   own (the statistics of ImageNet), none ([0, 1], as FunnyBirds), half ((x − 0.5)/0.5)
    """

    located = ("checkpoint",)

    def __init__(
        self,
        name: str,
        classes: int | None = None,
        checkpoint: str | None = None,
        pretrained: bool = False,
        cam_layer: str | None = None,
        size: int = USUAL_SIZE,
        normalise: Normalise = "own",
    ):
        full = f"torchvision:{name}"
        net = originals.made(maker(name, size), full, classes, checkpoint, pretrained)
        module = originals.wrapped(net, originals.statistics(normalise, originals.IMAGENET))
        super().__init__(module, full, size, cam_layer)
        self.note = "" if checkpoint or pretrained else f"{full}: {originals.UNTRAINED}"


def maker(name: str, size: int = USUAL_SIZE) -> originals.Maker:
    """Makes the network; an unknown name is an error."""
    torchvision = originals.require("torchvision", f"torchvision:{name}")
    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise InputError(f"torchvision has no classifier {name!r}; {did_you_mean(name, known)}")
    options: dict[str, int | bool] = {"image_size": size} if name.startswith("vit_") else {}
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": True}

    def make(classes: int | None, fetch: bool) -> nn.Module:
        if fetch:
            return _with_head(torchvision.models.get_model(name, weights="DEFAULT"), classes)
        counted = {} if classes is None else {"num_classes": classes}
        return torchvision.models.get_model(name, weights=None, **counted, **options)

    return make


def _with_head(net: nn.Module, classes: int | None) -> nn.Module:
    """Fetched weights are for 1,000 classes; another number means a new, untrained head."""
    if classes in (None, 1000):
        return net
    raise InputError(f"the fetched weights have 1000 classes, not {classes}: leave out classes, or fit a head on top")
