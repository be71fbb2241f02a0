"""A small ProtoPNet for staged birds: five prototypes a class, real patches of training birds."""

from __future__ import annotations

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsProtopnet(BirdClassifier):
    """The classifier with the weights of `checkpoint`, a safetensors file; None is the bundled one."""

    name = "birds_protopnet"
    cite = ("hesse2023", "chen2019")
    layers = ("features", "add_on_layers")
    cam_layer = "features"
