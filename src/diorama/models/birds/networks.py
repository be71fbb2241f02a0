"""Small networks for staged images, of three families: residual blocks, plain convolutions, bottlenecks.

Made for explanations: every ReLU is a module of its own and not in place, and normalisation is inside (the input is sRGB
in [0, 1], (n, 3, h, w)). Any input size from 64 pixels works, so that early epochs can be small.
"""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from diorama.models.families.residual import add_groups, groups

#: Channels and stride of every residual block.
BLOCKS = ((48, 2), (96, 2), (96, 1), (192, 2))
STEM = 16
#: Channels of the convolutions of every plain stage, with 2×2 max pooling between stages.
STAGES = ((32,), (64,), (128, 128), (192, 192))
#: Width, number and stride of the bottlenecks of every group; the outer width is three times the inner.
WIDTHS, COUNTS, STRIDES, EXPANSION = (32, 48, 96, 128), (1, 2, 2, 1), (1, 2, 2, 2), 3


class Block(nn.Module):
    """relu(x' + norm(conv(relu(norm(conv x))))), where x' is x or its 1×1 convolution (He et al. 2016)."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.skip: nn.Module = nn.Identity()
        if inside != outside or stride != 1:
            self.skip = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
        self.relu2 = nn.ReLU()
        nn.init.zeros_(self.norm2.weight)  # a block starts as its skip, which allows high learning rates at once

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        inner = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(x)))))
        return self.relu2(self.skip(x) + inner)


class Staged(nn.Module):
    """A stem, the parts `name1`, `name2` …, an average pool, a linear head."""

    name: ClassVar[str]
    stem: nn.Module
    pool: nn.Module
    head: nn.Module

    def maps(self, x: Tensor) -> Tensor:
        """The features of the last part."""
        x = self.stem((x - 0.5) / 0.25)
        for part in groups(self, self.name):
            x = part(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        return self.head(torch.flatten(self.pool(self.maps(x)), 1))


class ResidualNetwork(Staged):
    """Stem, four residual blocks `block1` … `block4`, global average pool, linear head."""

    name = "block"

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, STEM, 5, 2, 2, bias=False), nn.BatchNorm2d(STEM), nn.ReLU())
        inside = STEM
        for i, (outside, stride) in enumerate(BLOCKS, start=1):
            self.add_module(f"block{i}", Block(inside, outside, stride))
            inside = outside
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inside, classes)


class PlainNetwork(Staged):
    """After VGG (Simonyan & Zisserman 2015), with batch norm: stem, `stage1` … `stage4`, 4×4 average pool, two layers."""

    name = "stage"

    def __init__(self, classes: int, stem: int = 24, hidden: int = 256) -> None:
        super().__init__()
        self.stem = _convolution(3, stem, stride=2)
        inside = stem
        for i, widths in enumerate(STAGES, start=1):
            layers: list[nn.Module] = [] if i == 1 else [nn.MaxPool2d(2)]
            for outside in widths:
                layers += _convolution(inside, outside)
                inside = outside
            self.add_module(f"stage{i}", nn.Sequential(*layers))
        self.pool = nn.AdaptiveAvgPool2d(4)
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(16 * inside, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        return self.head(self.hidden(self.pool(self.maps(x))))


class Bottleneck(nn.Module):
    """relu(x' + 1×1(3×3(1×1 x))), narrow inside, where x' is x or its 1×1 convolution (He et al. 2016)."""

    def __init__(self, inside: int, width: int, outside: int, stride: int, *_: int) -> None:
        super().__init__()
        self.reduce = _convolution(inside, width, kernel=1)
        self.middle = _convolution(width, width, stride=stride)
        norm = nn.BatchNorm2d(outside)
        nn.init.zeros_(norm.weight)  # as in Block
        self.expand = nn.Sequential(nn.Conv2d(width, outside, 1, bias=False), norm)
        self.skip: nn.Module = nn.Identity()
        if inside != outside or stride != 1:
            self.skip = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        return self.relu(self.skip(x) + self.expand(self.middle(self.reduce(x))))


class BottleneckNetwork(Staged):
    """After ResNet-50 (He et al. 2016): stem, max pool, `group1` … `group4`, global average pool, linear head."""

    name = "group"

    def __init__(self, classes: int, stem: int = 24) -> None:
        super().__init__()
        self.stem = nn.Sequential(*_convolution(3, stem, kernel=5, stride=2), nn.MaxPool2d(3, 2, 1))
        inside = add_groups(self, Bottleneck, stem, WIDTHS, COUNTS, STRIDES, EXPANSION, self.name)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inside, classes)


def _convolution(inside: int, outside: int, kernel: int = 3, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outside), nn.ReLU())


def network(name: str, classes: int) -> nn.Module:
    """The network of a bundled bird classifier, by the classifier's name."""
    from diorama.models.birds import small

    networks: dict[str, Callable[[int], nn.Module]] = {
        "birds_cnn": ResidualNetwork,
        "birds_vgg": PlainNetwork,
        "birds_resnet": BottleneckNetwork,
        "birds_vit": small.vit,
        "birds_bagnet": small.bagnet,
        "birds_bagnet25": partial(small.bagnet, field=25),
        "birds_bagnet33": partial(small.bagnet, field=33),
        "birds_xdnn": small.xdnn,
        "birds_bcos": small.bcos,
        "birds_protopnet": small.protopnet,
    }
    return networks[name](classes)
