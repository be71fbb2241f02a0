"""A ResNet-50-like network (bottleneck blocks) trained from scratch on staged birds: 0.77 M parameters."""

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsResnet(BirdClassifier):
    """Four groups of bottleneck blocks after a stem, then global average pooling."""

    name = "birds_resnet"
    layers = ("stem", "group1", "group2", "group3", "group4", "pool")
    cam_layer = "group4"
