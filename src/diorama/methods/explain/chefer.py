"""Chefer et al. 2021: the relevance of every attention map times its gradient, multiplied through the blocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, tensors
from diorama.core.answers import Answer
from diorama.methods.explain.blocks import ThroughBlocks


@dataclass(frozen=True, slots=True)
class Chefer(ThroughBlocks):
    """Row 0 of Π (I + mean over heads of max(0, ∇A ⊙ R_A)), "transformer attribution" as released, for one class.

    skip   number of first blocks that are left out: 1 as FunnyBirds, 0 as the paper

    Relevance starts as 1 at the target's logit and is propagated to R_A by the paper's rules: linear layers by α1β0
    (positive parts of w·x, no bias), attention half to the map and half to the values, skip connections in proportion to
    the sums of both branches, unchanged through normalisation, GELU and softmax. Matrices are not normalised. The map is
    enlarged by nearest neighbours and not negative.
    """

    cite = ("chefer2021",)

    called = "chefer"

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 1), not negative."""
        from diorama.methods.explain.attention import eye_like, matrix_product, patch_heatmaps, with_gradients
        from diorama.methods.explain.chefer_rules import relevances

        x, target = tensors(model, images, targets)
        _, slopes, grid = with_gradients(module_of(model), x, target)
        self.check_blocks(slopes)
        both = zip(slopes, relevances(module_of(model), x, target), strict=True)
        mixed = [(slope * relevance).clamp(min=0).mean(1) for slope, relevance in both]
        product = matrix_product([m + eye_like(m) for m in mixed], self.skip)
        return patch_heatmaps(grid.patches(product[:, 0]), images)
