"""Grad-CAM: the last convolutional features, weighted by the mean gradient of the target's logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from diorama.adapt.explaining import gradient_module, heatmaps, module_of, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError
from diorama.methods.explain.gradients import chosen, layer_of, missing_layer

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class GradCam(Explainer):
    """ReLU(Σ_k mean(∂f/∂A_k) · A_k) at `layer` (None: the model's own choice), upsampled (FunnyBirds: nearest).

    `shift` subtracts the map's minimum and divides by its maximum, as the Attribution Confusion Matrix does after
    upsampling (`grad_cam_acm`); a map that is zero everywhere stays zero, where their code gives NaN. Only what follows
    the layer is passed backward.
    """

    gradients = True
    cite: ClassVar[tuple[str, ...]] = ("selvaraju2017",)

    layer: str | None = None
    upsample: Literal["nearest", "bilinear"] = "nearest"
    relu: bool = True
    shift: bool = False

    def refuses(self, model: Any) -> str:
        """Why a model cannot be asked, said before the run: there is no layer, or not the one named."""
        if self.layer is not None:
            return missing_layer(module_of(model), self.layer, "grad_cam")
        named = model.cam_layer is not None
        return "" if named else "grad_cam: the model names no layer for it; give one with grad_cam(layer=…)"

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 1); signed only without ReLU and shift."""
        from torch.nn.functional import interpolate

        x, target = tensors(model, images, targets)
        name = self.layer if self.layer is not None else model.cam_layer
        if name is None:
            raise InputError("grad_cam: the model names no layer for it; give one with grad_cam(layer=…)")
        features, slope = _features(gradient_module(model, name), name, x, target)
        coarse = (slope.mean(dim=(2, 3), keepdim=True) * features).sum(dim=1, keepdim=True)
        heat = interpolate(coarse.relu() if self.relu else coarse, images.shape[1:3], mode=self.upsample)
        return heatmaps(_shifted(heat) if self.shift else heat, signed=not (self.relu or self.shift))


def _features(module: "nn.Module", name: str, x: "Tensor", target: "Tensor") -> "tuple[Tensor, Tensor]":
    """The features of a layer (n, k, i, j) and the gradient of the target's logit by them."""
    import torch

    kept: list[Tensor] = []

    def cut(_: "nn.Module", __: Any, out: "Tensor") -> "Tensor":
        kept.append(out.detach().requires_grad_(True))
        return kept[-1].clone()  # a copy, so that an in-place ReLU behind the layer may write to it

    layer = layer_of(module, name, "grad_cam")
    with torch.enable_grad(), layer.register_forward_hook(cut):
        logits = module(x)
        if not kept or kept[-1].ndim != 4:
            shape = tuple(kept[-1].shape) if kept else "nothing"
            raise InputError(f"grad_cam: layer {name!r} gives {shape}, not feature maps (n, k, h, w); choose another")
        slope = torch.autograd.grad(chosen(logits, target).sum(), kept[-1])[0]
    return kept[-1].detach(), slope


def _shifted(heat: "Tensor") -> "Tensor":
    """(map − min) / max of what is left, per image."""
    heat = heat - heat.amin(dim=(1, 2, 3), keepdim=True)
    return heat / heat.amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-30)
