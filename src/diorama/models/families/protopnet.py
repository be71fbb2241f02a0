"""ProtoPNet (Chen et al. 2019): logits are weighted similarities of the image's patches to learnt prototypes.

A trunk gives a map of features; the least distance of its places to every prototype becomes a similarity; a linear layer
sums similarities. Names of weights are those of the authors' network on a ResNet-50, as FunnyBirds trains it.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from diorama.core.inherent import Prototypes
from diorama.models.families.residual import COUNTS, EXPANSION, WIDTHS, Bottleneck, add_groups, groups

#: log: log((d + 1) / (d + ε)) of the squared distance d, as published. cosine: the cosine of the angle, eight times.
Similarity = Literal["log", "cosine"]
_SHARPNESS = 8.0


class Features(nn.Module):
    """ResNet-50 without its head: (n, 3, h, w) → (n, 2048, h/32, w/32)."""

    strides = (1, 2, 2, 2)

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        self.channels = add_groups(self, Bottleneck, 64, WIDTHS, COUNTS, self.strides, EXPANSION)

    def forward(self, x: Tensor) -> Tensor:
        """The last map."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for group in groups(self):
            x = group(x)
        return x


class ProtoPNet(nn.Module, Prototypes):
    """The trunk, two 1×1 layers with a sigmoid, prototypes (1×1), the least distance, a linear layer without bias.

    classes     number of logits
    trunk       network that gives the map; None: ResNet-50
    channels    channels of the trunk's map (2048)
    each        number of prototypes of every class (10)
    depth       channels of a prototype (128)
    similarity  formula of the similarity (log)
    """

    def __init__(
        self,
        classes: int,
        trunk: nn.Module | None = None,
        channels: int = 2048,
        each: int = 10,
        depth: int = 128,
        similarity: Similarity = "log",
    ) -> None:
        super().__init__()
        self.similarity, self.each = similarity, each
        self.prototype_vectors = nn.Parameter(torch.rand(classes * each, depth, 1, 1))
        self.ones = nn.Parameter(torch.ones(classes * each, depth, 1, 1), requires_grad=False)
        self.features = Features() if trunk is None else trunk
        first, second = nn.Conv2d(channels, depth, 1), nn.Conv2d(depth, depth, 1)
        self.add_on_layers = nn.Sequential(first, nn.ReLU(), second, nn.Sigmoid())
        self.last_layer = nn.Linear(classes * each, classes, bias=False)
        with torch.no_grad():  # as published: 1 for a class's own prototypes, −½ for others
            self.last_layer.weight.copy_(torch.where(self.owner == torch.arange(classes)[:, None], 1.0, -0.5))

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        return self.last_layer(self.similarities(x).amax((2, 3)))

    def similarities(self, x: Tensor) -> Tensor:
        """The similarity of every place to every prototype, (n, prototypes, h, w)."""
        return self.compared(self.patches(x))

    def patches(self, x: Tensor) -> Tensor:
        """The patches that prototypes are compared with, (n, depth, h, w)."""
        return self.add_on_layers(self.features(x))

    def compared(self, patches: Tensor) -> Tensor:
        """The similarities of patches to every prototype."""
        if self.similarity == "cosine":
            towards = functional.normalize(self.prototype_vectors, dim=1)
            return _SHARPNESS * functional.conv2d(functional.normalize(patches, dim=1), towards)
        distance = self.distances(patches)
        return ((distance + 1) / (distance + 1e-4)).log()

    def distances(self, patches: Tensor) -> Tensor:
        """Squared distances |z|² − 2·z·p + |p|², not below 0."""
        squares = functional.conv2d(patches.square(), self.ones)
        length = self.prototype_vectors.square().sum((1, 2, 3))[:, None, None]
        return (squares - 2 * functional.conv2d(patches, self.prototype_vectors) + length).relu()

    @property
    def connections(self) -> Tensor:
        """The weights (classes, prototypes) of similarities in logits."""
        return self.last_layer.weight

    @property
    def owner(self) -> Tensor:
        """The class of every prototype."""
        return torch.arange(len(self.prototype_vectors), device=self.prototype_vectors.device) // self.each
