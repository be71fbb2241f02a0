"""A small content/style translator that learned from unpaired images, reflectances and shadings, like USI3D."""

from dataclasses import dataclass

from diorama.methods.decompose.iid.passes import IidNetwork


@dataclass(frozen=True)
class IidTranslation(IidNetwork):
    """Both layers have three channels; the network gives them gamma-encoded (2.2) in [−1, 1] (layer `decoder5`).

    Layers here are linear, in a relative scale.
    """

    name = "iid_translation"
    cite = ("liu2020",)
    layers = (
        *(f"content{i}" for i in range(1, 6)),
        *(f"decoder{i}" for i in range(1, 6)),
        "output",
    )
