"""Your own kind of answer: points with weights; one class, and one conversion for each family that takes it.
==========================================================================================================

diorama run -w birds -M birds_cnn -m examples/own_answer.py:Brightest -p single_deletion -p funnybirds -n 8
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.answers import Answer, check_array
from diorama.core.contracts import Explainer
from diorama.protocols.parts.importance import Elements, important_parts, part_importance


@dataclass(frozen=True, eq=False)
class Points(Answer):
    """Points: `places` (n, 2) as row and column, and `weights` (n,)."""

    places: np.ndarray
    weights: np.ndarray

    def check(self, size: tuple[int, int]) -> None:
        """There must be as many weights as places."""
        check_array("places", self.places, [(len(self.weights), 2)])
        check_array("weights", self.weights, [(len(self.places),)])

    def spread(self, size: tuple[int, int]) -> np.ndarray:
        """The weights as a flattened map."""
        weights = np.zeros(size)
        np.add.at(weights, tuple(self.places.T), self.weights)
        return weights.ravel()


@part_importance.register
def _(answer: Points, elements: Elements, published: bool = False) -> np.ndarray:
    """The weight of the points on each part."""
    return elements.total(elements.dilated.sums(answer.spread(elements.shape)))


@important_parts.register
def _(answer: Points, elements: Elements, t: np.ndarray, published: bool) -> np.ndarray:
    """Parts that hold more than a share t of all weight."""
    return part_importance(answer, elements)[None] > t[:, None] * answer.weights.sum()


class Brightest(Explainer):
    """An explanation to be beaten: it says that the model looks at the brightest pixels."""

    targeted = False

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """The hundred brightest pixels of each image."""
        light = images.mean(axis=3).reshape(len(images), -1)
        best = np.argsort(-light, axis=1, kind="stable")[:, :100]
        return [
            Points(np.stack(np.unravel_index(b, images.shape[1:3]), axis=1), values[b])
            for b, values in zip(best, light, strict=True)
        ]
