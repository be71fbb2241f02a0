"""Fits: what a method learnt from the other cases of its fold, computed once and stored as safetensors with a checksum."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from diorama.adapt import adapt
from diorama.core import keys
from diorama.core.bench import Asked
from diorama.core.errors import tell
from diorama.core.frame import Frame
from diorama.core.memory import Memory
from diorama.core.plan import Cell
from diorama.core.scene import digest
from diorama.io.locks import locked
from diorama.io.store import checksum, create_whole, make_folder, set_aside

#: What `method.fit` returns: named arrays.
Fit = dict[str, np.ndarray]


def fitted(cell: Cell, index: int, folder: Path, memory: Memory) -> Asked:
    """The method of a cell, fitted on the fold for case `index`."""
    training = cell.protocol.object.fold(index, cell.count)
    if not training:
        raise ValueError(f"{cell.labels['method']} is fitted on other cases, and there is no other case: raise -n")
    key = memory.keep("run", ("fold", cell.key, *training), lambda: _fit_key(cell, training))
    return memory.keep("run", ("fit", key), lambda: _with_fit(cell, key, _load_or_fit(cell, training, folder / key)))


def _fit_key(cell: Cell, training: list[int]) -> str:
    """The key of a fit. Protocols with the same training scenes and no objective share one fit."""
    scenes = [scene.key for i in training for scene in cell.protocol.object.scenes(cell.world.object, cell.cases[i])]
    aim = None if cell.protocol.object.objective is None else cell.protocol.digest
    model = cell.model.digest if cell.model else None
    return digest([cell.world.digest, model, cell.asked.digest, keys.engine_key(), cell.chunk, aim, scenes])


def _with_fit(cell: Cell, key: str, fit: Fit) -> Asked:
    asked = cell.asked
    learned = adapt("method", asked.object.fitted(fit), str(cell.labels["method"]))
    return Asked(learned, digest([asked.digest, key]), asked.points, asked.at_point)


def _load_or_fit(cell: Cell, training: list[int], folder: Path) -> Fit:
    """The stored fit, or a new one. If two machines compute it at once, the first one written is used by both."""
    path = folder / "fit.safetensors"
    make_folder(folder)
    with locked(folder / "lock", wait=True):
        known = _load(path)
        if known is None:
            fit = cell.asked.object.fit(_examples(cell, training), cell.protocol.object.objective)
            create_whole(path, _pack(fit))
            known = _load(path)
    assert known is not None
    return known


def _pack(fit: Fit) -> bytes:
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(array) for name, array in fit.items()}
    return save(arrays, {"checksum": checksum(save(arrays))})


def _load(path: Path) -> Fit | None:
    """The fit in a file, or None if there is no file; a damaged file is set aside."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import save

    if not path.exists():
        return None
    try:
        with safe_open(path, "numpy") as file:
            fit, written = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, ValueError) as error:
        tell(set_aside(path, " ".join(str(error).split())[:120]))
        return None
    if written.get("checksum") != checksum(save(fit)):
        tell(set_aside(path, "its checksum is wrong"))
        return None
    return fit


def _examples(cell: Cell, training: list[int]) -> Iterator[list[Frame]]:
    """The frames (with the views the method declares) of the training cases, one scene at a time."""
    for case in (cell.cases[i] for i in training):
        for scene in cell.protocol.object.scenes(cell.world.object, case):
            yield cell.bench(case, Memory()).views(scene)
