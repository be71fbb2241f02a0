"""Networks whose ImageNet weights come as packages: EfficientNet-Lite0, the first Keras ResNet-50, the trunk of VGG16.

Made for explanations: every activation is a module of its own and not in place, every batch norm follows its convolution,
so that it can be merged. The weights are never part of Diorama.
"""

from collections import OrderedDict
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from diorama.models.families.residual import COUNTS, EXPANSION, add_groups, groups

#: The ε of both batch-normalised networks; torch's default is 1e-5.
_EPS = 1e-3
#: EfficientNet-Lite0 (Tan & Le 2019, the edge variant without squeeze-and-excitation): count, kernel, stride, expansion,
#: channels of every stage.
_STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
           (1, 3, 1, 6, 320))  # fmt: skip
#: ResNet-50 (He et al. 2016): stride of the first bottleneck of every group.
_STRIDES = (1, 2, 2, 2)
#: VGG16 (Simonyan & Zisserman 2015): channels of the 3×3 convolutions; 0 is 2×2 max pooling.
_VGG16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512)


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's SAME padding for inputs of even size: at stride 2 one pixel more at the far edges.

    It pads by itself, so that its input, and with it relevance, has the size of the image.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of the padded input."""
        total = self.kernel_size[0] - self.stride[0]
        near, far = total // 2, total - total // 2
        if near == far:  # which the convolution does itself, without a copy
            return functional.conv2d(x, self.weight, self.bias, self.stride, near, groups=self.groups)
        wide = functional.pad(x, (near, far) * 2)
        return functional.conv2d(wide, self.weight, self.bias, self.stride, groups=self.groups)


def _convolution(
    inside: int, outside: int, kernel: int, stride: int = 1, groups: int = 1
) -> list[tuple[str, nn.Module]]:
    """Convolution and batch norm."""
    kind = SameConv2d if kernel > 1 else nn.Conv2d
    conv = kind(inside, outside, kernel, stride, groups=groups, bias=False)
    return [("conv", conv), ("norm", nn.BatchNorm2d(outside, eps=_EPS))]


class InvertedBlock(nn.Module):
    """x + narrow(relu6(depthwise(relu6(widen x)))), the sum only where the shapes agree (Sandler et al. 2018)."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inside * expansion
        self.widen = _sequence([*_convolution(inside, wide, 1), ("relu", nn.ReLU6())] if expansion > 1 else [])
        self.depthwise = _sequence([*_convolution(wide, wide, kernel, stride, groups=wide), ("relu", nn.ReLU6())])
        self.narrow = _sequence(_convolution(wide, outside, 1))
        self.skip = inside == outside and stride == 1

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        inner = self.narrow(self.depthwise(self.widen(x)))
        return x + inner if self.skip else inner


class EfficientNetLite0(nn.Module):
    """Stem, sixteen inverted blocks, a 1×1 convolution to 1,280 channels, global average pool, linear head."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.stem = _sequence([*_convolution(3, 32, 3, 2), ("relu", nn.ReLU6())])
        self.blocks = nn.Sequential(*_inverted_blocks())
        self.top = _sequence([*_convolution(_STAGES[-1][-1], 1280, 1), ("relu", nn.ReLU6())])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(1280, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        return self.head(torch.flatten(self.pool(self.top(self.blocks(self.stem(x)))), 1))


def _inverted_blocks() -> Iterator[nn.Module]:
    inside = 32
    for count, kernel, stride, expansion, outside in _STAGES:
        for i in range(count):
            yield InvertedBlock(inside, outside, kernel, stride if i == 0 else 1, expansion)
            inside = outside


def _sequence(parts: list[tuple[str, nn.Module]]) -> nn.Sequential:
    return nn.Sequential(OrderedDict(parts))


class KerasBottleneck(nn.Module):
    """relu(x' + 1×1(3×3(1×1 x))) with biases, and the stride in the first 1×1 convolution, as Keras first had it."""

    def __init__(self, inside: int, width: int, outside: int, stride: int, group: int, number: int) -> None:
        super().__init__()
        self.reduce = _biased(inside, width, 1, stride, relu=True)
        self.middle = _biased(width, width, 3, 1, relu=True)
        self.expand = _biased(width, outside, 1, 1)
        self.skip: nn.Module = nn.Identity() if number else _biased(inside, outside, 1, stride)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        return self.relu(self.skip(x) + self.expand(self.middle(self.reduce(x))))


def _biased(inside: int, outside: int, kernel: int, stride: int, relu: bool = False) -> nn.Sequential:
    conv = nn.Conv2d(inside, outside, kernel, stride, kernel // 2)
    parts: list[tuple[str, nn.Module]] = [("conv", conv), ("norm", nn.BatchNorm2d(outside, eps=_EPS))]
    return _sequence([*parts, ("relu", nn.ReLU())] if relu else parts)


class KerasResNet50(nn.Module):
    """Stem, max pool, `group1` … `group4`, global average pool, linear head."""

    def __init__(self, classes: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.stem = _biased(3, width, 7, 2, relu=True)
        self.maximum = nn.MaxPool2d(3, 2, 1)  # after a ReLU zero padding and padding with −∞ are the same
        widths = [width * 2**i for i in range(len(COUNTS))]
        inside = add_groups(self, KerasBottleneck, width, widths, COUNTS, _STRIDES, EXPANSION, "group")
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inside, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        x = self.maximum(self.stem(x))
        for group in groups(self, "group"):
            x = group(x)
        return self.head(torch.flatten(self.pool(x), 1))


class Vgg16Trunk(nn.Module):
    """The thirteen convolutions of VGG16 up to the last ReLU, global average pool, and a place for a head."""

    def __init__(self) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        inside = 3
        for outside in _VGG16:
            parts += [nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU()] if outside else [nn.MaxPool2d(2)]
            inside = outside or inside
        self.features = nn.Sequential(*parts)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head: nn.Module = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """The head's output for the pooled features."""
        return self.head(torch.flatten(self.pool(self.features(x)), 1))
