"""What residual networks share: groups of bottlenecks; the first of each group may have a stride and widens."""

from collections.abc import Callable, Sequence

from torch import Tensor, nn

#: ResNet-50 (He et al. 2016): width and number of the bottlenecks of every group; the outer width is four times the inner.
WIDTHS, COUNTS, EXPANSION = (64, 128, 256, 512), (3, 4, 6, 3), 4
#: Makes a block of (channels in, width, channels out, stride, group, number in the group).
MakeBlock = Callable[[int, int, int, int, int, int], nn.Module]


def add_groups(
    net: nn.Module,
    make: MakeBlock,
    inside: int,
    widths: Sequence[int],
    counts: Sequence[int],
    strides: Sequence[int],
    expansion: int,
    name: str = "layer",
) -> int:
    """Add the groups `layer1`, `layer2` … to a network; gives the channels of the last one's output."""
    for g, (width, count, stride) in enumerate(zip(widths, counts, strides, strict=True)):
        blocks = []
        for k in range(count):
            blocks.append(make(inside, width, expansion * width, stride if k == 0 else 1, g, k))
            inside = expansion * width
        net.add_module(f"{name}{g + 1}", nn.Sequential(*blocks))
    return inside


def groups(net: nn.Module, name: str = "layer") -> list[nn.Module]:
    """The groups of a network: the parts `layer1`, `layer2` …"""
    return [part for part_name, part in net.named_children() if part_name.startswith(name)]


class Bottleneck(nn.Module):
    """relu(x' + norm(1×1(relu(norm(3×3(relu(norm(1×1 x)))))))), x' being x or its 1×1 convolution with norm."""

    def __init__(
        self, inside: int, width: int, outside: int, stride: int, *_: int, kernel: int = 3, padding: int = 1
    ) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, kernel, stride, padding, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside)
        self.relu1, self.relu2, self.relu3 = nn.ReLU(), nn.ReLU(), nn.ReLU()
        if inside != outside or stride != 1:
            skip = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.downsample: nn.Module = nn.Sequential(skip, nn.BatchNorm2d(outside))
        else:
            self.downsample = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.relu2(self.bn2(self.conv2(y)))
        return self.relu3(self.bn3(self.conv3(y)) + self.downsample(x))
