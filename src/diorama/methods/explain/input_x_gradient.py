"""Input × Gradient: the input times the gradient of the target's logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diorama.core.answers import Answer
from diorama.core.explaining import heatmaps, tensors


@dataclass(frozen=True, slots=True)
class InputXGradient:
    """x · ∂f_target/∂x, signed, per channel; x is the image in [0, 1]."""

    cite: ClassVar[tuple[str, ...]] = ("shrikumar2017",)

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        from captum.attr import InputXGradient

        x, target = tensors(model, images, targets)
        return heatmaps(InputXGradient(model.module).attribute(x.requires_grad_(True), target=target))
