"""Layers that help training and fold away afterwards, into plain ones that compute the same."""

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from diorama.training.losses import multi_target_loss


class Foldable(nn.Module):
    """A layer for training that a plain one replaces afterwards."""

    @abstractmethod
    def folded(self) -> nn.Module:
        """The plain layer."""


def folded(net: nn.Module) -> nn.Module:
    """A copy of a network with every foldable layer folded."""
    net = copy.deepcopy(net)
    for name, part in list(net.named_modules()):
        if isinstance(part, Foldable):
            parent, _, own = name.rpartition(".")
            setattr(net.get_submodule(parent), own, part.folded())
    return net


class PartHead(Foldable):
    """Class logit = Σ over parts of the score of the class's variant + a free linear layer that starts at zero.

    The score of a variant is learnt from every class that has it. In training the scores come out beside the logits, for a
    loss of their own. Afterwards one linear layer replaces all this.
    """

    def __init__(self, width: int, variants: Tensor, bias: bool) -> None:
        super().__init__()
        self.parts, self.free = nn.Linear(width, variants.shape[1], bias), nn.Linear(width, len(variants), bias)
        nn.init.zeros_(self.free.weight)
        if bias:
            nn.init.zeros_(self.free.bias)
        self.register_buffer("variants", variants, persistent=False)
        self.variants: Tensor

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes); in training followed by the scores."""
        scores = self.parts(x)
        logits = functional.linear(scores, self.variants) + self.free(x)
        return torch.cat([logits, scores], 1) if self.training else logits

    def folded(self) -> nn.Linear:
        """The linear layer that gives the logits."""
        plain = nn.Linear(self.free.in_features, self.free.out_features, self.free.bias is not None)
        with torch.no_grad():
            plain.weight.copy_(self.variants @ self.parts.weight + self.free.weight)
            if self.free.bias is not None:
                plain.bias.copy_(self.variants @ self.parts.bias + self.free.bias)
        return plain


def variants_of(classes: Sequence[Mapping[str, int]]) -> tuple[Tensor, list[int]]:
    """The variants that every class has, (classes, variants) of 0 and 1, and how many variants each part has.

    >>> table, counts = variants_of([{"beak": 0, "eye": 1}, {"beak": 2, "eye": 0}])
    >>> table.int().tolist(), counts
    ([[1, 0, 0, 0, 1], [0, 0, 1, 1, 0]], [3, 2])
    """
    counts = [max(c[part] for c in classes) + 1 for part in classes[0]]
    parts = zip(classes[0], counts, strict=True)
    columns = [functional.one_hot(torch.tensor([c[part] for c in classes]), count) for part, count in parts]
    return torch.cat(columns, 1).float(), counts


def with_part_head(net: nn.Module, variants: Tensor) -> nn.Module:
    """The network with its last linear layer replaced by a `PartHead`."""
    name = [n for n, part in net.named_modules() if isinstance(part, nn.Linear)][-1]
    parent, _, own = name.rpartition(".")
    last = net.get_submodule(name)
    assert isinstance(last, nn.Linear)
    setattr(net.get_submodule(parent), own, PartHead(last.in_features, variants, last.bias is not None))
    return net


class PartLoss:
    """The multi-target loss of the logits, and for every part the cross-entropy of its variant's scores.

    The target of a part is the mean over all classes that a bird is compatible with: one variant where the part can be seen,
    several where it was taken away.
    """

    def __init__(self, variants: Tensor, counts: Sequence[int], weight: float = 1.0) -> None:
        self.variants, self.counts, self.weight = variants, list(counts), weight

    def __call__(self, output: Tensor, targets: Tensor) -> Tensor:
        """The loss of the training outputs of a network with a `PartHead`."""
        logits, scores = output.split([targets.shape[1], sum(self.counts)], 1)
        wanted = (targets / targets.sum(1, keepdim=True)) @ self.variants
        both = zip(scores.split(self.counts, 1), wanted.split(self.counts, 1), strict=True)
        parts = sum(-(q * z.log_softmax(1)).sum(1).mean() for z, q in both)
        return multi_target_loss(logits, targets) + self.weight * parts


class StandardisedConv(Foldable):
    """A convolution without bias whose weights have mean 0 and a learnt size (Brock et al. 2021); it needs no batch norm."""

    def __init__(self, inside: int, outside: int, kernel: int, stride: int = 1, padding: int = 0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inside, outside, kernel, stride, padding, bias=False)
        self.gain = nn.Parameter(torch.ones(outside))

    @property
    def weight(self) -> Tensor:
        """The standardised weights."""
        flat = self.conv.weight.flatten(1)
        variance, mean = torch.var_mean(flat, 1, keepdim=True)
        size = self.gain[:, None] * (2 / flat.shape[1]) ** 0.5  # keeps the variance of activations behind a ReLU
        return ((flat - mean) * (variance + 1e-6).rsqrt() * size).view_as(self.conv.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) → (n, c', h', w')."""
        return functional.conv2d(x, self.weight, None, self.conv.stride, self.conv.padding)

    def folded(self) -> nn.Conv2d:
        """The plain convolution."""
        plain = copy.deepcopy(self.conv)
        with torch.no_grad():
            plain.weight.copy_(self.weight)
        return plain


def quiet_branches(net: nn.Module, share: float = 0.2) -> nn.Module:
    """Scale every residual branch of an X-DNN down to a share at the start, so that sums do not grow with depth."""
    for name, part in net.named_modules():
        if name.endswith("conv3") and isinstance(part, StandardisedConv):
            nn.init.constant_(part.gain, share)
    return net
