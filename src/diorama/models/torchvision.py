"""Any classifier of torchvision by name: torchvision:vgg16(classes=50, checkpoint=weights.pth); no weights are bundled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diorama.adapt.classifying import USUAL_SIZE
from diorama.core.errors import InputError, did_you_mean
from diorama.models import full_size as originals

if TYPE_CHECKING:
    from torch import nn


class Torchvision(originals.Named):
    """`torchvision.models.<name>`, by default for images of 224 pixels. Without `checkpoint` or `pretrained` the weights
    are random, and every row says so.
    """

    library = "torchvision"

    def own_input(self, name: str) -> tuple[originals.Statistics, int]:
        """The statistics of ImageNet, and the usual size."""
        return originals.IMAGENET, USUAL_SIZE

    def maker(self, name: str, size: int | None) -> originals.Maker:
        """The function that builds the network for images of a size."""
        return maker(name, size)


def maker(name: str, size: int | None = None) -> originals.Maker:
    """The function that builds the network; an unknown name is an error."""
    torchvision = originals.require("torchvision", f"torchvision:{name}")
    known = torchvision.models.list_models(module=torchvision.models)
    if name not in known:
        raise InputError(f"torchvision has no classifier {name!r}; {did_you_mean(name, known)}")
    options: dict[str, int | bool] = {"image_size": size or USUAL_SIZE} if name.startswith("vit_") else {}
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
