"""A small B-cos network for staged birds: logits are w(x)·x, whose terms are its explanation."""

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsBcos(BirdClassifier):
    """The classifier with the weights of `checkpoint`, a safetensors file; None is the bundled one."""

    name = "birds_bcos"
    cite = ("hesse2023", "boehle2022")
    layers = ("0.layer1", "0.layer2", "0.layer3", "0.layer4")
    cam_layer = "0.layer4"
