"""Mosaics of labelled images: some cells show the target class, the others do not; any cell can be swapped.

Arias-Duart et al.: Focus (2022) and the Attribution Confusion Matrix (2023). Evidence for the target class lies in the
target's cells, so positive evidence elsewhere is known to be wrong.

    mosaic(source=photos/)                                  a folder of class folders, or cat.1.jpg, dog.1.jpg …
    mosaic(source=photos/, train=100, per_class=100)        only photos that no head was fitted on
    mosaic(source="photos(source=MAMe_dataset.csv, subset=val)", per_class=100)
    mosaic(source=birds(size=64))                           another world
    mosaic(source=mit670.csv)                               finished mosaics with their table, as the authors publish them

Images are drawn as in the paper: for the target's cells the list of the class is repeated as often as needed and shuffled;
for the others every other class gives the same number of images. Two things differ: no image appears twice in one mosaic
(the released code allows it), and images of other classes that are too small are repeated as well (the released code fails;
`reuse=False` makes that an error here). Pixels are exact unless `recompress=True` passes every mosaic through a JPEG of
quality 75, like the released ones; a swap then also changes the colour of pixels next to the cell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diorama.core.capabilities import Labelled, Listed
from diorama.core.catalogue import Component
from diorama.core.contracts import World
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.io.images import quantise
from diorama.io.photos import fitted
from diorama.worlds.mosaic.files import Finished, is_finished, jpeg, unjpeg
from diorama.worlds.recorded.photos import Photos

#: Scenes of every class that are drawn from a staged world.
POOL = 24


@dataclass(frozen=True)
class Mosaic(Listed, Labelled):
    """`grid`×`grid` cells, some of the target class.

    source      source of the images: a folder, a table, another world, or finished mosaics (see the text)
    grid        number of cells in a row and in a column; the papers have 2
    target      number of cells that show the target class; the papers have 2 of 4
    cell        side of a cell in pixels; None for 224 with photos, otherwise the size of the source's frames
    per_class   number of mosaics for every class; the paper has 100 for dogs and cats and for MAMe, 10 for MIT67
    seed        seed of the mosaics
    train       number of photos of every class of a folder that are left out because a head was fitted on them
    split_seed  seed that drew those photos, the same as the head's
    reuse       repeats images of classes that are too small; False makes that an error
    recompress  passes every mosaic through a JPEG of quality 75, like the released ones
    """

    cite = ("ariasduart2023", "ariasduart2022")
    located = ("source",)
    layouts: ClassVar[dict[str, str]] = {"mosaic": "diorama.worlds.mosaic.files:write_mosaics"}
    factors: ClassVar[dict[str, str]] = {
        "cell": "a position shows another image: 2 (of its own class), (2, 'cat') or (2, 5) (of another), by name or label"
    }
    truth: ClassVar[tuple[str, ...]] = ("label", "cells")

    source: Component[World] | str
    grid: int = 2
    target: int = 2
    cell: int | None = None
    per_class: int = 10
    seed: int = 0
    train: int = 0
    split_seed: int = 0
    reuse: bool = True
    recompress: bool = False

    def __post_init__(self) -> None:
        if not 2 <= self.grid <= 16:
            raise InputError(f"mosaic: grid={self.grid}: give the cells per side, 2 to 16")
        if not 1 <= self.target < self.cells:
            raise InputError(
                f"mosaic: target={self.target}: of {self.cells} cells 1 to {self.cells - 1} are the target's"
            )
        if self.per_class < 1 or (self.cell is not None and self.cell < 4):
            raise InputError(
                f"mosaic: per_class={self.per_class}, cell={self.cell}: give at least 1 mosaic of 4 pixels"
            )
        if self.train and not (isinstance(self.source, str) and Path(self.source).expanduser().is_dir()):
            raise InputError(f"mosaic: train={self.train} is for a folder of photos, not for {self._called!r}")
        if isinstance(self.images, Finished):
            self.images.check(self.grid)
        else:
            self._check_classes()

    @property
    def cells(self) -> int:
        """The number of cells of a mosaic."""
        return self.grid**2

    @cached_property
    def images(self) -> Any:
        """The world whose frames are the cells."""
        if not isinstance(self.source, str):
            if "label" not in self.source.object.truth:
                raise InputError(f"mosaic: {self.source.name} has no labels, so no cell could be told from another")
            return self.source.object
        path = Path(self.source).expanduser()
        if not path.exists():
            raise InputError(f"mosaic: there is no {self.source!r}; give a folder of class folders, a table or a world")
        if path.suffix == ".csv" and path.is_file() and is_finished(path):
            return Finished(path)
        return Photos(self.source, size=self.cell or 224, train=self.train, split_seed=self.split_seed)

    @property
    def _called(self) -> str:
        return self.source if isinstance(self.source, str) else self.source.label

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes that a model must have; empty for finished mosaics, which may show only some of its classes."""
        return () if isinstance(self.images, Finished) else tuple(self.images.classes)

    @property
    def contents(self) -> frozenset[str]:
        """The digests of the photos in the cells; empty for staged images and finished mosaics."""
        return self.images.contents

    def fingerprint(self) -> str | None:
        """The digest of the photos; None for another world, which is a parameter and so in the key already."""
        return self.images.fingerprint() if isinstance(self.source, str) else None

    @cached_property
    def size(self) -> int:
        """The side of a mosaic in pixels."""
        side = self.cell or self.images.size
        if side is None:
            raise InputError(f"mosaic: frames of {self._called} may have any size; give the cells' with cell=…")
        return self.grid * side

    def sized(self, side: int) -> str:
        """The parameters that give mosaics of this side."""
        return f"source=…, cell={side // self.grid}" if side % self.grid == 0 else f"source=…, grid=2, cell={side // 2}"

    @cached_property
    def pool(self) -> dict[int, list[Scene]]:
        """The scenes of every label."""
        source, found = self.images, dict[int, list[Scene]]()
        if source.length is not None:
            for scene in (source.scene(i)[1] for i in range(source.length)):
                found.setdefault(source.label(scene), []).append(scene)
            return dict(sorted(found.items()))
        classes = len(source.classes)
        for i in range(200 * POOL * classes):
            scene = source.sample(rng(self.seed, "mosaic pool", i))
            of_label = found.setdefault(source.label(scene), [])
            of_label += [scene] if len(of_label) < POOL else []
            if len(found) == classes and all(len(scenes) == POOL for scenes in found.values()):
                break
        return dict(sorted(found.items()))

    def class_name(self, label: int) -> str:
        """The name of a class."""
        names = self.images.classes
        return names[label] if len(names) > label and isinstance(names[label], str) else str(label)

    def _check_classes(self) -> None:
        """Refuse, before anything runs, classes with too few images."""
        if len(self.pool) < 2:
            raise InputError(f"mosaic: {self._called} has {len(self.pool)} class; a mosaic needs at least two")
        others = self.cells - self.target
        total = sum(len(scenes) for scenes in self.pool.values())
        share = self._share()
        for label, scenes in sorted(self.pool.items(), key=lambda item: len(item[1])):  # the smallest is named first
            have = f"mosaic: class {self.class_name(label)!r} has {len(scenes)} images"
            if len(scenes) < self.target:
                raise InputError(f"{have}: a mosaic shows {self.target} different ones")
            if total - len(scenes) < others:
                raise InputError(f"{have}, the others together {total - len(scenes)}: a mosaic shows {others} of them")
            if not self.reuse and len(scenes) < share:
                raise InputError(f"{have}: per_class={self.per_class} needs {share} (allow repeats with reuse=True)")

    def _share(self) -> int:
        """Images that every other class gives for the mosaics of one class: ⌈others · per_class / (C − 1)⌉."""
        return -(-(self.cells - self.target) * self.per_class // (len(self.pool) - 1))

    @cached_property
    def _scenes(self) -> list[tuple[str, Scene]]:
        """All mosaics with their names, cycling through the classes."""
        if isinstance(self.images, Finished):
            return [(name, _scene(target, cells)) for name, target, cells in self.images.mosaics]
        drawn = {label: self._drawn(label) for label in self.pool}
        return [mosaics[k] for k in range(self.per_class) for mosaics in drawn.values()]

    def _drawn(self, label: int) -> list[tuple[str, Scene]]:
        random, count = rng(self.seed, "mosaic", label), self.per_class
        own = _deal(_target_pool(self.pool[label], self.target * count, random), self.target, count)
        rest = [scenes for other, scenes in self.pool.items() if other != label]
        others = _deal(_outer_pool(rest, self._share(), random), self.cells - self.target, count)
        found = []
        for k, images in enumerate(map(list.__add__, own, others)):
            placed = _shuffled(images, rng(self.seed, "mosaic positions", label, k))
            cells = [{"label": self.images.label(scene), "image": scene.to_json()} for scene in placed]
            found.append((f"{self.class_name(label)}-{k:03d}".replace("/", "__"), _scene(label, cells)))
        return found

    def __len__(self) -> int:
        return len(self._scenes)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th mosaic by name."""
        return self._scenes[index]

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The mosaic with one cell replaced by an image that it does not show yet; all other cells stay."""
        for name in changes:
            if name != "cell":
                raise InputError(f"mosaic cannot change {name!r}; it can swap a cell: cell=2 or cell=(2, 'cat')")
        if not changes:
            return scene
        position, wanted = changes["cell"] if isinstance(changes["cell"], tuple | list) else (changes["cell"], None)
        cells = list(scene.params["cells"])
        if type(position) is not int or not 0 <= position < len(cells):
            raise InputError(f"mosaic: there is no cell {position!r}; cells are 0 to {len(cells) - 1}, row by row")
        label = cells[position]["label"] if wanted is None else self._label(wanted)
        shown = {_identity(cell) for cell in self._cells(scene)}
        left = [other for other in self.pool[label] if _identity(other) not in shown]
        if not left:
            raise InputError(f"mosaic: class {self.class_name(label)!r} has no image that the mosaic does not show yet")
        chosen = left[int(rng(self.seed, "mosaic swap", scene.key, position, label).integers(len(left)))]
        cells[position] = {"label": label, "image": chosen.to_json()}
        return scene.changed({"cells": cells})

    def _label(self, wanted: Any) -> int:
        names = {self.class_name(label): label for label in self.pool}
        label = names.get(wanted, wanted)
        if label not in self.pool:
            raise InputError(f"mosaic: there is no class {wanted!r}; there are: {', '.join(list(names)[:20])}")
        return label

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The mosaics; the source renders every cell once, however often it is shown."""
        wanted = {cell.key: cell for scene in scenes for cell in self._cells(scene)}
        made = dict(zip(wanted, self.images.render(list(wanted.values())), strict=True))
        return [self._frame(scene, [made[cell.key] for cell in self._cells(scene)]) for scene in scenes]

    def composed(self, scene: Scene) -> np.ndarray:
        """A mosaic as (h, w, 3) uint8, before any recompression."""
        return self._composed([*self.images.render(self._cells(scene))])

    def _cells(self, scene: Scene) -> list[Scene]:
        return [Scene.from_json(cell["image"]) for cell in scene.params["cells"]]

    def _composed(self, frames: list[Frame]) -> np.ndarray:
        side = self.size // self.grid
        tiles = [fitted(quantise(frame.srgb(), 8), side, crop=False) for frame in frames]
        rows = [np.concatenate(tiles[i : i + self.grid], axis=1) for i in range(0, self.cells, self.grid)]
        return np.concatenate(rows, axis=0)

    def _frame(self, scene: Scene, frames: list[Frame]) -> Frame:
        image = self._composed(frames)
        if self.recompress:
            image = unjpeg(jpeg(image))
        labels = [cell["label"] for cell in scene.params["cells"]]
        truth = {"label": scene.params["target"], "cells": {"index": self._index, "labels": labels}}
        return Frame(scene, image.astype(np.float32) / np.float32(255), "srgb", truth)

    @cached_property
    def _index(self) -> np.ndarray:
        """The index of the cell at every pixel; cells are numbered row by row."""
        numbers = np.arange(self.cells, dtype=np.uint8).reshape(self.grid, self.grid)
        return np.kron(numbers, np.ones((self.size // self.grid,) * 2, np.uint8))


def _identity(scene: Scene) -> str:
    """What identifies the image of a cell: the photo's name in a table of finished mosaics, else the scene's key."""
    return str(scene.params.get("photo") or scene.key)


def _scene(target: int, cells: list[dict[str, Any]]) -> Scene:
    return Scene("mosaic", {"target": target, "cells": cells})


def _shuffled(scenes: Sequence[Scene], random: np.random.Generator) -> list[Scene]:
    return [scenes[i] for i in random.permutation(len(scenes))]


def _target_pool(scenes: Sequence[Scene], wanted: int, random: np.random.Generator) -> Iterator[Scene]:
    """The list repeated as often as needed and shuffled (as in the paper); after that, the list again and again."""
    yield from _shuffled([*scenes] * -(-wanted // len(scenes)), random)
    while True:
        yield from _shuffled(scenes, random)


def _outer_pool(classes: Sequence[list[Scene]], share: int, random: np.random.Generator) -> Iterator[Scene]:
    """`share` images of every class, repeated only if a class is too small, shuffled together; again without end."""
    while True:
        drawn = [scene for scenes in classes for scene in islice(_in_turns(scenes, random), share)]
        yield from _shuffled(drawn, random)


def _in_turns(scenes: Sequence[Scene], random: np.random.Generator) -> Iterator[Scene]:
    while True:
        yield from _shuffled(scenes, random)


def _deal(pool: Iterator[Scene], size: int, count: int) -> list[list[Scene]]:
    """Groups from the front of the pool; an image that a group already has waits for the next group."""
    waiting: list[Scene] = []
    groups = []
    for _ in range(count):
        group: list[Scene] = []
        while len(group) < size:
            fresh = next((scene for scene in waiting if scene not in group), None)
            if fresh is None:
                waiting.append(next(pool))
            else:
                waiting.remove(fresh)
                group.append(fresh)
        groups.append(group)
    return groups
