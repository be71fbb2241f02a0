"""A draw of frames as arrays: the codes (N, M) that the method under test gives them, and their true factors (N, F).

Frames are rendered and encoded in chunks of a fixed size, the last one padded by repeating its last frame, and are not
kept: a code must not depend on how many frames were asked for, and ten thousand frames do not fit into memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Code, as_array, check_array
from diorama.core.bench import Bench
from diorama.core.contracts import Control, Saved
from diorama.core.errors import AnswerError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, digest

#: Frames that are rendered and encoded at once.
CHUNK = 250

#: The frames of a draw: names and scenes.
Draw = Sequence[tuple[str, Scene]]


def factors_of(bench: Bench, draw: Draw) -> np.ndarray:
    """The true factors (N, F) of a draw: the place of each value among the world's levels."""
    key, known = _key(bench, draw, "factors"), bench.memo.answers
    if key not in known:
        world, rows = bench.world.object, []
        for start in range(0, len(draw), CHUNK):
            frames = world.render([scene for _, scene in draw[start : start + CHUNK]])
            rows += [_row(world, frame) for frame in frames]
        known[key] = [Code(np.array(rows))]
    answer = known[key][0]
    assert isinstance(answer, Code)
    return answer.z


def codes_of(bench: Bench, draw: Draw) -> np.ndarray:
    """The codes (N, M) of a draw at this point of the method's grid; checked."""
    key, known = _key(bench, draw, bench.asked.digest), bench.memo.answers
    if key not in known:
        found = _controlled(bench) if isinstance(bench.asked.object, Control) else _encoded(bench, draw)
        for z in found:
            check_array("codes", z, [(len(draw), z.shape[-1])] if isinstance(z, np.ndarray) and z.ndim else [])
        known[key] = [Code(z) for z in found]
    answer = known[key][bench.point]
    assert isinstance(answer, Code)
    return answer.z


def _key(bench: Bench, draw: Draw, what: str) -> tuple[str, ...]:
    return ("draw", bench.world.digest, what, digest([name for name, _ in draw]))


def _controlled(bench: Bench) -> list[Any]:
    """What a control says about the whole draw of the case, at every point of its grid."""
    return [answer.z for answer in bench.asked.object.answers(bench, None, None)]


def _encoded(bench: Bench, draw: Draw) -> list[Any]:
    asked = bench.asked
    methods = [asked.object] if asked.points == ({},) else [asked.at_point(point) for point in asked.points]
    codes: list[list[np.ndarray]] = [[] for _ in methods]
    rows: list[list[float]] = []
    for start in range(0, len(draw), CHUNK):
        part = draw[start : start + CHUNK]
        frames = bench.world.object.render([scene for _, scene in part])
        rows += [_row(bench.world.object, frame) for frame in frames]
        names = [name for name, _ in part] + [part[-1][0]] * (CHUNK - len(part))
        shown = bench.shown(frames)
        padded = [*shown, *[shown[-1]] * (CHUNK - len(shown))]
        for method, found in zip(methods, codes, strict=True):
            with bench.undisturbed(part[0][1]):
                found.append(encode(method, names, padded)[: len(part)])
    bench.memo.answers.setdefault(_key(bench, draw, "factors"), [Code(np.array(rows))])
    return [np.concatenate(found) for found in codes]


def encode(method: Any, names: Sequence[str], frames: Sequence[Frame]) -> np.ndarray:
    """The codes (n, M) of some frames: `encode(frames)`, or saved codes by name."""
    if isinstance(method, Saved):
        found = np.stack([_code(method.load(name, frame, None)) for name, frame in zip(names, frames, strict=True)])
    else:
        found = as_array(method.encode(frames))
    if found.ndim != 2 or len(found) != len(frames):
        raise AnswerError(
            f"encode gave an array of shape {found.shape} for {len(frames)} frames: give (frames, latents)"
        )
    return found.astype(np.float64)


def _code(answer: Answer) -> np.ndarray:
    if not isinstance(answer, Code):
        raise AnswerError(f"the saved answer is {type(answer).__name__}, expected Code")
    return answer.z


def _row(world: Any, frame: Frame) -> list[float]:
    """The factors that the world has levels of, in its order."""
    values = frame.truth["factors"]
    return [_number(levels, values[name]) for name, levels in world.levels.items()]


def _number(levels: Sequence[Any], value: Any) -> float:
    if value in levels:
        return float(levels.index(value))
    if isinstance(value, int | float):  # between two levels
        return float(np.interp(value, levels, np.arange(len(levels))))
    raise AnswerError(f"the factor value {value!r} is neither a number nor one of {', '.join(map(str, levels))}")
