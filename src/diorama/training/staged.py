"""Staged examples of a labelled world, drawn and rendered once into a folder of arrays that every epoch reads.

`images.npy` holds uint8 (n, h, w, 3) sRGB, `labels.npy` the class and `targets.npy` bool (n, classes): every class
compatible with the parts that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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


def staged(order: Order, folder: Path, progress: Progress, processes: int = 2) -> Staged:
    """The examples of an order; those that `folder` does not have yet are rendered."""
    return Staged(**filled(order, folder, progress, processes))
