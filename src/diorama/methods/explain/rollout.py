"""Attention rollout: how much of every patch reaches the class token if only attention and skip connections mix tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, tensors
from diorama.core.answers import Answer
from diorama.methods.explain.blocks import ThroughBlocks


@dataclass(frozen=True, slots=True)
class Rollout(ThroughBlocks):
    """Row 0 of Π (A + I) / rows' sums, A the mean over heads of a block's attention; the same for every class.

    skip   number of first blocks that are left out: 1 as FunnyBirds released it, 0 as Abnar & Zuidema have it

    Patches are enlarged by nearest neighbours. Since the map does not depend on the class, target sensitivity is 0 (ties).
    """

    targeted = False
    cite = ("abnar2020",)

    called = "rollout"

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 1), not negative."""
        from diorama.methods.explain.attention import attention, eye_like, matrix_product, patch_heatmaps

        x, _ = tensors(model, images, targets)
        maps, grid = attention(module_of(model), x)
        self.check_blocks(maps)
        mixed = [m.mean(1) + eye_like(m) for m in maps]
        product = matrix_product([m / m.sum(-1, keepdim=True) for m in mixed], self.skip)
        return patch_heatmaps(grid.patches(product[:, 0]), images)
