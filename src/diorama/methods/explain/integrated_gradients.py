"""Integrated Gradients: the input minus a baseline, times the mean gradient along the line between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from diorama.adapt.explaining import gradient_module, module_of, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError
from diorama.methods.explain.gradients import Channels, as_answers, gradient
from diorama.methods.explain.passes import pixels

#: How many of the latest calls are remembered for a module; they are forgotten when the module itself is gone.
_KEPT = 6
_RECENT: WeakKeyDictionary[Any, dict[tuple[Any, ...], Any]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class IntegratedGradients(Explainer):
    """(x − b) · ∫ ∂f/∂x along the line from the baseline b, by Gauss–Legendre.

    steps     points on the line; 50 as FunnyBirds
    baseline  b, a constant gray between 0 (black, as FunnyBirds) and 1
    channels  of the map: keep the three (as FunnyBirds), their sum or their max
    absolute  takes the absolute value first

    The settings of other papers have names of their own: `integrated_gradients_abs`, `integrated_gradients_acm`.
    """

    gradients = True
    cite: ClassVar[tuple[str, ...]] = ("sundararajan2017",)

    steps: int = 50
    baseline: float = 0.0
    channels: Channels = "keep"
    absolute: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"integrated_gradients: steps={self.steps}: at least one is needed")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3); `steps` passes of as many images as are given."""
        found = _integral(model, images, targets, self.steps, self.baseline)
        return as_answers(found, self.channels, self.absolute)


def _integral(model: Any, images: np.ndarray, targets: np.ndarray, steps: int, baseline: float) -> Any:
    """The attribution (n, 3, h, w), remembered for a few calls: IG and its absolute value are often asked together."""
    module = module_of(model)
    weights = sum(p._version for p in module.parameters())  # counts changes in place
    key = (pixels(images), tuple(map(int, targets)), steps, baseline, weights)
    known = _RECENT.setdefault(module, {})
    if key not in known:
        while len(known) >= _KEPT:
            known.pop(next(iter(known)))
        known[key] = _computed(model, images, targets, steps, baseline)
    return known[key].clone()


def _computed(model: Any, images: np.ndarray, targets: np.ndarray, steps: int, baseline: float) -> Any:
    x, target = tensors(model, images, targets)
    nodes, weights = np.polynomial.legendre.leggauss(steps)  # on [−1, 1]
    line, mean = x - baseline, 0.0 * x
    for node, weight in zip(nodes, weights, strict=True):
        at = baseline + line * (0.5 + 0.5 * float(node))
        mean += 0.5 * float(weight) * gradient(gradient_module(model), at, target)
    return line * mean
