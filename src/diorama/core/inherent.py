"""Networks that explain themselves: what a method may ask of the torch module behind a model.

A family of networks (`models/families`) derives from one of these classes; a method finds it with `inside`, and refuses
other networks before the run. So methods do not depend on families, and outsiders' networks can derive from the classes too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

Kind = TypeVar("Kind")


class PatchEvidence(ABC):
    """A network whose logits are the mean of logits of small patches (BagNet)."""

    #: The side of a patch in pixels.
    field: int

    @abstractmethod
    def dense(self, x: Tensor, classes: Tensor) -> Tensor:
        """Logits (n, k, h − field + 1, w − field + 1) of k classes for the patch at every pixel of images (n, 3, h, w)."""


class LinearMap(ABC):
    """A network that is w(x)·x for a matrix w that follows the input (B-cos)."""

    @abstractmethod
    def contributions(self, x: Tensor, target: Tensor) -> Tensor:
        """w(x)·x of the target, value by value: (n, c, h, w), whose sum is the logit above its constant."""


class Homogeneous(ABC):  # noqa: B024 - a promise without a method
    """A network with f(αx) = α·f(x) for α ≥ 0 (X-DNN): no bias, no centring."""


class Prototypes(ABC):
    """A network that compares patches with learnt prototypes and adds up the similarities (ProtoPNet)."""

    #: The image patch behind each prototype, (prototypes, h, w, 3) in [0, 1]; None where it is not known.
    pictures: np.ndarray | None = None

    @abstractmethod
    def similarities(self, x: Tensor) -> Tensor:
        """The similarity of each position of the last feature map to each prototype, (n, prototypes, h, w)."""

    @property
    @abstractmethod
    def connections(self) -> Tensor:
        """The weight (classes, prototypes) of each prototype's largest similarity in each logit."""

    @property
    @abstractmethod
    def owner(self) -> Tensor:
        """The class (prototypes,) that each prototype belongs to."""


def inside(module: nn.Module | None, kind: Callable[..., Kind]) -> Kind | None:
    """The first submodule of a class, or None."""
    parts: Any = () if module is None else module.modules()
    return next((part for part in parts if isinstance(part, kind)), None)  # type: ignore[arg-type]


def entering(module: nn.Module, part: Any, x: Tensor) -> Tensor:
    """The input that a submodule gets when the module is given `x`, e.g. the image after a wrapper's normalisation."""
    import torch

    seen: list[Tensor] = []
    with torch.no_grad(), part.register_forward_pre_hook(lambda _, given: seen.append(given[0])):
        module(x)
    return seen[0]
