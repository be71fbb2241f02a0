"""B-cos networks (Böhle et al. 2022): every layer is w·x times |cos(w, x)|, so that the network is one matrix w(x) times x.

The input has six channels [x, 1 − x]. Names of weights are those of the authors' ResNet-50 as FunnyBirds trains it: the
maximum of every pair of units, no normalisation, an average pool where a ResNet has a max pool, the class maps averaged at
the end, and a constant added to all logits. The package `bcos` has the second version of these networks, with other layers
(no pairs, with normalisation) and names, so it cannot read these weights.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from diorama.core.inherent import LinearMap
from diorama.models.families.residual import COUNTS, EXPANSION, WIDTHS, add_groups, groups

#: What the released network adds to every logit: the log odds of one class in a hundred.
CONSTANT = math.log(0.01 / 0.99)
_FIXED: ContextVar[bool] = ContextVar("fixed", default=False)


@contextmanager
def fixed_weights() -> Any:
    """While this context is active, gradients treat every layer's input-dependent matrix as a constant."""
    token = _FIXED.set(True)
    try:
        yield
    finally:
        _FIXED.reset(token)


def as_matrix(factor: Tensor) -> Tensor:
    """A factor that is part of the matrix: it is detached while weights are fixed."""
    return factor.detach() if _FIXED.get() else factor


class BcosConv(nn.Module):
    """(ŵ·x)·|cos(ŵ, x)| / scale with ŵ = w / |w|: B = 2. The output is the maximum of every `pair` units."""

    def __init__(
        self, inside: int, outside: int, kernel: int = 1, stride: int = 1, padding: int = 0, pair: int = 2
    ) -> None:
        super().__init__()
        self.linear = nn.Conv2d(inside, outside * pair, kernel, stride, padding, bias=False)
        self.pair, self.scale = pair, kernel * math.sqrt(inside) / 100

    def forward(self, x: Tensor) -> Tensor:
        """(n, inside, h, w) → (n, outside, h', w')."""
        conv = self.linear
        weight = conv.weight / conv.weight.flatten(1).norm(dim=1)[:, None, None, None]
        y = functional.conv2d(x, weight, None, conv.stride, conv.padding)
        if self.pair > 1:
            y = y.unflatten(1, (-1, self.pair)).amax(2)
        return y * as_matrix(y.abs() / (self._length(x) * self.scale))

    def _length(self, x: Tensor) -> Tensor:
        """|x| of every patch."""
        kernel, stride, padding = self.linear.kernel_size, self.linear.stride, self.linear.padding
        squares = x.square().sum(1, keepdim=True)
        return (functional.avg_pool2d(squares, kernel, stride, padding) * math.prod(kernel) + 1e-6).sqrt()  # type: ignore[arg-type]


class Uncentred(nn.Module):
    """Batch norm without centring: x over its root mean square, times a weight; a constant factor in eval mode."""

    def __init__(self, channels: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.weight, self.momentum = nn.Parameter(torch.ones(channels)), momentum
        self.register_buffer("square", torch.ones(channels))
        self.square: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        square = self.square
        if self.training:
            square = x.square().mean((0, 2, 3))
            self.square.lerp_(square.detach(), self.momentum)
        return x * as_matrix(self.weight * (square + 1e-5).rsqrt())[:, None, None]


#: Makes the layer that follows a convolution with this number of channels.
MakeNorm = Callable[[int], nn.Module]


class Block(nn.Module):
    """x' + 1×1(3×3(1×1 x)), all B-cos, x' being x or its 1×1 B-cos layer. No ReLU: the cosine is non-linear enough."""

    def __init__(self, inside: int, width: int, outside: int, stride: int, *_: int, pair: int, norm: MakeNorm) -> None:
        super().__init__()
        self.conv1, self.norm1 = BcosConv(inside, width, pair=pair), norm(width)
        self.conv2, self.norm2 = BcosConv(width, width, 3, stride, 1, pair), norm(width)
        self.conv3, self.norm3 = BcosConv(width, outside, pair=pair), norm(outside)
        self.downsample: nn.Module = nn.Identity()
        if inside != outside or stride != 1:
            self.downsample = nn.Sequential(BcosConv(inside, outside, 1, stride, pair=pair), norm(outside))

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        y = self.norm2(self.conv2(self.norm1(self.conv1(x))))
        return self.norm3(self.conv3(y)) + self.downsample(x)


class Trunk(nn.Module):
    """Stem, average pool, four groups of blocks, a B-cos layer that gives a map for every class."""

    strides = (1, 2, 2, 2)

    def __init__(
        self,
        classes: int,
        stem: tuple[int, int],
        widths: Sequence[int],
        counts: Sequence[int],
        expansion: int,
        pair: int,
        norm: MakeNorm,
    ) -> None:
        super().__init__()
        channels, kernel = stem
        self.conv1, self.norm1 = BcosConv(6, channels, kernel, 2, kernel // 2, pair), norm(channels)
        self.avgpool = nn.AvgPool2d(3, 2, 1)
        block = partial(Block, pair=pair, norm=norm)
        channels = add_groups(self, block, channels, widths, counts, self.strides, expansion)
        self.fc = BcosConv(channels, classes, pair=pair)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 6, h, w) → (n, classes, h/32, w/32)."""
        x = self.avgpool(self.norm1(self.conv1(x)))
        for group in groups(self):
            x = group(x)
        return self.fc(x)


class BcosNet(nn.Sequential, LinearMap):
    """A B-cos residual network on images (n, 3, h, w): logit = w(x)·[x, 1 − x] + constant.

    classes    number of logits
    stem       channels and kernel of the first layer (64, 7)
    widths     inner width of the blocks of each group (64, 128, 256, 512)
    counts     blocks in each group (3, 4, 6, 3)
    expansion  outer width over inner width (4)
    pair       number of units whose maximum is taken (2)
    norm       normalisation after every layer: none (as released), or `Uncentred`
    gain       factor of every logit (.1)
    constant   constant added to every logit (log(.01/.99))
    """

    def __init__(
        self,
        classes: int,
        stem: tuple[int, int] = (64, 7),
        widths: Sequence[int] = WIDTHS,
        counts: Sequence[int] = COUNTS,
        expansion: int = EXPANSION,
        pair: int = 2,
        norm: MakeNorm = nn.Identity,
        gain: float = 0.1,
        constant: float = CONSTANT,
    ) -> None:
        super().__init__(Trunk(classes, stem, widths, counts, expansion, pair, norm))
        self.gain, self.constant = gain, constant

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        return self.above(with_inverse(x)) + self.constant

    def above(self, six: Tensor) -> Tensor:
        """The logits without the constant, for the six channels."""
        return self[0](six).mean((2, 3)) * self.gain

    def contributions(self, x: Tensor, target: Tensor) -> Tensor:
        """w(x)·[x, 1 − x] of the target, (n, 6, h, w)."""
        with torch.enable_grad(), fixed_weights():
            six = with_inverse(x.detach()).requires_grad_(True)
            chosen = self.above(six).gather(1, target[:, None]).sum()
            return six.detach() * torch.autograd.grad(chosen, six)[0]


def with_inverse(x: Tensor) -> Tensor:
    """[x, 1 − x], in which black and white have the same norm."""
    return torch.cat([x, 1 - x], 1)
