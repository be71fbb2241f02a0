"""BagNet (Brendel & Bethge 2019): every logit is the mean over small patches of logits computed from that patch alone.

It is a ResNet with few 3×3 convolutions, never padded: with one in the stem and one in each of the four groups the receptive
field is 33 pixels (with three groups 17). Names of weights are those of the authors' `bagnet33`.

`dense` moves the patch by one pixel instead of eight in a single pass: every stride becomes a dilation of all later layers,
so that each layer is computed once for all patches. The map is computed in bands of rows, which bounds its memory.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from diorama.core.inherent import PatchEvidence
from diorama.models.families.residual import COUNTS, EXPANSION, WIDTHS, Bottleneck, add_groups, groups

#: Values of the widest map that a band may hold.
BAND = 4e7


class Block(Bottleneck):
    """A bottleneck whose middle convolution is 3×3 or 1×1 and not padded; the skipped x is cut to the same size."""

    def __init__(self, inside: int, width: int, outside: int, stride: int, kernel: int) -> None:
        super().__init__(inside, width, outside, stride, kernel=kernel, padding=0)
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        y = self.relu2(self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x))))))
        return self._sum(self.bn3(self.conv3(y)), self.downsample(x))

    def dense(self, x: Tensor, dilation: int) -> Tensor:
        """The block's features at every pixel: no stride, the kernel's taps `dilation` apart."""
        y = self.relu1(self.bn1(self.conv1(x)))
        y = functional.conv2d(y, self.conv2.weight, dilation=dilation)
        y = self.bn3(self.conv3(self.relu2(self.bn2(y))))
        return self._sum(y, _unstrided(self.downsample, x))

    def _sum(self, y: Tensor, skip: Tensor) -> Tensor:
        return self.relu3(y + skip[:, :, : y.shape[2], : y.shape[3]])


def _unstrided(skip: nn.Module, x: Tensor) -> Tensor:
    """The skip of a block at every pixel."""
    if isinstance(skip, nn.Identity):
        return x
    conv, norm = skip.children()
    return norm(functional.conv2d(x, conv.weight))  # type: ignore[arg-type]


class BagNet(nn.Module, PatchEvidence):
    """1×1 and 3×3 convolution, four groups of blocks, global average pooling, a linear head.

    classes    number of logits
    kernels    whether the first block of each group has a 3×3 kernel: (1, 1, 1, 1) for patches of 33 pixels, (1, 1, 1, 0)
               for 17
    stem       channels of the first two convolutions (64)
    widths     inner width of the blocks of each group (64, 128, 256, 512)
    counts     blocks in each group (3, 4, 6, 3)
    expansion  outer width over inner width (4)
    """

    strides = (2, 2, 2, 1)

    def __init__(
        self,
        classes: int,
        kernels: Sequence[int] = (1, 1, 1, 1),
        stem: int = 64,
        widths: Sequence[int] = WIDTHS,
        counts: Sequence[int] = COUNTS,
        expansion: int = EXPANSION,
    ) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, stem, 1, bias=False), nn.Conv2d(stem, stem, 3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(stem), nn.ReLU()

        def make(inside: int, width: int, outside: int, stride: int, group: int, number: int) -> Block:
            return Block(inside, width, outside, stride, 3 if number < kernels[group] else 1)

        channels = add_groups(self, make, stem, widths, counts, self.strides, expansion)
        self.fc = nn.Linear(channels, classes)
        self.widest = max(channels, *(expansion * w for w in widths))
        self.field = _field(kernels, self.strides)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        x = self.relu(self.bn1(self.conv2(self.conv1(x))))
        for group in groups(self):
            x = group(x)
        return self.fc(x.mean((2, 3)))

    def dense(self, x: Tensor, classes: Tensor) -> Tensor:
        """The logits of some classes of every patch, at every pixel."""
        return torch.cat([self._evidence(band, classes) for band in self._bands(x)], 2)

    def _bands(self, x: Tensor) -> Iterator[Tensor]:
        """Rows of the image, each band with the rows that its patches reach into."""
        rows = max(1, int(BAND / (len(x) * self.widest * x.shape[3])))
        last = x.shape[2] - self.field + 1
        return (x[:, :, top : min(top + rows, last) + self.field - 1] for top in range(0, last, rows))

    def _evidence(self, x: Tensor, classes: Tensor) -> Tensor:
        x, dilation = self.relu(self.bn1(self.conv2(self.conv1(x)))), 1
        for group in groups(self):
            for block in group.children():
                x = block.dense(x, dilation)  # type: ignore[operator]
                dilation *= int(block.stride)  # type: ignore[arg-type]
        return functional.conv2d(x, self.fc.weight[classes][:, :, None, None], self.fc.bias[classes])


def _field(kernels: Sequence[int], strides: Sequence[int]) -> int:
    """The side of a patch: each 3×3 convolution adds two pixels of its input map.

    >>> [_field(k, (2, 2, 2, 1)) for k in ((1, 1, 1, 1), (1, 1, 1, 0), (1, 1, 0, 0))]
    [33, 17, 9]
    """
    field, step = 3, 1
    for count, stride in zip(kernels, strides, strict=True):
        for number in range(count):
            field += 2 * step * (1 if number == 0 else stride)
        step *= stride
    return field
