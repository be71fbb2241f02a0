"""A small residual network trained from scratch on staged birds: fifty classes, 128 pixels, 0.85 M parameters."""

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsCnn(BirdClassifier):
    """Four residual blocks after a stem, then global average pooling."""

    name = "birds_cnn"
    layers = ("stem", "block1", "block2", "block3", "block4", "pool")
    cam_layer = "block4"
