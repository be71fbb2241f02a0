"""A small X-DNN for staged birds: no bias and no normalisation, so that f(αx) = α·f(x)."""

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsXdnn(BirdClassifier):
    """The classifier with the weights of `checkpoint`, a safetensors file; None is the bundled one."""

    name = "birds_xdnn"
    cite = ("hesse2023", "hesse2021")
    layers = ("layer1", "layer2", "layer3", "layer4")
    cam_layer = "layer4"
