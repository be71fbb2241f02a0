"""Any network of timm by name: timm:resnet50(classes=50, checkpoint=weights.safetensors); no weights are bundled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diorama.core.errors import InputError, did_you_mean
from diorama.models import full_size as originals

if TYPE_CHECKING:
    from torch import nn


class Timm(originals.Named):
    """`timm.create_model(name)`. Without `checkpoint` or `pretrained` the weights are random, and every row says so."""

    library = "timm"

    def own_input(self, name: str) -> tuple[originals.Statistics, int]:
        """The input that timm's configuration of the network states."""
        own = own_input(name)
        return (tuple(own.mean), tuple(own.std)), own.input_size[-1]

    def maker(self, name: str, size: int | None) -> originals.Maker:
        """The function that builds the network for images of a size."""
        return maker(name, size)


def own_input(name: str) -> Any:
    """timm's configuration of a network: mean, std, input_size …; an unknown name is an error."""
    timm = originals.require("timm", f"timm:{name}")
    if not timm.is_model(name):
        raise InputError(f"timm has no network {name!r}; {did_you_mean(name.partition('.')[0], timm.list_models())}")
    return timm.get_pretrained_cfg(name)


def maker(name: str, size: int | None = None) -> originals.Maker:
    """The function that builds the network; one with a fixed input size is built for `size`."""
    timm = originals.require("timm", f"timm:{name}")
    sized = {"img_size": size} if size and own_input(name).fixed_input_size else {}

    def make(classes: int | None, fetch: bool) -> nn.Module:
        counted = {} if classes is None else {"num_classes": classes}
        return timm.create_model(name, pretrained=fetch, **counted, **sized)

    return make
