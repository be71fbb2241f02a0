"""Exact Shapley values of the parts, from scenes with every subset of the parts: a reference for other explanations."""

from dataclasses import dataclass
from itertools import combinations
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.core.answers import Answer, PartScores
from diorama.core.capabilities import Parted
from diorama.core.contracts import Control, Explainer
from diorama.core.errors import Undefined

if TYPE_CHECKING:
    from diorama.core.bench import Bench

#: More parts than this have too many subsets.
_MOST = 8


@dataclass(frozen=True, slots=True)
class PartShapley(Control):
    """Σ over subsets of the other parts of |S|!(n−|S|−1)!/n! · (f(S ∪ p) − f(S)), f the target's logit (Shapley 1953).

    Unlike an explainer it gets all 2ⁿ scenes that lack some of the parts; rows say so. It scores parts, not pixels, so that
    background objects have no score.
    """

    example = Explainer.example
    track = "explain"
    given_truth = True
    cite = ("shapley1953", "hesse2023")

    def answers(self, bench: "Bench", scene: Any, target: int | None) -> list[Answer]:
        """The values of one scene and class."""
        world = bench.world.object
        if not isinstance(world, Parted) or len(world.part_names) > _MOST or target is None:
            raise Undefined(f"part_shapley needs objects of at most {_MOST} parts that can be taken away, and a class")
        names, scenes = world.part_names, []
        for subset in range(2 ** len(names)):
            removed = {part: None for i, part in enumerate(names) if not subset >> i & 1}
            scenes.append(world.do(scene, **removed) if removed else scene)
        return [PartScores(shapley(bench.logits(scenes)[:, target]))]


def shapley(values: np.ndarray) -> np.ndarray:
    """The Shapley values (n,) of a game given by the value of every subset, numbered by its bits, (2ⁿ,).

    >>> shapley(np.array([0.0, 1.0, 2.0, 5.0])).tolist()
    [2.0, 3.0]
    """
    n = len(values).bit_length() - 1
    shares = np.zeros(n)
    for p in range(n):
        others = [i for i in range(n) if i != p]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for chosen in combinations(others, size):
                subset = sum(1 << i for i in chosen)
                shares[p] += weight * (values[subset | 1 << p] - values[subset])
    return shares
