"""Staged examples, drawn and rendered once into a folder of memory-mapped arrays that every epoch reads.

Example i is a function of (seed, purpose, i), so the number of processes and an interrupted rendering change nothing.
`images.npy` holds uint8 (n, h, w, 3) sRGB, `labels.npy` the class and `targets.npy` bool (n, classes): every class
compatible with the parts that are left. `done.npy` says which blocks are finished.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from diorama.core.errors import InputError
from diorama.core.examples import Order

#: (done, total, message), called now and then.
Progress = Callable[[int, int, str], None]
BLOCK = 50


@dataclass(frozen=True, slots=True)
class Staged:
    """Rendered examples: images uint8 (n, h, w, 3), labels (n,), targets bool (n, classes)."""

    images: np.ndarray
    labels: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.images)


def staged(order: Order, folder: Path, progress: Progress, processes: int = 2) -> Staged:
    """The examples of an order, rendered into `folder` where they are not there yet."""
    _make(order, folder)
    blocks = -(-order.count // BLOCK)
    missing = [b for b in range(blocks) if not _open(folder, "done")[b]]
    for count, _ in enumerate(_rendered(order, folder, missing, processes), start=blocks - len(missing) + 1):
        progress(min(count * BLOCK, order.count), order.count, f"rendering {order.purpose} scenes")
    return Staged(_open(folder, "images"), _open(folder, "labels"), _open(folder, "targets"))


def _make(order: Order, folder: Path) -> None:
    """Empty arrays for an order; a folder made for another order is refused."""
    path, wanted = folder / "order.json", json.dumps(order.identity(), sort_keys=True)
    if path.exists():
        if path.read_text() != wanted:
            raise InputError(f"{folder} holds the scenes of another recipe: choose another -o, or delete it")
        return
    folder.mkdir(parents=True, exist_ok=True)
    image, classes = order.example(0)[0].image.shape, len(order.world.classes)
    for name, dtype, shape in (
        ("images", np.uint8, (order.count, *image)),
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
        frame, targets[i] = order.example(i)
        images[i], labels[i] = np.round(frame.srgb() * 255).astype(np.uint8), frame.truth["label"]
    for array in (images, labels, targets):
        array.flush()
    done[block] = True
    return block
