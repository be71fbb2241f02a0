"""A draw of frames as arrays: the codes (N, M) of the method under test, and the true factors (N, F).

Frames are rendered and encoded in chunks of a fixed size, the last one padded by repeating its last frame, so that a code
does not depend on the number of frames. They are not kept: ten thousand frames do not fit into memory.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Code, as_array, check_array
from diorama.core.asking import padded
from diorama.core.bench import Bench
from diorama.core.contracts import Control, Saved
from diorama.core.errors import AnswerError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, digest

#: The frames of a draw: names and scenes.
Draw = Sequence[tuple[str, Scene]]


def factors_of(bench: Bench, draw: Draw) -> np.ndarray:
    """The true factors (N, F) of a draw: the index of each value among the world's levels."""
    return bench.keep("unit", _key("factors", draw), lambda: _factors(bench, draw))


def _factors(bench: Bench, draw: Draw) -> np.ndarray:
    frames = (frame for part in bench.passes([scene for _, scene in draw], "a draw") for frame in bench.frames(part))
    return np.array([_row(bench.world.object, frame) for frame in frames])


def codes_of(bench: Bench, draw: Draw) -> np.ndarray:
    """The codes (N, M) of a draw at this point of the method's grid; checked."""
    key = (*_key("codes", draw), bench.asked.digest)
    return bench.keep("unit", key, lambda: _checked_codes(bench, draw))[bench.point]


def _checked_codes(bench: Bench, draw: Draw) -> list[np.ndarray]:
    """The codes at every point of the grid."""
    codes = _controlled(bench, len(draw)) if isinstance(bench.asked.object, Control) else _encoded(bench, draw)
    for z in codes:
        check_array("codes", z, [(len(draw), z.shape[-1])] if isinstance(z, np.ndarray) and z.ndim else [])
    return codes


def _key(what: str, draw: Draw) -> tuple[str, ...]:
    return what, digest([name for name, _ in draw])


def _controlled(bench: Bench, frames: int) -> list[Any]:
    """A control's codes of the first frames of the case's draw (it answers for all), at every point of its grid."""
    return [answer.z[:frames] for answer in bench.asked.object.answers(bench, None, None)]


def _encoded(bench: Bench, draw: Draw) -> list[np.ndarray]:
    """The codes of a draw, chunk by chunk; its factors are kept on the way."""
    asked, names = bench.asked, [name for name, _ in draw]
    methods = [asked.object] if asked.points == ({},) else [asked.at_point(point) for point in asked.points]
    codes: list[list[np.ndarray]] = [[] for _ in methods]
    rows: list[list[float]] = []
    for part in bench.passes([scene for _, scene in draw], "a draw"):
        frames = bench.frames(part)
        chunk_names = padded(names[len(rows) : len(rows) + len(part)], bench.chunk)
        rows += [_row(bench.world.object, frame) for frame in frames]
        shown = padded(bench.shown(frames), bench.chunk)
        for method, of_method in zip(methods, codes, strict=True):
            with bench.undisturbed(part[0]):
                of_method.append(encode(method, chunk_names, shown)[: len(part)])
    bench.keep("unit", _key("factors", draw), lambda: np.array(rows))
    return [np.concatenate(of_method) for of_method in codes]


def encode(method: Any, names: Sequence[str], frames: Sequence[Frame]) -> np.ndarray:
    """The codes (n, M) of some frames: `encode(frames)`, or saved codes by name."""
    if isinstance(method, Saved):
        codes = np.stack([_code(method.load(name, frame, None)) for name, frame in zip(names, frames, strict=True)])
    else:
        codes = as_array(method.encode(frames))
    if codes.ndim != 2 or len(codes) != len(frames):
        raise AnswerError(
            f"encode gave an array of shape {codes.shape} for {len(frames)} frames: give (frames, latents)"
        )
    return codes.astype(np.float64)


def _code(answer: Answer) -> np.ndarray:
    if not isinstance(answer, Code):
        raise AnswerError(f"the saved answer is {type(answer).__name__}, expected Code")
    return answer.z


def _row(world: Any, frame: Frame) -> list[float]:
    """A frame's values of the world's factors as numbers, in the world's order."""
    values = frame.truth["factors"]
    return [_number(levels, values[name]) for name, levels in world.levels.items()]


def _number(levels: Sequence[Any], value: Any) -> float:
    if value in levels:
        return float(levels.index(value))
    if isinstance(value, int | float):  # between two levels
        return float(np.interp(value, levels, np.arange(len(levels))))
    raise AnswerError(f"the factor value {value!r} is neither a number nor one of {', '.join(map(str, levels))}")
