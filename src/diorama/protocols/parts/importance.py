"""What protocols on parts share: FunnyBirds' interface functions PI, the importance of parts, and P, the important parts.

A new kind of explanation works with every part-based protocol once it registers a conversion with both (Hesse et al. 2023).
Parts and background objects are treated alike and called elements here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np

from diorama.core.answers import Answer, Boxes, Heatmap, Mask, PartScores, Similarity
from diorama.core.bench import Bench
from diorama.core.bounds import Count
from diorama.core.capabilities import Parted
from diorama.core.contracts import Protocol
from diorama.core.errors import AnswerError, Undefined
from diorama.core.scene import Scene

#: The ids of an element in a part map: one per sub-part (two eyes, two feet, two wings).
Ids = tuple[int, ...]


class OnParts(Protocol):
    """A protocol on objects whose parts can be removed."""

    __slots__ = ()

    cite = ("hesse2023",)
    track = "explain"
    model = True
    needs = ("label", "parts", Parted)
    doses = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
    dose_name = "share of random importance blended into the true one"
    example = "diorama run -w birds -M birds_cnn -m grad_cam -p {}"


@dataclass(frozen=True, slots=True)
class OnDilatedParts(OnParts):
    """A protocol that sums attributions over part masks after a max filter.

    dilation  width of the max filter on part masks in pixels at 256 (published 5); at other sizes the nearest odd width
              in proportion (3 at 128)
    """

    dilation: Count = field(default=5, kw_only=True)

    def elements(self, bench: Bench, scene: Scene, objects: Sequence[int] = ()) -> "Elements":
        """The parts of a scene, then background objects by their index; computed once for all cells."""
        world, frame = bench.world.object, bench.frame(scene)
        ids = [world.part_ids[name] for name in world.part_names]
        ids += [(world.background_id + i,) for i in objects]
        width = dilation_at(frame.image.shape[0], self.dilation)
        key = ("elements", width, len(ids), scene.key)
        return bench.keep("unit", key, lambda: elements(frame.truth["parts"], ids, width))

    def dilated(self, size: int | None) -> str:
        """The entry of `settings` about the width of the filter in images of a size."""
        own = f"{dilation_at(size, self.dilation)} pixels at {size}, " if size else ""
        return f"{own}{self.dilation} pixels at 256"


def dilation_at(size: int, at_256: int) -> int:
    """The width of the max filter at another image size: the odd number nearest to at_256 · size / 256.

    >>> [dilation_at(size, 5) for size in (256, 128, 64, 512)]
    [5, 3, 1, 9]
    """
    return max(1, 2 * round((at_256 * size / 256 - 1) / 2) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class Pixels:
    """Pixels of several regions, concatenated: flat indices, and the region of each."""

    index: np.ndarray
    region: np.ndarray
    count: int

    @classmethod
    def of(cls, masks: Sequence[np.ndarray]) -> "Pixels":
        """The pixels of some masks."""
        indices = [np.flatnonzero(mask) for mask in masks]
        return cls(np.concatenate(indices), np.repeat(np.arange(len(indices)), [len(f) for f in indices]), len(indices))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of flat values over each region, float64."""
        return np.bincount(self.region, values[self.index], self.count)


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """The elements of a frame by sub-part: a sub-part's own pixels, those after a max filter, and the element it belongs to.

    Attributions are summed over dilated masks, because the outline of a part is not in its mask; `covered` are the pixels
    inside any dilated mask.
    """

    shape: tuple[int, int]
    own: Pixels
    dilated: Pixels
    element: np.ndarray
    count: int
    covered: np.ndarray

    @property
    def area(self) -> np.ndarray:
        """Own pixels of each sub-part."""
        return np.bincount(self.own.region, minlength=self.own.count)

    @property
    def visible(self) -> np.ndarray:
        """Which elements have a pixel at all."""
        return self.total(self.area) > 0

    def total(self, of_sub_parts: np.ndarray) -> np.ndarray:
        """Sums over the sub-parts of each element."""
        return np.bincount(self.element, of_sub_parts, self.count)


def elements(parts: np.ndarray, ids: Sequence[Ids], width: int) -> Elements:
    """The elements of a part map (h, w), each named by its ids, with a max filter of `width` pixels."""
    import cv2

    parts, kernel = np.asarray(parts), np.ones((width, width), np.uint8)
    own = [parts == i for of_element in ids for i in of_element]
    dilated = Pixels.of([cv2.dilate(mask.view(np.uint8), kernel) for mask in own])
    element = np.repeat(np.arange(len(ids)), [len(of_element) for of_element in ids])
    return Elements(parts.shape[:2], Pixels.of(own), dilated, element, len(ids), np.unique(dilated.index))


@singledispatch
def part_importance(answer: Answer, elements: Elements, published: bool = False) -> np.ndarray:
    """PI of every element, (elements,)."""
    raise AnswerError(f"no part importance is defined for {type(answer).__name__}")


@part_importance.register
def _(answer: Heatmap, elements: Elements, published: bool = False) -> np.ndarray:
    """Σ over sub-parts, pixels and channels of the attribution inside the dilated mask; overlaps count more than once."""
    return elements.total(elements.dilated.sums(_flat(answer)))


@part_importance.register
def _(answer: Mask, elements: Elements, published: bool = False) -> np.ndarray:
    """A binary map does not say how important a part is."""
    raise Undefined("a binary map gives no part importance")


@part_importance.register
def _(answer: Boxes, elements: Elements, published: bool = False) -> np.ndarray:
    """Σ over boxes of weight · pixels of the element inside the box; no dilation. Published boxes end one pixel early."""
    boxes = zip(answer.corners, answer.weights, strict=True)
    heat = sum((w * _box(corner, elements.shape, published) for corner, w in boxes), np.zeros(elements.shape))
    return elements.total(elements.own.sums(heat.ravel()))


@part_importance.register
def _(answer: Similarity, elements: Elements, published: bool = False) -> np.ndarray:
    """PI of its map."""
    return part_importance(Heatmap(answer.values, signed=True), elements)


@part_importance.register
def _(answer: PartScores, elements: Elements, published: bool = False) -> np.ndarray:
    """The scores of the parts; background objects, which come after them, have 0."""
    return np.concatenate([answer.values, np.zeros(elements.count - len(answer.values))])


@singledispatch
def important_parts(answer: Answer, elements: Elements, t: np.ndarray, published: bool) -> np.ndarray:
    """P(t): which elements are important at every threshold, (thresholds, elements) of bool."""
    raise AnswerError(f"no important parts are defined for {type(answer).__name__}")


@important_parts.register
def _(answer: Heatmap, elements: Elements, t: np.ndarray, published: bool) -> np.ndarray:
    """PI > t · total, with the signed sum over image and channels (published) or the positive evidence (corrected).

    Positive evidence is Σ max(PI, 0) over the elements and the rest of the image. The signed sum can be negative, which
    makes every part important, even hidden ones; a sum over positive *pixels* would be dominated by noise that cancels
    within every part and does not affect PI (Input × Gradient then has no important parts at all).
    """
    heat = _flat(answer)
    importance = part_importance(answer, elements)
    rest = heat.sum() - heat[elements.covered].sum()
    total = heat.sum() if published else np.maximum(importance, 0).sum() + max(rest, 0.0)
    above = importance[None] > t[:, None] * total
    return above if published else above & elements.visible


@important_parts.register
def _(answer: Mask, elements: Elements, t: np.ndarray, published: bool) -> np.ndarray:
    """The elements with a sub-part of which more than a share t of the pixels is marked; no dilation."""
    return _covered(elements, elements.own.sums((answer.values != 0).ravel().astype(float)), t)


@important_parts.register
def _(answer: Boxes, elements: Elements, t: np.ndarray, published: bool) -> np.ndarray:
    """The elements with a sub-part of which the boxes cover more than a share t; published counts three channels: t/3."""
    return _covered(elements, (3 if published else 1) * elements.own.sums(_union(answer, elements, published)), t)


@important_parts.register
def _(answer: Similarity, elements: Elements, t: np.ndarray, published: bool) -> np.ndarray:
    """The elements whose dilated pixels lie inside the boxes by more than a share t; published: by their last sub-part.

    The released code overwrites the share of every sub-part by that of the next.
    """
    inside = elements.dilated.sums(_union(answer, elements, False))
    area = np.bincount(elements.dilated.region, minlength=elements.dilated.count)
    if published:
        last = np.searchsorted(elements.element, np.arange(elements.count), side="right") - 1
        return inside[last][None] > t[:, None] * area[last]
    return elements.total(inside)[None] > t[:, None] * elements.total(area)


@important_parts.register
def _(answer: PartScores, elements: Elements, t: np.ndarray, published: bool) -> np.ndarray:
    """The elements whose score is above t times the sum: the signed one (published) or that of positive scores."""
    total = answer.values.sum() if published else np.maximum(answer.values, 0).sum()
    return part_importance(answer, elements)[None] > t[:, None] * total


def _covered(elements: Elements, marked: np.ndarray, t: np.ndarray) -> np.ndarray:
    first = np.searchsorted(elements.element, np.arange(elements.count))  # every element has a sub-part
    return np.logical_or.reduceat(marked[None] > t[:, None] * elements.area, first, axis=1)


def _flat(answer: Heatmap) -> np.ndarray:
    values = answer.values
    return (values.sum(axis=2, dtype=np.float64) if values.ndim == 3 else values.astype(np.float64)).ravel()


def _union(answer: Boxes | Similarity, elements: Elements, published: bool) -> np.ndarray:
    """1.0 for the pixels inside any box, flat."""
    masks = [_box(corner, elements.shape, published) for corner in answer.corners]
    return np.logical_or.reduce([np.zeros(elements.shape, bool), *masks]).ravel().astype(float)


def _box(corner: np.ndarray, shape: tuple[int, int], published: bool) -> np.ndarray:
    x0, y0, x1, y1 = (int(v) for v in corner)
    mask = np.zeros(shape, bool)
    mask[max(y0, 0) : max(y1 - published, 0), max(x0, 0) : max(x1 - published, 0)] = True
    return mask


def says_nothing(answer: Answer) -> bool:
    """Whether an answer is zero everywhere."""
    if isinstance(answer, Boxes):
        return not np.any(answer.weights)
    return isinstance(answer, Heatmap | Mask | PartScores | Similarity) and not np.any(answer.values)


def heatmap_with(importance: np.ndarray, elements: Elements) -> Heatmap:
    """A heat map, constant on each element, whose PI is the given importance of every visible element.

    Dilated masks overlap their neighbours, so the constants solve A v = importance with A[p, q] the number of pixels of
    element q inside the dilated sub-parts of p.
    """
    owner = np.full(int(np.prod(elements.shape)), elements.count)
    owner[elements.own.index] = elements.element[elements.own.region]
    pairs = elements.element[elements.dilated.region] * (elements.count + 1) + owner[elements.dilated.index]
    overlap = np.bincount(pairs, minlength=elements.count * (elements.count + 1)).reshape(elements.count, -1)[:, :-1]
    visible = elements.visible
    values, shared = np.zeros(elements.count + 1), overlap[np.ix_(visible, visible)].astype(float)
    values[:-1][visible] = np.linalg.lstsq(shared, importance[visible], rcond=None)[0]
    return Heatmap(values[owner].reshape(elements.shape), signed=True)


def blended(true: np.ndarray, noise: np.ndarray, dose: float) -> np.ndarray:
    """True and random importances, both of length one, blended by a dose.

    >>> blended(np.array([3.0, 4.0]), np.array([0.0, 2.0]), 0.5).tolist()
    [0.3, 0.9]
    """
    lengths = (max(float(np.linalg.norm(v)), 1e-12) for v in (true, noise))
    return (1 - dose) * true / next(lengths) + dose * noise / next(lengths)
