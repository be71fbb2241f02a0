"""Guided Grad-CAM: guided backpropagation times Grad-CAM (captum's parts)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.core.answers import Answer, Heatmap
from diorama.core.contracts import Explainer
from diorama.methods.explain.grad_cam import GradCam


@dataclass(frozen=True, slots=True)
class GuidedGradCam(Explainer):
    """Guided backpropagation times Grad-CAM with ReLU at `layer` (None: the model's own choice), nearest neighbours.

    layer  layer whose feature maps Grad-CAM uses; None for the model's own choice, the last convolutional one

    For a transformer it is that of FunnyBirds: the gradient (there is no ReLU) times their Grad-CAM of attention.
    """

    gradients = True
    cite = ("selvaraju2017", "springenberg2015")

    layer: str | None = None

    def __post_init__(self) -> None:
        need("captum", "guided_grad_cam", "torch")

    def refuses(self, model: Any) -> str:
        """Why Grad-CAM cannot explain a model."""
        return GradCam(self.layer).refuses(model).replace("grad_cam", "guided_grad_cam")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3), signed."""
        from diorama.methods.explain.captum_calls import guided

        x, target = tensors(model, images, targets)
        fine = guided(module_of(model), x, target).permute(0, 2, 3, 1).cpu().numpy()
        coarse = [answer.values for answer in GradCam(self.layer).explain(model, images, targets)]  # type: ignore[attr-defined]
        return [Heatmap(np.ascontiguousarray(a * b), signed=True) for a, b in zip(fine, coarse, strict=True)]
