"""Grad-CAM: the last convolutional features, weighted by the mean gradient of the target's logit."""

import math
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
    """ReLU(Σ_k mean(∂f/∂A_k) · A_k), with A the feature maps of a layer.

    layer     layer whose feature maps are used; None for the model's own choice, the last convolutional one
    upsample  interpolation from the layer's grid to the image: nearest (as FunnyBirds) or bilinear
    relu      keeps positive values only, as in the paper
    shift     subtracts the map's minimum and divides by its maximum, as the Attribution Confusion Matrix does after
              upsampling (`grad_cam_acm`); a map that is zero everywhere stays zero, where their code gives NaN

    The backward pass ends at the layer.

    For a transformer without `layer` the map is that of FunnyBirds: the class token's attention to every patch in the last
    block, in every head times the mean over patches of its gradient, the mean over heads, ReLU, then always shifted to a
    minimum of 0 and a maximum of 1 (a flat map stays zero where their code gives NaN). A `layer` that gives tokens
    (n, t, channels) is read as maps on the grid of patches: grad_cam(layer=blocks.11.norm1).
    """

    gradients = True
    cite: ClassVar[tuple[str, ...]] = ("selvaraju2017",)

    layer: str | None = None
    upsample: Literal["nearest", "bilinear"] = "nearest"
    relu: bool = True
    shift: bool = False

    def refuses(self, model: Any) -> str:
        """Why a model cannot be explained: it has no such layer, or names none."""
        if self.layer is not None:
            return missing_layer(module_of(model), self.layer, "grad_cam")
        return "" if model.cam_layer is not None else self._without_layer(model)

    def _without_layer(self, model: Any) -> str:
        from diorama.methods.explain.attention import lacks_attention

        lacking = lacks_attention(model, "grad_cam")
        reason = f"grad_cam: the model names no layer for it; give one with grad_cam(layer=…) ({lacking})"
        return reason if lacking else ""

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 1); signed only without ReLU and shift."""
        from torch.nn.functional import interpolate

        x, target = tensors(model, images, targets)
        name = self.layer if self.layer is not None else model.cam_layer
        if name is None:
            if reason := self._without_layer(model):
                raise InputError(reason)
            return _of_attention(module_of(model), x, target, images)
        features, slope = _features(gradient_module(model, name), name, x, target)
        coarse = (slope.mean(dim=(2, 3), keepdim=True) * features).sum(dim=1, keepdim=True)
        heat = interpolate(coarse.relu() if self.relu else coarse, images.shape[1:3], mode=self.upsample)
        return heatmaps(_normalised(heat) if self.shift else heat, signed=not (self.relu or self.shift))


def _features(module: "nn.Module", name: str, x: "Tensor", target: "Tensor") -> "tuple[Tensor, Tensor]":
    """The features of a layer (n, k, i, j) and the gradient of the target's logit with respect to them."""
    import torch

    features: list[Tensor] = []

    def cut(_: "nn.Module", __: Any, out: "Tensor") -> "Tensor":
        features.append(out.detach().requires_grad_(True))
        return features[-1].clone()  # a copy, so that an in-place ReLU behind the layer may write to it

    layer = layer_of(module, name, "grad_cam")
    with torch.enable_grad(), layer.register_forward_hook(cut):
        logits = module(x)
        if not features or features[-1].ndim not in (3, 4):
            shape = tuple(features[-1].shape) if features else "nothing"
            raise InputError(f"grad_cam: layer {name!r} gives {shape}, not feature maps (n, k, h, w); choose another")
        slope = torch.autograd.grad(chosen(logits, target).sum(), features[-1])[0]
    return _as_maps(features[-1].detach()), _as_maps(slope)


def _as_maps(features: "Tensor") -> "Tensor":
    """Maps as they are; tokens (n, t, k) as maps (n, k, side, side) of the patches, which come last."""
    if features.ndim == 4:
        return features
    side = math.isqrt(features.shape[1])
    return features[:, features.shape[1] - side * side :].transpose(1, 2).unflatten(2, (side, side))


def _of_attention(module: "nn.Module", x: "Tensor", target: "Tensor", images: np.ndarray) -> Sequence[Answer]:
    """FunnyBirds' Grad-CAM of a transformer."""
    from diorama.methods.explain.attention import patch_heatmaps, with_gradients

    maps, slopes, grid = with_gradients(module, x, target)
    attention, slope = grid.patches(maps[-1][:, :, 0]), grid.patches(slopes[-1][:, :, 0])
    heat = (attention * slope.mean((2, 3), keepdim=True)).mean(1, keepdim=True).relu()
    return patch_heatmaps(_normalised(heat)[:, 0], images)


def _normalised(heat: "Tensor") -> "Tensor":
    """(map − min) / max(map − min), per image."""
    heat = heat - heat.amin(dim=(1, 2, 3), keepdim=True)
    return heat / heat.amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-30)
