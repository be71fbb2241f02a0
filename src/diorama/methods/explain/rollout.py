"""Attention rollout: how much of every patch arrives in the class token, if only attention and skips mix tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError


@dataclass(frozen=True, slots=True)
class Rollout(Explainer):
    """Row 0 of Π (A + I) / rows' sums, A the mean over heads of a block's attention; the same for every class.

    skip   blocks left out at the start: 1 as FunnyBirds released it, 0 as Abnar & Zuidema have it

    Patches are enlarged by nearest neighbours. Since the map knows no class, target sensitivity is 0 (ties).
    """

    example = "diorama run -w birds -M birds_vit -m {} -p single_deletion"
    gradients = True
    targeted = False
    cite = ("abnar2020",)

    skip: int = 1

    def __post_init__(self) -> None:
        need("torch", "rollout", "torch")
        if self.skip < 0:
            raise InputError(f"rollout: skip={self.skip}: 0 or more blocks")

    def refuses(self, model: Any) -> str:
        """That a network has no attention, or fewer blocks than are left out."""
        from diorama.methods.explain.attention import lacks_attention

        return lacks_attention(model, "rollout")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 1), not negative."""
        from diorama.methods.explain.attention import attention, eye_like, painted, rolled

        x, _ = tensors(model, images, targets)
        maps, grid = attention(module_of(model), x)
        if self.skip >= len(maps):
            raise InputError(f"rollout: skip={self.skip}, but the network has {len(maps)} blocks")
        mixed = [m.mean(1) + eye_like(m) for m in maps]
        product = rolled([m / m.sum(-1, keepdim=True) for m in mixed], self.skip)
        return painted(grid.patches(product[:, 0]), images)
