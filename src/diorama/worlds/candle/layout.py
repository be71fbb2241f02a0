"""The published layout of CANDLE on disk: numbered images and metadata, written by several processes, resumable."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError, WorkerError
from diorama.core.writing import Writing
from diorama.io.files import read_json
from diorama.io.images import quantise, read_png, write_png
from diorama.io.locks import locked
from diorama.io.sheet import contact_sheet
from diorama.io.store import write_json
from diorama.worlds.candle.candle import Candle
from diorama.worlds.candle.factors import WIDTH, levels, metadata
from diorama.worlds.candle.stage import loose_box

_SHEET = 36  # images on the contact sheet
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def write_numbered(ask: Writing) -> Path:
    """Write `<index>.png` and `<index>.json` as CANDLE was published, every combination once; resumes where it stopped.

    One process per core; each image is a function of (seed, index). The world `candle_recorded(root=…)` reads the folder.
    Gives the path of a contact sheet of a few images.
    """
    world, count, seed, changes, out = ask.world.object, ask.count, ask.seed, ask.changes, ask.out
    total = int(np.prod(levels(world.scenes)))
    if count > total:
        raise InputError(f"-n {count}: {world.scenes} scenes of candle have {total} combinations; give at most {total}")
    world.do(world.numbered(0, seed), **changes)  # refuses what cannot be done before anything is written
    with locked(out / ".lock"):
        _claim(out, {"world": ask.world.digest, "seed": seed, "do": changes})
        missing = [i for i in range(count) if not (out / f"{i}.json").exists()]
        ask.progress(count - len(missing), count)
        for done, _ in enumerate(_finished(world, missing, seed, changes, out), start=count - len(missing) + 1):
            ask.progress(done, count)
    shown = np.unique(np.linspace(0, count - 1, min(count, _SHEET)).astype(int))
    pictures = (read_png(out / f"{i}.png").astype(np.float32) / 255 for i in shown)
    return contact_sheet(pictures, limit=240).written(out)


def _claim(out: Path, made_by: dict[str, Any]) -> None:
    """Write what the folder holds to manifest.json, or refuse to mix it with something else."""
    file = out / "manifest.json"
    if file.exists() and read_json(file) != made_by:
        raise InputError(f"{out} holds images of another world, seed or --do; choose another -o, or delete it")
    write_json(file, made_by)


def _finished(world: Candle, missing: list[int], seed: int, changes: dict[str, Any], out: Path) -> Iterator[int]:
    """Write the missing images; yields the index of each when it is done."""
    workers = min(os.cpu_count() or 1, -(-len(missing) // 4))
    if workers <= 1:
        for i in missing:
            write_one(world, i, seed, changes, out)
            yield i
        return
    with _pool(workers) as pool:
        tasks = {pool.submit(write_one, world, i, seed, changes, out): i for i in missing}
        for task in as_completed(tasks):
            task.result()
            yield tasks[task]


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes with one thread each; after an error, tasks that have not begun are cancelled."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        yield pool
    except BrokenProcessPool as error:
        raise WorkerError("a worker was killed; run the same command again to continue") from error
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def write_one(world: Candle, index: int, seed: int, changes: dict[str, Any], out: Path) -> None:
    """Write one image, then its metadata: if there is metadata, the image is complete.

    Boxes in metadata are in pixels of the image that is written.
    """
    scene = world.numbered(index, seed)
    frame = world.render([world.do(scene, **changes) if changes else scene])[0]
    part = out / f".{index}.png"
    write_png(part, quantise(frame.srgb(), 8))
    os.replace(part, out / f"{index}.png")
    write_json(out / f"{index}.json", metadata_of(world, frame.scene.params, frame.truth["boxes"]["object"]))


def metadata_of(world: Candle, params: dict[str, Any], visible: list[int] | None) -> dict[str, Any]:
    """The published metadata of an image of this world."""
    loose = loose_box(params, world.rotation_bug, world.width, world.height)
    made = metadata(params, loose, visible, world.height)
    return made if world.width == WIDTH else {**made, "image_size": [world.width, world.height]}
