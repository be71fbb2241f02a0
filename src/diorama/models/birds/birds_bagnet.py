"""A small BagNet for staged birds: every logit is the mean of the logits of all patches of 17 pixels."""

from dataclasses import dataclass

from diorama.models.birds.classifier import BirdClassifier


@dataclass(frozen=True)
class BirdsBagnet(BirdClassifier):
    """The classifier with the weights of `checkpoint`, a safetensors file; None is the bundled one."""

    name = "birds_bagnet"
    cite = ("hesse2023", "brendel2019")
    layers = ("layer1", "layer2", "layer3", "layer4")
    cam_layer = "layer4"
