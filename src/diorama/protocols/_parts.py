"""FunnyBirds' interface function PI: how important each part is by an answer (Hesse et al. 2023, §4.5 of its code).

A new kind of explanation joins every part-based protocol by registering one conversion with `part_importance`.
"""

from collections.abc import Sequence
from functools import lru_cache, singledispatch

import numpy as np

from diorama.core.answers import Answer, Heatmap, check_array
from diorama.core.errors import AnswerError
from diorama.core.frame import Frame

#: The masks of a part: one per sub-part (two eyes, two feet, two wings).
SubParts = Sequence[np.ndarray]


def dilation_at(size: int, at_256: int) -> int:
    """The width of the max filter at another image size: the odd number nearest to at_256 · size / 256.

    >>> [dilation_at(size, 5) for size in (256, 128, 64, 512)]
    [5, 3, 1, 9]
    """
    return max(1, 2 * round((at_256 * size / 256 - 1) / 2) + 1)


@lru_cache(maxsize=64)
def dilated_masks(frame: Frame, ids: tuple[tuple[int, ...], ...], width: int) -> list[list[np.ndarray]]:
    """For each part its sub-parts' masks after a max filter of `width` pixels: the outline belongs to the part too."""
    import cv2

    parts, kernel = np.asarray(frame.truth["parts"]), np.ones((width, width), np.uint8)
    return [[cv2.dilate((parts == i).astype(np.uint8), kernel).astype(bool) for i in of_part] for of_part in ids]


@singledispatch
def part_importance(answer: Answer, masks: Sequence[SubParts]) -> np.ndarray:
    """PI of every part, (parts,)."""
    raise AnswerError(f"no part importance is defined for {type(answer).__name__}")


@part_importance.register
def _(answer: Heatmap, masks: Sequence[SubParts]) -> np.ndarray:
    """Σ over sub-parts, pixels and channels of the attribution inside the dilated mask; overlaps count more than once."""
    check_array("heat map", answer.values, [])
    heat = answer.values.astype(np.float64)
    heat = heat.sum(axis=2) if heat.ndim == 3 else heat
    return np.array([sum(float(heat[mask].sum()) for mask in of_part) for of_part in masks])


def heatmap_with(importance: np.ndarray, frame: Frame, ids: tuple[tuple[int, ...], ...], width: int) -> Heatmap:
    """A heat map, constant on each part, whose PI is the given importance (least squares where parts are hidden).

    Dilated masks overlap their neighbours, so the constants solve A v = importance with A[p, q] the number of pixels of
    part q inside the dilated sub-parts of p.
    """
    parts = np.asarray(frame.truth["parts"])
    own = [np.isin(parts, of_part) for of_part in ids]
    overlap = np.array(
        [[sum(int((m & o).sum()) for m in of_p) for o in own] for of_p in dilated_masks(frame, ids, width)]
    )
    values = np.linalg.lstsq(overlap.astype(np.float64), importance, rcond=None)[0]
    return Heatmap(sum(v * o for v, o in zip(values, own, strict=True)), signed=True)
