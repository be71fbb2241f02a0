"""Staged birds, drawn and rendered once into a folder of memory-mapped arrays that every epoch reads.

Bird i is a function of (seed, purpose, i), so the number of processes and an interrupted rendering change nothing.
`images.npy` holds uint8 (n, size, size, 3) sRGB, `labels.npy` the class and `targets.npy` bool (n, classes): every class
compatible with the parts the bird still has. `done.npy` says which blocks are finished.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from diorama.core.errors import InputError
from diorama.core.scene import Scene, rng
from diorama.worlds.birds.birds import Birds
from diorama.worlds.birds.classes import compatible_classes

#: (done, total, message), called now and then.
Progress = Callable[[int, int, str], None]
BLOCK = 50


@dataclass(frozen=True, slots=True)
class Order:
    """Which birds to stage: `count` of a world, drawn for a purpose; `bare` removes all five parts."""

    world: Birds
    seed: int
    purpose: str
    count: int
    bare: bool = False

    def scene(self, index: int) -> Scene:
        """The bird of an index."""
        scene = self.world.sample(rng(self.seed, self.purpose, index))
        return self.world.do(scene, **dict.fromkeys(self.world.part_names)) if self.bare else scene


@dataclass(frozen=True, slots=True)
class Staged:
    """Rendered birds: images uint8 (n, h, w, 3), labels (n,), targets bool (n, classes)."""

    images: np.ndarray
    labels: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


def staged(order: Order, folder: Path, progress: Progress, processes: int = 2) -> Staged:
    """The birds of an order, rendered into `folder` where they are not there yet."""
    _make(order, folder)
    blocks = -(-order.count // BLOCK)
    missing = [b for b in range(blocks) if not _open(folder, "done")[b]]
    for count, _ in enumerate(_rendered(order, folder, missing, processes), start=blocks - len(missing) + 1):
        progress(min(count * BLOCK, order.count), order.count, f"rendering {order.purpose} birds")
    return Staged(_open(folder, "images"), _open(folder, "labels"), _open(folder, "targets"))


def targets_of(world: Birds, scene: Scene) -> np.ndarray:
    """bool (classes,): the classes compatible with the parts that a bird still has.

    >>> world = Birds()
    >>> scene = world.sample(rng(0, "doctest"))
    >>> int(targets_of(world, scene).sum()), int(targets_of(world, world.do(scene, **dict.fromkeys(world.part_names))).sum())
    (1, 50)
    """
    kept = {part: variant for part, variant in scene.params["parts"].items() if variant is not None}
    hot = np.zeros(len(world.classes), bool)
    hot[list(compatible_classes(world.classes, kept))] = True
    return hot


def _make(order: Order, folder: Path) -> None:
    """Empty arrays for an order; a folder made for another order is refused."""
    path, wanted = folder / "order.json", json.dumps(asdict(order), sort_keys=True)
    if path.exists():
        if path.read_text() != wanted:
            raise InputError(f"{folder} holds the birds of another recipe: choose another -o, or delete it")
        return
    folder.mkdir(parents=True, exist_ok=True)
    size, classes = order.world.size, len(order.world.classes)
    for name, dtype, shape in (
        ("images", np.uint8, (order.count, size, size, 3)),
        ("labels", np.int64, (order.count,)),
        ("targets", np.bool_, (order.count, classes)),
        ("done", np.bool_, (-(-order.count // BLOCK),)),
    ):
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, shape).flush()
    path.write_text(wanted)  # last: its presence says that the arrays are there


def _open(folder: Path, name: str, mode: Literal["r", "r+"] = "r") -> np.memmap:
    return np.lib.format.open_memmap(folder / f"{name}.npy", mode)


def _rendered(order: Order, folder: Path, blocks: list[int], processes: int) -> Iterator[int]:
    """Render blocks, in this process if there are few of them; gives each block's number as it is finished."""
    if len(blocks) < processes or processes < 2:
        yield from (_render_block(order, folder, block) for block in blocks)
        return
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _start_worker)
    try:
        jobs = [pool.submit(_render_block, order, folder, block) for block in blocks]
        yield from (job.result() for job in as_completed(jobs))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and end when it ends, however that happens."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _render_block(order: Order, folder: Path, block: int) -> int:
    images, labels, targets, done = (_open(folder, name, "r+") for name in ("images", "labels", "targets", "done"))
    for i in range(block * BLOCK, min((block + 1) * BLOCK, order.count)):
        scene = order.scene(i)
        images[i] = np.round(order.world.render([scene])[0].image * 255).astype(np.uint8)
        labels[i], targets[i] = scene.params["label"], targets_of(order.world, scene)
    for array in (images, labels, targets):
        array.flush()
    done[block] = True
    return block
