"""Attention maps of any transformer, and relevance through them: what rollout, Chefer's method and Grad-CAM share.

Networks compute attention with one function of torch (`scaled_dot_product_attention`, which timm calls, or
`multi_head_attention_forward`, which torchvision calls). While a network runs here, that function is replaced by one that
records the map of every block, whatever library the network is from; the network itself is not changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from diorama.adapt.classifying import USUAL_SIZE, place_of_module
from diorama.adapt.explaining import heatmaps, module_of
from diorama.core.answers import Answer
from diorama.core.errors import InputError
from diorama.methods.explain.gradients import chosen

if TYPE_CHECKING:
    from torch import Tensor, nn

#: The functions that add two tensors.
ADDITIONS = {
    torch.add,
    torch.Tensor.add,
    torch.Tensor.add_,
    torch.Tensor.__add__,
    torch.Tensor.__radd__,
    torch.Tensor.__iadd__,
}


class RecordedAttention(TorchFunctionMode):
    """While this context is active, `maps` collects the attention (n, heads, t, t) of every block, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.maps: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            return self._fused(*args, **kwargs)
        if func is functional.multi_head_attention_forward:
            return self._multi_head(*args, **kwargs)
        return self.other(func, args, kwargs)

    def other(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Any other function of torch."""
        return func(*args, **kwargs)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """A linear layer inside attention."""
        return functional.linear(x, weight, bias)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """softmax(scale·q·kᵀ)·v, the map recorded."""
        self.maps.append((scale * q @ k.transpose(-2, -1)).softmax(-1))
        return self.maps[-1] @ v

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, *rest: Any, scale: float | None = None, **_: Any) -> Tensor:
        return self.attend(q, k, v, q.shape[-1] ** -0.5 if scale is None else scale)

    def _multi_head(self, q: Tensor, k: Tensor, v: Tensor, width: int, heads: int, *rest: Any, **_: Any) -> Any:
        """Self-attention of tokens (t, n, width); `rest` begins with the weights of q, k and v and their bias."""
        weight, bias, out_weight, out_bias = rest[0], rest[1], rest[6], rest[7]
        inner = self.linear(q, weight, bias).unflatten(2, (3, heads, -1)).permute(2, 1, 3, 0, 4)
        mixed = self.attend(inner[0], inner[1], inner[2], (width // heads) ** -0.5)
        return self.linear(mixed.permute(2, 0, 1, 3).flatten(2), out_weight, out_bias), None


class Unchanged(torch.autograd.Function):
    """A function's output; relevance passes to its input unchanged."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, output: Tensor) -> Tensor:
        """The output."""
        return output.clone()

    @staticmethod
    def backward(ctx: Any, *R: Tensor) -> tuple[Tensor, None]:
        """The same relevance."""
        return R[0], None


class Sum(torch.autograd.Function):
    """a + b; the backward pass of a subclass divides the relevance between both."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        """The sum."""
        ctx.save_for_backward(a, b)
        return a + b


class RelevanceRules(RecordedAttention):
    """While this context is active, a rule divides relevance between summed branches; some functions do not change it."""

    unchanged: frozenset[Any] = frozenset({functional.layer_norm, functional.gelu})

    def added(self, a: Tensor, b: Tensor) -> Tensor:
        """The sum of two branches, with the rule that divides its relevance."""
        raise NotImplementedError

    def other(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Sums of two branches, functions that pass relevance on unchanged, and all others."""
        if func in ADDITIONS and not kwargs and len(args) == 2 and branches(*args):
            return self.added(*args)
        result = func(*args, **kwargs)
        return Unchanged.apply(args[0], result.detach()) if func in self.unchanged else result


@dataclass(frozen=True, slots=True)
class Grid:
    """The patches among a transformer's tokens: `first` other tokens come before, number 0 is the class token."""

    first: int
    side: int

    def patches(self, row: Tensor) -> Tensor:
        """The values (…, t) of tokens as (…, side, side)."""
        return row[..., self.first :].unflatten(-1, (self.side, self.side))


def grid_of(maps: list[Tensor], images: int) -> Grid | str:
    """Where the patches are among the tokens, or why that is unknown."""
    if not maps:
        return "no attention of torch's own functions is computed in it"
    shapes = {tuple(m.shape[:1] + m.shape[2:]) for m in maps}
    count, tokens = maps[0].shape[0], maps[0].shape[-1]
    if len(shapes) > 1 or count != images or maps[0].shape[-2] != tokens:
        return "its attention is not among all tokens of an image (windows, or several resolutions)"
    side = math.isqrt(tokens)
    if side * side == tokens:
        return f"its {tokens} tokens are patches only: there is no class token to look from"
    return Grid(tokens - side * side, side)


def lacks_attention(model: Any, method: str) -> str:
    """Why a method cannot use a model's attention, or an empty string; found by passing one black image."""
    module, side = module_of(model), model.size or USUAL_SIZE
    with torch.no_grad(), RecordedAttention() as recorded:
        module(torch.zeros(1, 3, side, side, device=place_of_module(module)))
    grid = grid_of(recorded.maps, 1)
    return f"{method} needs a transformer with a class token: {grid}" if isinstance(grid, str) else ""


def attention(module: nn.Module, x: Tensor) -> tuple[list[Tensor], Grid]:
    """The attention (n, heads, t, t) of every block."""
    with torch.no_grad(), RecordedAttention() as recorded:
        module(x)
    return recorded.maps, _grid(recorded.maps, len(x))


def with_gradients(module: nn.Module, x: Tensor, target: Tensor) -> tuple[list[Tensor], list[Tensor], Grid]:
    """The attention of every block, and the gradient of the target's logit with respect to it."""
    with torch.enable_grad(), RecordedAttention() as recorded:
        logits = module(x.detach().requires_grad_(True))
    grid = _grid(recorded.maps, len(x))
    slopes = torch.autograd.grad(chosen(logits, target).sum(), recorded.maps)
    return [m.detach() for m in recorded.maps], list(slopes), grid


def _grid(maps: list[Tensor], images: int) -> Grid:
    grid = grid_of(maps, images)
    if isinstance(grid, str):
        raise InputError(f"this needs a transformer with a class token: {grid}")
    return grid


def matrix_product(matrices: list[Tensor], start: int) -> Tensor:
    """The product (n, t, t) of the matrices (n, t, t) from index `start` on, later ones to the left."""
    product = matrices[start]
    for matrix in matrices[start + 1 :]:
        product = matrix @ product
    return product


def patch_heatmaps(coarse: Tensor, images: np.ndarray) -> list[Answer]:
    """Maps (n, side, side), not negative, as heat maps of the images' size, by nearest neighbours as in FunnyBirds."""
    return heatmaps(functional.interpolate(coarse[:, None], images.shape[1:3], mode="nearest"), signed=False)


def eye_like(matrix: Tensor) -> Tensor:
    """The identity (t, t) that fits a matrix (…, t, t)."""
    return torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def branches(a: Any, b: Any) -> bool:
    """Whether two things are tensors of one shape that both depend on the image."""
    tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    return tensors and a.shape == b.shape and a.requires_grad and b.requires_grad
