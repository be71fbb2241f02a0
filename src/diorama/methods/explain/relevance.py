"""Relevance propagation on any network of modules: zennit's rules, with relevance divided at residual sums, without biases.

With zennit the user must name the places where a network adds two branches. Here every sum of two equal shapes that both
depend on the image is found while the network runs, so that residual blocks of any library are handled. Batch norms are
merged into the convolution before them while the network runs, and restored afterwards; or they follow a rule of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from diorama.adapt.torchvision_ops import make_importable
from diorama.core.errors import InputError
from diorama.methods.explain.attention import RelevanceRules, Sum

if TYPE_CHECKING:
    from torch import Tensor, nn

_CONVOLUTION = torch.nn.modules.conv._ConvNd
_BATCH_NORM = torch.nn.modules.batchnorm._BatchNorm
_LAYER = (_CONVOLUTION, torch.nn.Linear)
#: The denominator of a rule, given a layer's outputs.
Denominator = Callable[["Tensor"], "Tensor"]


def relevance(
    module: nn.Module, composite: Any, x: Tensor, start: Callable[[Tensor], Tensor], signed: Denominator
) -> Tensor:
    """The relevance (n, 3, h, w) of the input of the first layer, given that of the logits, `start(logits)`.

    `signed` is the denominator of attention's rule.
    """
    entered: list[Tensor] = []

    def enter(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        entered.append(inputs[0].detach().requires_grad_(True))  # after the model's own normalisation of the image
        return (entered[-1], *inputs[1:])

    with _entrance(module).register_forward_pre_hook(enter), torch.enable_grad(), composite.context(module) as inside:
        with _LrpRules(signed):
            logits = inside(x)
        result = torch.autograd.grad(logits, entered[0], start(logits.detach()))[0]
    if result.ndim == 4 and result.shape[1] == x.shape[1] and result.shape != x.shape:  # the network resizes its images
        result = functional.interpolate(result, x.shape[2:], mode="nearest")
    if result.numel() != x.numel():
        raise InputError(f"lrp: the first layer takes {tuple(result.shape)}, not an image {tuple(x.shape)}")
    return result.reshape(x.shape)


def _entrance(module: nn.Module) -> nn.Module:
    """The first layer, or the padding before it (EfficientNet), so that relevance belongs to the image's pixels."""
    kinds = (*_LAYER, torch.nn.ZeroPad2d)
    return next((m for m in module.modules() if isinstance(m, kinds)), None) or first_layer(module)


def first_layer(module: nn.Module) -> nn.Module:
    """The first convolution or linear layer."""
    layer = next((m for m in module.modules() if isinstance(m, _LAYER)), None)
    if layer is None:
        raise InputError("lrp: the model has no convolution or linear layer to propagate through")
    return layer


def composite(first: str, conv: str, batch_norm: str, linear: Denominator, signed: Denominator) -> Any:
    """zennit's composite of the named rules; `linear` and `signed` are the ε rule's denominators in linear layers and
    convolutions.

    The rules of signed contributions (ε, γ) keep a convolution's bias in the denominator. Without it the denominator
    passes through 0 where the layer's output does not, and relevance grows without bound from layer to layer.
    """
    make_importable()  # zennit imports torchvision
    from zennit import rules
    from zennit.canonizers import SequentialMergeBatchNorm
    from zennit.composites import SpecialFirstLayerMapComposite, layer_map_base

    convolutions = {
        "alpha1_beta0": lambda: rules.ZPlus(zero_params="bias"),
        "alpha2_beta1": lambda: rules.AlphaBeta(2.0, 1.0, zero_params="bias"),
        "gamma": lambda: rules.Gamma(0.25),
        "epsilon": lambda: rules.Epsilon(signed),
    }
    firsts = {"box": _box, "flat": rules.Flat, "w_square": lambda: rules.WSquare(zero_params="bias")}
    by_type = [(_CONVOLUTION, convolutions[conv]()), (torch.nn.Linear, rules.Epsilon(linear, zero_params="bias"))]
    at_first = [] if first == "same" else [(_LAYER, firsts[first]())]
    merged = batch_norm == "merged"
    layers = layer_map_base() + by_type if merged else [(_BATCH_NORM, _scale_and_shift()), *layer_map_base(), *by_type]
    return SpecialFirstLayerMapComposite(layers, at_first, canonizers=[SequentialMergeBatchNorm()] if merged else [])


def _scale_and_shift() -> Any:
    """Of a batch norm w·x + b the input gets the share |w·x| / (|w·x| + |b|), the shift the rest, which is lost."""
    from zennit.core import BasicHook

    return BasicHook(
        input_modifiers=[lambda x: x, torch.zeros_like],  # the output for an input of 0 is the shift
        gradient_mapper=lambda R, y: (R / _further_from_0(y[0] - y[1], y[1]), torch.zeros_like(R)),
        reducer=lambda x, g: x[0] * g[0],
    )


def _further_from_0(z: Tensor, shift: Tensor) -> Tensor:
    return z + torch.where(z < 0, -1.0, 1.0) * (shift.abs() + 1e-9)


def _box() -> Any:
    """z^B (Montavon et al. 2017) with the least and greatest value of each image as bounds; biases cancel in it."""
    from zennit.core import BasicHook
    from zennit.rules import ClampMod, NoMod

    return BasicHook(
        input_modifiers=[lambda x: x, *(partial(_everywhere, end) for end in (torch.amin, torch.amax))],
        param_modifiers=[NoMod(), ClampMod(min=0.0), ClampMod(max=0.0)],
        output_modifiers=[lambda z: z] * 3,
        gradient_mapper=lambda R, z: (R / _away_from_0(z[0] - z[1] - z[2]),) * 3,
        reducer=lambda x, g: x[0] * g[0] - x[1] * g[1] - x[2] * g[2],
    )


def _everywhere(end: Callable[..., Tensor], x: Tensor) -> Tensor:
    """The least or greatest value of each image, in all its places."""
    return end(x, dim=tuple(range(1, x.ndim)), keepdim=True).expand_as(x).clone()


def _away_from_0(z: Tensor) -> Tensor:
    """z ± 1e-6, as zennit's rules have it."""
    return z + 1e-6 * (2 * (z >= 0).to(z.dtype) - 1)


class _Share(Sum):
    """a + b; relevance is divided in proportion to a and b."""

    @staticmethod
    def backward(ctx: Any, *R: Tensor) -> tuple[Tensor, Tensor]:
        """R·a / (a + b) and R·b / (a + b)."""
        a, b = ctx.saved_tensors
        part = R[0] / _away_from_0(a + b)
        return a * part, b * part


class _ShareBySize(Sum):
    """a + b; relevance is divided in proportion to |a| and |b|, so that it stays bounded where a and b cancel."""

    @staticmethod
    def backward(ctx: Any, *R: Tensor) -> tuple[Tensor, Tensor]:
        """R·|a| / (|a| + |b|), and the rest."""
        a, b = (t.abs() for t in ctx.saved_tensors)
        first = R[0] * (a + 1e-12) / (a + b + 2e-12)
        return first, R[0] - first


class _Mixed(torch.autograd.Function):
    """A·v with the attention A as a constant: every value gets the share of R that it has in the sum (Ali et al. 2022)."""

    @staticmethod
    def forward(ctx: Any, attention: Tensor, v: Tensor, signed: Denominator) -> Tensor:
        """The mixture."""
        out = attention @ v
        ctx.save_for_backward(attention, v, signed(out))
        return out

    @staticmethod
    def backward(ctx: Any, *R: Tensor) -> tuple[None, Tensor, None]:
        """v·(Aᵀ·R / (A·v))."""
        attention, v, below = ctx.saved_tensors
        return None, v * (attention.transpose(-2, -1) @ (R[0] / below)), None


class _LrpRules(RelevanceRules):
    """While this context is active, sums divide relevance, attention passes it to values only, norms and GELU pass it on."""

    def __init__(self, signed: Denominator) -> None:
        super().__init__()
        self.signed = signed

    def added(self, a: Tensor, b: Tensor) -> Tensor:
        """Sums in proportion; those of tokens by size, because tokens have either sign and may cancel."""
        return (_ShareBySize if a.ndim == 3 else _Share).apply(a, b)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """softmax(scale·q·kᵀ)·v."""
        return _Mixed.apply((scale * q @ k.transpose(-2, -1)).softmax(-1).detach(), v, self.signed)
