"""Folds: for each judged case, the other cases that a parameter may be chosen on or a method fitted on."""

from typing import Literal

import numpy as np


def leave_one_out(scores: np.ndarray, direction: Literal["lower", "higher"]) -> np.ndarray:
    """For each case the grid point with the best sum over all *other* cases (Grosse et al. 2009, §4.2).

    `scores` is (cases, points). Ties go to the first point. At least two cases are needed.

    >>> leave_one_out(np.array([[0.0, 9.0], [3.0, 2.0], [3.0, 2.0]]), "lower")
    array([1, 0, 0])
    """
    if len(scores) < 2:
        raise ValueError("leave-one-out needs at least two cases")
    others = scores.sum(axis=0) - scores
    return others.argmin(axis=1) if direction == "lower" else others.argmax(axis=1)


def two_fold(index: int, count: int) -> list[int]:
    """The cases a method is fitted on when `index` is judged: those of the other parity (stable as cases are added).

    >>> two_fold(0, 5), two_fold(3, 5)
    ([1, 3], [0, 2, 4])
    """
    return [i for i in range(count) if i % 2 != index % 2]
