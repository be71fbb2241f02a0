"""A small vision transformer (class token, patches of 16 pixels, learnt positions) for staged birds: 1.2 M parameters."""

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsVit(BirdClassifier):
    """The classifier with the weights of `checkpoint`, a safetensors file; None is the bundled one."""

    name = "birds_vit"
    cite = ("hesse2023", "dosovitskiy2021")
    layers = ("patch_embed", *(f"blocks.{i}" for i in range(6)), "norm")
    cam_layer = None
