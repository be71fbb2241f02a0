"""A small U-Net trained without truth on staged table tops under changing light, with the losses of BigTime."""

from dataclasses import dataclass

from diorama.methods.decompose.iid.passes import IidNetwork


@dataclass(frozen=True)
class IidTimelapse(IidNetwork):
    """Reflectance has three channels, shading is gray times the colour of one lamp.

    The network gives log R (3 channels), log S (1) and the lamp's log colour (layer `decoder5` is before the lamp is
    added); layers here are linear, in a relative scale.
    """

    name = "iid_timelapse"
    cite = ("li2018watching",)
