"""A small residual network for staged images: stem, four blocks, global average pool, linear head.

Made for explanations: every ReLU is a module of its own and not in place, normalisation is inside (the input is sRGB in
[0, 1], (n, 3, h, w)), and the last block, `block4`, is what Grad-CAM looks at. Any input size works.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

#: Channels and stride of every block.
BLOCKS = ((48, 2), (96, 2), (96, 1), (192, 2))
STEM = 16


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
        nn.init.zeros_(self.norm2.weight)  # a block starts as its skip: high learning rates from the first step

    def forward(self, x: Tensor) -> Tensor:
        """The block's features."""
        inner = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(x)))))
        return self.relu2(self.skip(x) + inner)


class ResidualNetwork(nn.Module):
    """(n, 3, h, w) sRGB in [0, 1] → (n, classes) logits."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, STEM, 5, 2, 2, bias=False), nn.BatchNorm2d(STEM), nn.ReLU())
        inside = STEM
        for i, (outside, stride) in enumerate(BLOCKS, start=1):
            self.add_module(f"block{i}", Block(inside, outside, stride))
            inside = outside
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(inside, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        x = self.stem((x - 0.5) / 0.25)
        for i in range(1, len(BLOCKS) + 1):
            x = self.get_submodule(f"block{i}")(x)
        return self.head(torch.flatten(self.pool(x), 1))
