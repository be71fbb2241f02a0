"""Fits: what a method learnt from the other cases of its fold, computed once under a lock and kept as safetensors."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from diorama.adapt import adapt
from diorama.core.bench import Asked, Bench, Memo
from diorama.core.frame import Frame
from diorama.core.locks import locked
from diorama.core.plan import Cell
from diorama.core.scene import digest

#: What `method.fit` returns: named arrays.
Fit = dict[str, np.ndarray]


def fitted(cell: Cell, index: int, folder: Path) -> Asked:
    """The method of a cell, fitted on the fold that may be seen when case `index` is judged."""
    training = cell.protocol.object.fold(index, cell.count)
    if not training:
        raise ValueError(f"{cell.labels['method']} is fitted on other cases, and there is no other case: raise -n")
    key = digest([cell.key, training])
    fit = _load_or_fit(cell, training, folder / key)
    asked = cell.asked
    learned = adapt("method", asked.object.fitted(fit), str(cell.labels["method"]))
    return Asked(learned, digest([asked.digest, key]), asked.points, asked.at_point)


def _load_or_fit(cell: Cell, training: list[int], folder: Path) -> Fit:
    from safetensors.numpy import load_file, save_file

    path = folder / "fit.safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", wait=True):
        if not path.exists():
            fit = cell.asked.object.fit(_examples(cell, training), cell.protocol.object.objective)
            temporary = path.with_suffix(".part")
            save_file({name: np.ascontiguousarray(array) for name, array in fit.items()}, temporary)
            temporary.replace(path)
    return load_file(path)


def _examples(cell: Cell, training: list[int]) -> Iterator[list[Frame]]:
    """The frames (with the views the method declares) of the training cases, one scene at a time."""
    for case in (cell.cases[i] for i in training):
        for scene in cell.protocol.object.scenes(cell.world.object, case):
            bench = Bench(cell.world, cell.model, cell.asked, cell.protocol.object, case, Memo())
            yield bench.views(scene)
