"""A VGG-like network (plain convolutions, two-layer head) trained from scratch on staged birds: 1.6 M parameters."""

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsVgg(BirdClassifier):
    """Four stages of plain convolutions after a stem, then two linear layers."""

    name = "birds_vgg"
    layers = ("stem", "stage1", "stage2", "stage3", "stage4", "pool", "hidden")
    cam_layer = "stage4"
