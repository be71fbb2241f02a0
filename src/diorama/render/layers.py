"""Layers of a toon image: any subset of them composites, by depth, to the image that would have been rendered.

Every sample has a list of the layers along its ray, nearest first (at equal depth the earlier instance first, as in a depth
buffer). Leaving layers out changes only the pixels where one of them was in front: there each sample takes the first entry
that is kept, and the bytes are averaged again. The result is byte for byte that of rendering again, anti-aliased or not,
and only the pixels that change are computed.
"""

# mypy: disable-error-code="no-untyped-def"
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diorama.render.jit import kernel

Picture = dict[str, NDArray[np.generic]]
Entries = tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int32], NDArray[np.uint8]]


@dataclass(frozen=True, slots=True, eq=False)
class ToonLayers:
    """A toon image from which layers can be left out; `names` are its layers."""

    names: tuple[str, ...]
    full: Picture
    _lists: tuple[NDArray, ...]  # start of every sample's list; owner, depth, colour of the entries
    _front: tuple[NDArray[np.int64], NDArray[np.int32]]  # for every layer, the pixels where it is in front
    _labels: tuple[NDArray[np.int32], ...]  # layer, object and part of every instance
    _background: NDArray[np.uint8]

    def composite(self, drop: Iterable[str] = ()) -> Picture:
        """The image, ids and depth without the dropped layers: the same arrays `toon_image` would return."""
        dropped = self._indices(drop)
        keep = np.ones(len(self.names), np.bool_)
        keep[dropped] = False
        picture = {name: layer.copy() for name, layer in self.full.items()}
        out = (picture["image"], picture["object"], picture["part"], picture["depth"])
        _repaint(dropped, keep, self._lists, self._front, self._labels, self._background, out)
        return picture

    def _indices(self, drop: Iterable[str]) -> NDArray[np.int64]:
        wanted = [drop] if isinstance(drop, str) else list(drop)
        unknown = [name for name in wanted if name not in self.names]
        if unknown:
            raise ValueError(f"layers: no layer {unknown[0]!r}; there are {', '.join(map(repr, self.names))}")
        return np.array([self.names.index(name) for name in wanted], np.int64)


def assemble(
    names: Sequence[str],
    entries: Entries,
    labels: tuple[NDArray[np.int32], ...],
    background: NDArray[np.uint8],
    shape: tuple[int, int, int],
) -> ToonLayers:
    """Sort the entries of all layers into lists and paint the full picture; shape is (height, width, planes)."""
    height, width, planes = shape
    where, depth, owner, colour = entries
    start, order = _sort(where, depth, owner, height * width * planes)
    lists = (start, owner[order], depth[order], colour[order])
    front = _in_front(start, lists[1], labels[0], len(names), planes)
    full: Picture = {
        "image": np.empty((height, width, 3), np.uint8),
        "object": np.empty((height, width), np.int32),
        "part": np.empty((height, width), np.int32),
        "depth": np.empty((height, width), np.float32),
    }
    everything = (np.array([0, height * width], np.int64), np.arange(height * width, dtype=np.int32))
    out = (full["image"], full["object"], full["part"], full["depth"])
    keep = np.ones(len(names), np.bool_)
    _repaint(np.zeros(1, np.int64), keep, lists, everything, labels, background, out)
    return ToonLayers(tuple(names), full, lists, front, labels, background)


@kernel
def _sort(where, depth, owner, slots):
    """Where every sample's list starts, and the entries in list order: by sample, then depth, then owner."""
    start = np.zeros(slots + 1, np.int32)
    for i in range(len(where)):
        start[where[i] + 1] += 1
    for i in range(slots):
        start[i + 1] += start[i]
    order = np.empty(len(where), np.int32)
    filled = start[:-1].copy()
    for i in range(len(where)):
        slot = where[i]
        j = filled[slot]
        while j > start[slot]:
            other = order[j - 1]
            if depth[other] < depth[i] or (depth[other] == depth[i] and owner[other] < owner[i]):
                break
            order[j] = other
            j -= 1
        order[j] = i
        filled[slot] += 1
    return start, order


@kernel
def _in_front(start, owner, layer_of, layers, planes):
    """For each layer, the pixels in which it comes first in the list of some sample."""
    pixels = (len(start) - 1) // planes
    for counting in (True, False):
        if counting:
            begin = np.zeros(layers + 1, np.int64)
        else:
            begin[1:] = np.cumsum(begin[1:])
            filled = begin[:-1].copy()
            pixel_of = np.empty(begin[-1], np.int32)
        for pixel in range(pixels):
            for s in range(planes):
                slot = pixel * planes + s
                if start[slot] == start[slot + 1]:
                    continue
                layer = layer_of[owner[start[slot]]]
                seen = False
                for before in range(pixel * planes, slot):
                    if start[before] < start[before + 1] and layer_of[owner[start[before]]] == layer:
                        seen = True
                        break
                if seen:
                    continue
                if counting:
                    begin[layer + 1] += 1
                else:
                    pixel_of[filled[layer]] = pixel
                    filled[layer] += 1
    return begin, pixel_of


@kernel
def _repaint(dropped, keep, lists, front, labels, background, out):
    """Repaint the pixels where a dropped layer was in front, with the first kept entry of every sample."""
    start, owner, depth, colour = lists
    begin, pixel_of = front
    layer_of, object_of, part_of = labels
    image, objects, parts, depths = out
    width = image.shape[1]
    planes = (len(start) - 1) // (image.shape[0] * width)
    samples = planes - 1
    for layer in dropped:
        for i in range(begin[layer], begin[layer + 1]):
            pixel = pixel_of[i]
            y, x = pixel // width, pixel % width
            red, green, blue = 0, 0, 0
            for s in range(planes):
                slot = pixel * planes + s
                j, end = start[slot], start[slot + 1]
                while j < end and not keep[layer_of[owner[j]]]:
                    j += 1
                if s == samples:
                    objects[y, x] = object_of[owner[j]] if j < end else -1
                    parts[y, x] = part_of[owner[j]] if j < end else -1
                    depths[y, x] = depth[j] if j < end else np.inf
                else:
                    red += colour[j, 0] if j < end else background[0]
                    green += colour[j, 1] if j < end else background[1]
                    blue += colour[j, 2] if j < end else background[2]
            image[y, x, 0] = (2 * red + samples) // (2 * samples)
            image[y, x, 1] = (2 * green + samples) // (2 * samples)
            image[y, x, 2] = (2 * blue + samples) // (2 * samples)
