"""Grad-CAM: the last convolutional features, weighted by the mean gradient of the target's logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.answers import Answer
from diorama.core.errors import InputError, did_you_mean
from diorama.core.explaining import heatmaps, tensors


@dataclass(frozen=True, slots=True)
class GradCam:
    """ReLU(Σ_k mean(∂f/∂A_k) · A_k) at `layer` (None: the model's own choice), upsampled (FunnyBirds: nearest)."""

    cite: ClassVar[tuple[str, ...]] = ("selvaraju2017",)

    layer: str | None = None
    upsample: Literal["nearest", "bilinear"] = "nearest"
    relu: bool = True

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 1)."""
        from captum.attr import LayerAttribution, LayerGradCam

        x, target = tensors(model, images, targets)
        cam = LayerGradCam(model.module, _layer(model, self.layer))
        coarse = cam.attribute(x.requires_grad_(True), target=target, relu_attributions=self.relu)
        return heatmaps(LayerAttribution.interpolate(coarse, images.shape[1:3], interpolate_mode=self.upsample))


def _layer(model: Any, name: str | None) -> Any:
    modules = dict(model.module.named_modules())
    wanted = name if name is not None else getattr(model, "cam_layer", None)
    if wanted is None:
        raise InputError("grad_cam: the model names no layer for it; give one with grad_cam(layer=…)")
    if wanted not in modules:
        raise InputError(
            f"grad_cam: the model has no layer {wanted!r}; {did_you_mean(wanted, [n for n in modules if n])}"
        )
    return modules[wanted]
