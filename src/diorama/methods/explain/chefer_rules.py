"""The rules by which Chefer et al. (2021) propagate relevance to attention maps, for any transformer.

Each rule is an autograd function whose backward pass propagates relevance instead of a gradient. While the network runs,
these functions replace linear layers, sums of two branches, normalisation, GELU and attention. Sums run over one image, so
that a map does not depend on the other images of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from diorama.methods.explain.attention import RelevanceRules, Sum

if TYPE_CHECKING:
    from torch import Tensor, nn


def relevances(module: nn.Module, x: Tensor, target: Tensor) -> list[Tensor]:
    """The relevance (n, heads, t, t) of every block's attention, starting with 1 at the target's logit."""
    with torch.enable_grad(), _CheferRules() as rules:
        x = x.detach().requires_grad_(True)
        logits = module(x)
    start = torch.zeros_like(logits).scatter_(1, target[:, None], 1.0)
    torch.autograd.grad(logits, x, start)
    return [rules.found[i] for i in range(rules.count)]


class _CheferRules(RelevanceRules):
    """While this context is active, relevance follows the rules; after the backward pass `found` has that of every map."""

    unchanged = RelevanceRules.unchanged | {torch.relu, functional.relu}

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[int, Tensor] = {}
        self.count = 0

    def other(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Linear layers by α1β0, all else by the base class."""
        return self.linear(*args, **kwargs) if func is functional.linear else super().other(func, args, kwargs)

    def added(self, a: Tensor, b: Tensor) -> Tensor:
        """The rule of sums."""
        return _Sum.apply(a, b)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """The α1β0 rule."""
        return _Linear.apply(x, weight, bias)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """The rule of attention, which writes its map's relevance to `found`."""
        self.count += 1
        return _Attention.apply(q, k, v, scale, self.found, self.count - 1)


def divided(a: Tensor, b: Tensor) -> Tensor:
    """a / b, and 0 where b is 0; as released."""
    below = b + 1e-9
    return a / torch.where(below == 0, 1e-9, below) * (b != 0)


class _Linear(torch.autograd.Function):
    """w·x + b; every input gets the share of R that it has in the positive parts of w·x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The layer's output."""
        ctx.save_for_backward(x, weight)
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *R: Tensor) -> tuple[Tensor, None, None]:
        """x⁺·(w⁺ᵀs) + x⁻·(w⁻ᵀs) with s = R / (w⁺x⁺ + w⁻x⁻)."""
        x, weight = ctx.saved_tensors
        up, down = (x.clamp(min=0), weight.clamp(min=0)), (x.clamp(max=0), weight.clamp(max=0))
        share = divided(R[0], functional.linear(*up) + functional.linear(*down))
        return up[0] * (share @ up[1]) + down[0] * (share @ down[1]), None, None


class _Sum(Sum):
    """a + b; both get R in proportion, rescaled so that their sums are as |Σ a| to |Σ b| and add up to Σ R."""

    @staticmethod
    def backward(ctx: Any, *R: Tensor) -> tuple[Tensor, Tensor]:
        """The shares of both."""
        a, b = ctx.saved_tensors
        share = divided(R[0], a + b)
        parts = (a * share, b * share)
        sums = [_total(part) for part in parts]
        size = sums[0].abs() + sums[1].abs()
        wanted = [divided(s.abs(), size) * _total(R[0]) for s in sums]
        first, second = (p * divided(w, s) for p, w, s in zip(parts, wanted, sums, strict=True))
        return first, second


def _total(x: Tensor) -> Tensor:
    """The sum over everything but the images."""
    return x.sum(dim=tuple(range(1, x.ndim)), keepdim=True)


class _Attention(torch.autograd.Function):
    """softmax(scale·q·kᵀ)·v; products give half of their relevance to each factor."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, scale: float, found: dict[int, Tensor], number: int
    ) -> Tensor:
        """The block's output."""
        dots = q @ k.transpose(-2, -1)
        attention = (scale * dots).softmax(-1)
        out = attention @ v
        ctx.save_for_backward(q, k, v, dots, attention, out)
        ctx.found, ctx.number = found, number
        return out

    @staticmethod
    def backward(ctx: Any, *R: Tensor) -> tuple[Any, ...]:
        """The relevance of q, k and v; that of the map is recorded."""
        q, k, v, dots, attention, out = ctx.saved_tensors
        share = divided(R[0], out)
        of_map = attention * (share @ v.transpose(-2, -1)) / 2
        of_values = v * (attention.transpose(-2, -1) @ share) / 2
        ctx.found[ctx.number] = of_map
        share = divided(of_map, dots)
        return q * (share @ k) / 2, k * (share.transpose(-2, -1) @ q) / 2, of_values, None, None, None
