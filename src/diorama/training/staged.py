"""Staged examples of a labelled world, drawn and rendered once into a folder of arrays that every epoch reads.

`images.npy` holds uint8 (n, h, w, 3) sRGB, `labels.npy` the class and `targets.npy` bool (n, classes): every class
compatible with the parts that are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.examples import Order
from diorama.core.progress import Progress
from diorama.training.blocks import filled


@dataclass(frozen=True, slots=True)
class Staged:
    """Rendered examples: images uint8 (n, h, w, 3), labels (n,), targets bool (n, classes)."""

    images: np.ndarray
    labels: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The examples of an order, as rows."""

    order: Order

    @property
    def count(self) -> int:
        """How many examples there are."""
        return self.order.count

    @property
    def what(self) -> str:
        """What they are, for whoever waits."""
        return f"{self.order.purpose} scenes"

    def identity(self) -> dict[str, Any]:
        """What they follow from."""
        return self.order.identity()

    def arrays(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """The type and the shape of a row of every array."""
        image, classes = self.order.example(0)[0].image.shape, len(self.order.world.classes)
        return {"images": (np.uint8, image), "labels": (np.int64, ()), "targets": (np.bool_, (classes,))}

    def row(self, index: int) -> Mapping[str, Any]:
        """The rows of one example."""
        frame, targets = self.order.example(index)
        images = np.round(frame.srgb() * 255).astype(np.uint8)
        return {"images": images, "labels": frame.truth["label"], "targets": targets}


def staged(order: Order, folder: Path, progress: Progress, processes: int = 2) -> Staged:
    """The examples of an order, rendered into `folder` where they are not there yet."""
    return Staged(**filled(_Ordered(order), folder, progress, processes))
