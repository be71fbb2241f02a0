"""A small U-Net that learned from exact layers of staged table tops, with the losses of CGIntrinsics."""

from dataclasses import dataclass

from diorama.methods.decompose.iid.passes import IidNetwork


@dataclass(frozen=True)
class IidSupervised(IidNetwork):
    """Reflectance is the image's chromaticity times a learned brightness, shading is gray: coloured light goes to R.

    The network gives log R and log S of linear light, one channel each (layer `decoder5`); layers here are linear, in a
    relative scale.
    """

    name = "iid_supervised"
    cite = ("li2018",)
