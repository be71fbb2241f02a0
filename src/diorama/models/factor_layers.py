"""A small network that classifies every factor of an image: the judge of counterfactual generativeness."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

#: Channels and stride of each convolution.
LAYERS = ((24, 1), (48, 2), (96, 2), (96, 1), (128, 2), (128, 1))
#: Channels at every place that go into the dense layers, and the width of those.
NARROW, HIDDEN = 32, 128


class FactorNetwork(nn.Module):
    """Six convolutions with batch norm, then dense layers over all places, which size and distance need to be separable.

    `side` is that of its images, `heads` the number of values of each factor; logits are concatenated.
    """

    def __init__(self, channels: int, side: int, heads: Sequence[int]) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        before = channels
        for after, stride in LAYERS:
            parts += [nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
            before = after
        self.convolutions = nn.Sequential(*parts, nn.Conv2d(before, NARROW, 1), nn.ReLU())
        self.dense = nn.Linear(NARROW * (side // 8) ** 2, HIDDEN)
        self.heads = nn.Linear(HIDDEN, sum(heads))

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, side, side) in [0, 1] → (n, sum of heads)."""
        return self.heads(torch.relu(self.dense(self.convolutions(x - 0.5).flatten(1))))
