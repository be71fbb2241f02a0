"""A small ProtoPNet for staged birds: ten prototypes for each class, real patches of training birds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from diorama.io.images import read_image
from diorama.models.birds.classifier import BirdClassifier

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class BirdsProtopnet(BirdClassifier):
    """The classifier with the weights of `checkpoint`, a safetensors file; None is the bundled one.

    checkpoint  safetensors file with its weights; None for the bundled one. A picture of the same name beside it (.png)
                shows the prototypes' patches, a row for each class, for "this looks like that" in reports
    """

    name = "birds_protopnet"
    cite = ("hesse2023", "chen2019")
    layers = ("features", "add_on_layers")
    cam_layer = "features"

    @cached_property
    def module(self) -> nn.Module:
        """The network, with the pictures of its prototypes if there are any."""
        from diorama.models.families.protopnet import ProtoPNet

        net = super().module
        assert isinstance(net, ProtoPNet)
        sheet = self.path.with_suffix(".png")
        if sheet.is_file():
            net.pictures = pieces(read_image(sheet), self.classes, net.each)
        return net


def pieces(sheet: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """A uint8 sheet of equal pictures, row by row, as (rows · columns, h, w, 3) in [0, 1].

    >>> pieces(np.arange(2 * 4 * 3, dtype=np.uint8).reshape(2, 4, 3), 1, 2).shape
    (2, 2, 2, 3)
    """
    h, w = sheet.shape[0] // rows, sheet.shape[1] // columns
    cut = sheet[: rows * h, : columns * w].reshape(rows, h, columns, w, 3).swapaxes(1, 2)
    return cut.reshape(rows * columns, h, w, 3).astype(np.float32) / 255
