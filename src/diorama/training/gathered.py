"""Images of any world for learners of codes: resized to a square of 64 pixels, kept once per world, used by all trainings.

They lie in the cache folder ($DIORAMA_CACHE, default ~/.cache/diorama) as uint8, with the level of every factor and the box
of the object where the world knows them, under a name made of the world's key: another source, parameter or data file is
another folder. They may be deleted at any time and are rendered again. The scenes are those of `diorama.data`, which
`diorama run` never judges on unless the world is a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from diorama.core.capabilities import Levelled
from diorama.core.catalogue import Component
from diorama.core.contracts import World
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.progress import Progress
from diorama.core.scene import Scene, digest, rng
from diorama.data.views import ENDS, Split, WorldView
from diorama.io.files import cache_folder
from diorama.io.images import quantise, resize
from diorama.io.locks import locked
from diorama.training.blocks import filled

#: The side of the images that are kept; smaller ones are computed from them.
SIDE = 64
#: Frames that decide whether a world's images are gray or coloured.
LOOKED_AT = 20


@dataclass(frozen=True)
class Gathering:
    """Which images to keep: the first `count` of a world's split."""

    world: World
    name: str
    split: Split
    count: int
    seed: int

    @property
    def what(self) -> str:
        """What the rows are, for the progress line."""
        return f"{self.split} images of {self.name}"

    @cached_property
    def scenes(self) -> list[Scene]:
        """The scenes of the split."""
        return WorldView(self.world, self.name).examples(self.count, self.split, self.seed)

    def identity(self) -> dict[str, Any]:
        """The description that is written beside the rows: rows with another one are not reused."""
        return {"split": self.split, "count": self.count, "seed": self.seed, "side": SIDE}

    @cached_property
    def channels(self) -> int:
        """1 where the first images are gray, else 3."""
        frames = self.world.render(self.scenes[:LOOKED_AT])
        return 1 if all((f.image[..., :1] == f.image).all() for f in frames) else 3

    @property
    def levels(self) -> Mapping[str, Any]:
        """The levels of the world's factors; empty where it has none."""
        return self.world.levels if isinstance(self.world, Levelled) else {}

    def arrays(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Type and shape of a row of every array."""
        images = (np.uint8, (SIDE, SIDE, self.channels))
        return {"images": images, "factors": (np.int16, (len(self.levels),)), "boxes": (np.float32, (4,))}

    def row(self, index: int) -> Mapping[str, Any]:
        """One image with its factors and its box."""
        frame = self.world.render([self.scenes[index]])[0]
        image = resize(frame.srgb(), SIDE, SIDE)
        channels = image.mean(axis=2, keepdims=True) if self.channels == 1 else image
        return {"images": quantise(channels, 8), "factors": self._factors(frame), "boxes": box_of(frame)}

    def _factors(self, frame: Frame) -> list[int]:
        factors = frame.truth["factors"] if self.levels else {}
        return [list(values).index(factors[name]) for name, values in self.levels.items()]


def box_of(frame: Frame) -> tuple[float, float, float, float]:
    """The object's box x0, y0, x1, y1 as shares of the image's width and height; all 0 where there is none."""
    boxes = frame.truth.get("boxes") or {}
    box = boxes.get("object") or boxes.get("loose") if isinstance(boxes, dict) else None
    if box is None:
        return (0.0, 0.0, 0.0, 0.0)
    high, wide = frame.image.shape[:2]
    x0, y0, x1, y1 = (float(v) for v in box)
    return tuple(float(np.clip(v, 0, 1)) for v in (x0 / wide, y0 / high, x1 / wide, y1 / high))  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Images uint8 (n, 64, 64, channels), the level of every factor (n, F), boxes (n, 4) as shares of the side.

    `levels` are how many values each factor has, by name; none where the world has no levels.
    """

    images: np.ndarray
    factors: np.ndarray
    boxes: np.ndarray
    levels: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.images)

    @property
    def channels(self) -> int:
        """1 for gray images, 3 for coloured ones."""
        return int(self.images.shape[3])

    @property
    def boxed(self) -> bool:
        """Whether the world knows the bounding box of its object."""
        return bool((self.boxes[:64, 2] > 0).any())

    @property
    def targets(self) -> np.ndarray:
        """Level / number of levels of each factor (n, F), as disentanglement_lib scales labels: 0 to (v − 1)/v."""
        return (np.asarray(self.factors) / np.array(list(self.levels.values()) or [1])).astype(np.float32)


def gathered(world: Component, split: Split, count: int, seed: int, progress: Progress, processes: int = 1) -> Gathered:
    """The images of a world; those that the cache does not have yet are rendered."""
    order = Gathering(world.object, world.label, split, count, seed)
    folder = cache_folder() / "images" / digest([world.key, order.identity()])
    with locked(folder / "lock", wait=True):  # two trainings that start together render once
        arrays = filled(order, folder, progress, processes)
    return Gathered(**arrays, levels={name: len(values) for name, values in order.levels.items()})


def available(world: Component, split: Split) -> int | None:
    """How many images a split of a world has; None: any number."""
    length = world.object.length
    if length is None:
        return None
    low, high = (round(share * length) for share in ENDS[split])
    return high - low


def in_passes(count: int, batch: int, first: int, seed: int, purpose: str) -> Iterator[np.ndarray]:
    """Batches of image indices without end, from step `first` on: each pass over the images has a new order.

    A batch depends on the step's number alone, so a training that was interrupted goes on with the same images.

    >>> seen = [i for step, _ in zip(in_passes(5, 2, 0, 0, "x"), range(5)) for i in step.tolist()]
    >>> sorted(seen[:5]), sorted(seen[5:])
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """
    if count < 1:
        raise InputError("there are no images to learn from")
    known: dict[int, np.ndarray] = {}
    step = first
    while True:
        places = step * batch + np.arange(batch)
        passes = {int(p) for p in places // count}
        known = {p: known[p] if p in known else rng(seed, purpose, p).permutation(count) for p in passes}
        yield np.array([known[int(p)][i] for p, i in zip(places // count, places % count, strict=True)])
        step += 1
