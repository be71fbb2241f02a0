"""X-DNN (Hesse et al. 2021): a residual network without any bias or normalisation, so that f(αx) = α·f(x).

Input × Gradient is then Integrated Gradients from black, exactly. Names of weights are those of the released `x_resnet50`.
"""

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor, nn

from diorama.core.inherent import Homogeneous
from diorama.models.families.residual import COUNTS, EXPANSION, WIDTHS, add_groups, groups

#: Makes a convolution without bias of (channels in, channels out, kernel, stride, padding).
MakeConv = Callable[[int, int, int, int, int], nn.Module]


def plain(inside: int, outside: int, kernel: int, stride: int = 1, padding: int = 0) -> nn.Module:
    """A convolution without bias."""
    return nn.Conv2d(inside, outside, kernel, stride, padding, bias=False)


class Block(nn.Module):
    """relu(x' + 1×1(relu(3×3(relu(1×1 x))))), x' being x or its 1×1 convolution."""

    def __init__(self, inside: int, width: int, outside: int, stride: int, *_: int, conv: MakeConv) -> None:
        super().__init__()
        self.conv1, self.conv2 = conv(inside, width, 1, 1, 0), conv(width, width, 3, stride, 1)
        self.conv3 = conv(width, outside, 1, 1, 0)
        self.relu1, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()
        wider = inside != outside or stride != 1
        self.downsample = conv(inside, outside, 1, stride, 0) if wider else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        y = self.conv3(self.relu2(self.conv2(self.relu1(self.conv1(x)))))
        return self.relu3(y + self.downsample(x))


class XNet(nn.Module, Homogeneous):
    """Stem, max pool, four groups of blocks, global average pooling, a linear head without bias.

    classes    number of logits
    stem       channels and kernel of the first convolution (64, 7)
    widths     inner width of the blocks of each group (64, 128, 256, 512)
    counts     blocks in each group (3, 4, 6, 3)
    expansion  outer width over inner width (4)
    conv       function that makes convolutions: plain, or one for training
    """

    strides = (1, 2, 2, 2)

    def __init__(
        self,
        classes: int,
        stem: tuple[int, int] = (64, 7),
        widths: Sequence[int] = WIDTHS,
        counts: Sequence[int] = COUNTS,
        expansion: int = EXPANSION,
        conv: MakeConv = plain,
    ) -> None:
        super().__init__()
        channels, kernel = stem
        self.conv1 = conv(3, channels, kernel, 2, kernel // 2)
        self.relu, self.maxpool = nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        channels = add_groups(self, partial(Block, conv=conv), channels, widths, counts, self.strides, expansion)
        self.fc = nn.Linear(channels, classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        x = self.maxpool(self.relu(self.conv1(x)))
        for group in groups(self):
            x = group(x)
        return self.fc(x.mean((2, 3)))
