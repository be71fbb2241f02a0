"""Small networks of the families in `models/families` for staged birds of 128 pixels: fewer and narrower blocks."""

from __future__ import annotations

from torch import Tensor, nn

from diorama.models.birds.networks import BottleneckNetwork, Staged
from diorama.models.families.bagnet import BagNet
from diorama.models.families.bcos import BcosNet, Uncentred
from diorama.models.families.protopnet import ProtoPNet
from diorama.models.families.vit import VisionTransformer
from diorama.models.families.xdnn import MakeConv, XNet, plain

#: 3×3 convolutions in each group of blocks, by the side of the patches that this gives.
FIELDS = {17: (1, 1, 1, 0), 25: (1, 2, 1, 0), 33: (1, 1, 1, 1)}
_RESIDUAL = {"stem": (24, 5), "widths": (24, 48, 80, 112), "counts": (1, 2, 2, 1), "expansion": 3}


def vit(classes: int) -> nn.Module:
    """Four small convolutions instead of plain patches of 16 pixels, which learns faster, then six blocks."""
    return VisionTransformer(classes, size=128, patch=16, width=128, depth=6, heads=4, stem=4)


def bagnet(classes: int, field: int = 17) -> nn.Module:
    """Every logit is the mean over patches of `field` pixels, 8 pixels apart.

    The stem has 16 channels: with 12, torch 2.13 writes out of bounds in the gradient of a 1×1 convolution of stride 2 in
    channels-last memory, and the process dies.
    """
    return BagNet(classes, FIELDS[field], stem=16, widths=(16, 32, 64, 96), counts=(1, 2, 2, 1), expansion=3)


def xdnn(classes: int, conv: MakeConv = plain) -> nn.Module:
    """No bias, no normalisation."""
    return XNet(classes, **_RESIDUAL, conv=conv)  # type: ignore[arg-type]


def bcos(classes: int) -> nn.Module:
    """B-cos units without pairs, batch norm without centring, logits times eight, no constant."""
    return BcosNet(classes, **_RESIDUAL, pair=1, norm=Uncentred, gain=8.0, constant=0.0)  # type: ignore[arg-type]


class Trunk(Staged):
    """`birds_resnet` up to its third group: 8×8 places of 288 channels, each 16 pixels from the next."""

    name = "group"
    channels = 288

    def __init__(self) -> None:
        super().__init__()
        whole = BottleneckNetwork(50)
        self.stem = whole.stem
        for name in ("group1", "group2", "group3"):
            self.add_module(name, whole.get_submodule(name))

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, 128, 128) → (n, 288, 8, 8)."""
        return self.maps(x)


def protopnet(classes: int) -> nn.Module:
    """Ten prototypes for each class on the trunk of `birds_resnet`, compared by the cosine."""
    return ProtoPNet(classes, Trunk(), Trunk.channels, each=10, depth=96, similarity="cosine")
