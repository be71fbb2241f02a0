"""Examples rendered once into a folder of memory-mapped arrays, block by block; an interrupted rendering goes on.

Example i is a function of what is asked for and of i alone, so the number of processes and an interruption change nothing.
`done.npy` says which blocks are finished, `order.json` what the arrays hold: a folder made for something else is refused.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from diorama.core.errors import InputError
from diorama.core.progress import Progress

BLOCK = 50


class Filling(Protocol):
    """What fills a folder: `count` examples, each a row in every array. It goes to other processes by pickle."""

    @property
    def count(self) -> int:
        """How many examples there are."""

    @property
    def what(self) -> str:
        """What they are, for the progress line."""

    def identity(self) -> dict[str, Any]:
        """What must be the same for the rows of a folder to be reused."""

    def arrays(self) -> Mapping[str, tuple[Any, tuple[int, ...]]]:
        """The type and the shape of one row of every array."""

    def row(self, index: int) -> Mapping[str, Any]:
        """One example: its row in every array."""


def filled(filling: Filling, folder: Path, progress: Progress, processes: int = 2) -> dict[str, np.memmap]:
    """The arrays of a filling; rows that `folder` does not have yet are rendered."""
    _create(filling, folder)
    blocks = -(-filling.count // BLOCK)
    missing = [b for b in range(blocks) if not _open(folder, "done")[b]]
    for count, _ in enumerate(_rendered(filling, folder, missing, processes), start=blocks - len(missing) + 1):
        progress(min(count * BLOCK, filling.count), filling.count, f"rendering {filling.what}")
    return {name: _open(folder, name) for name in filling.arrays()}


def _create(filling: Filling, folder: Path) -> None:
    path, wanted = folder / "order.json", json.dumps(filling.identity(), sort_keys=True)
    if path.exists():
        if path.read_text() != wanted:
            raise InputError(f"{folder} holds the scenes of another recipe: choose another -o, or delete it")
        return
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: (dtype, (filling.count, *shape)) for name, (dtype, shape) in filling.arrays().items()}
    for name, (dtype, shape) in {**arrays, "done": (np.bool_, (-(-filling.count // BLOCK),))}.items():
        np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, shape).flush()
    path.write_text(wanted)  # last: its presence says that the arrays are there


def _open(folder: Path, name: str, mode: Literal["r", "r+"] = "r") -> np.memmap:
    return np.lib.format.open_memmap(folder / f"{name}.npy", mode)


def _rendered(filling: Filling, folder: Path, blocks: list[int], processes: int) -> Iterator[int]:
    """Render blocks, in this process if there are few of them; gives each block's number as it is finished."""
    if len(blocks) < processes or processes < 2:
        yield from (_render_block(filling, folder, block) for block in blocks)
        return
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _start_worker)
    try:
        jobs = [pool.submit(_render_block, filling, folder, block) for block in blocks]
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


def _render_block(filling: Filling, folder: Path, block: int) -> int:
    arrays: dict[str, np.memmap] = {}
    for i in range(block * BLOCK, min((block + 1) * BLOCK, filling.count)):
        row = filling.row(i)
        arrays = arrays or {name: _open(folder, name, "r+") for name in row}
        for name, value in row.items():
            arrays[name][i] = value
    for array in arrays.values():
        array.flush()
    _open(folder, "done", "r+")[block] = True
    return block
