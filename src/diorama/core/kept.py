"""Frame, truth and answer of a case as arrays, for people to look at; stored beside the rows on request (`--keep maps`)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.answers import Answer
from diorama.core.bench import Asked, Bench
from diorama.core.guard import attempt
from diorama.core.memory import Memory
from diorama.core.plan import Cell
from diorama.core.scene import Scene
from diorama.io.images import quantise
from diorama.io.names import case_path
from diorama.io.store import write_whole

#: The most cases of a cell that are stored, and the most bytes of one, compressed.
MOST, LARGEST = 500, 4_000_000


@dataclass(frozen=True, slots=True)
class KeptCase:
    """The image (h, w, 3) sRGB in [0, 1] or None, the true arrays by name, and the answer's arrays by name.

    The arrays of an answer have one more axis in front: the points of the method's grid.
    """

    frame: np.ndarray | None
    truth: dict[str, Any]
    answer: dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class _RecordingBench(Bench):
    """A bench that records the answers it gives."""

    heard: dict[tuple[str, int | None], Answer] = field(default_factory=dict)

    def answer(self, scene: Scene, target: int | None = None) -> Answer:
        """The answer of the bench, recorded."""
        found = Bench.answer(self, scene, target)
        self.heard.setdefault((scene.key, target), found)
        return found


def look(cell: Cell, index: int, asked: Asked, memory: Memory) -> KeptCase:
    """Score a case again and record the answers. A failure is ignored: the rows of the case already report it."""
    protocol, case = cell.protocol.object, cell.cases[index]
    points: list[dict[str, np.ndarray]] = []
    truth: dict[str, Any] = {}
    frame: np.ndarray | None = None
    for point in range(len(asked.points)):
        plain = cell.bench(case, memory, asked, point)
        bench = _RecordingBench(**{f.name: getattr(plain, f.name) for f in fields(plain)})
        attempt(partial(_score, bench))
        seen = attempt(partial(protocol.seen, bench, case)).value or {}
        if "scene" in case.payload:
            shown = attempt(partial(bench.frame, case.scene)).value
            if shown is not None:
                frame, truth = shown.srgb(), {name: value for name, value in shown.truth.items() if value is not None}
        truth |= {name: value for name, value in seen.items() if name != "answer"}
        own = {"answer": seen["answer"]} if "answer" in seen else _arrays(_own_answer(bench, truth.get("label")))
        points.append(own)
    names = list(points[0])
    alike = [p for p in points if list(p) == names]
    return KeptCase(frame, truth, {name: np.stack([p[name] for p in alike]) for name in names})


def _score(bench: Bench) -> None:
    for _ in bench.protocol.score(bench, bench.case):
        pass


def _own_answer(bench: _RecordingBench, label: Any) -> Answer | None:
    """The answer about the case's own scene: for its true class if that was asked, otherwise the first."""
    if "scene" not in bench.case.payload:
        return None
    key = bench.case.scene.key
    answers = {target: answer for (scene, target), answer in bench.heard.items() if scene == key}
    own = label if isinstance(label, int) else None
    return answers.get(own, next(iter(answers.values()), None))


def _arrays(answer: Answer | None) -> dict[str, np.ndarray]:
    """The arrays of an answer, by name."""
    if answer is None or not is_dataclass(answer):
        return {}
    held = {f.name: getattr(answer, f.name) for f in fields(answer)}
    return {name: value for name, value in held.items() if isinstance(value, np.ndarray)}


def place(cell: Path, case: str) -> Path:
    """The file of a case, in the folder of its cell."""
    return case_path(cell / "maps", case, ".npz")


def write(path: Path, found: KeptCase, needs: tuple[Any, ...]) -> None:
    """Write a case: the image in 8 bits, answers in half precision, and the truth that the protocol needs."""
    kept: dict[str, Any] = {} if found.frame is None else {"frame": quantise(found.frame, 8)}
    wanted = {name for name in needs if isinstance(name, str)} | {"label", "mask", "factors"}
    kept |= {f"truth/{name}": _to_array(value) for name, value in found.truth.items() if name in wanted}
    for name, array in found.answer.items():
        scale = max(float(np.abs(array).max(initial=0)), 1e-30)
        kept |= {f"answer/{name}": (array / scale).astype(np.float16), f"scale/{name}": np.float64(scale)}
    data = BytesIO()
    np.savez_compressed(data, **kept)
    if data.tell() <= LARGEST:
        write_whole(path, data.getvalue())


def _to_array(value: Any) -> np.ndarray:
    """An array as it is, anything else as its JSON text."""
    return value if isinstance(value, np.ndarray) else np.array(json.dumps(value, default=str))


def read(path: Path) -> KeptCase | None:
    """The case stored in a file; None if there is no file, or a damaged one."""
    return attempt(lambda: _read(path)).value


def _read(path: Path) -> KeptCase:
    with np.load(path, allow_pickle=False) as file:
        held = {name: file[name] for name in file.files}
    frame = held["frame"].astype(np.float32) / 255 if "frame" in held else None
    answers = {n: a.astype(np.float32) * np.float32(held[f"scale/{n}"]) for n, a in _below(held, "answer/")}
    truth = {n: json.loads(str(a)) if a.dtype.kind == "U" else a for n, a in _below(held, "truth/")}
    return KeptCase(frame, truth, answers)


def _below(held: Mapping[str, np.ndarray], prefix: str) -> list[tuple[str, np.ndarray]]:
    return [(name.removeprefix(prefix), array) for name, array in held.items() if name.startswith(prefix)]
