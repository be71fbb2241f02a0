"""The messages of the socket: requests, of which every field is checked, and replies, a JSON head and arrays.

A request is `{"seq": 7, "scene": {…}, "do": {…}, "want": ["picture", "logits"], …}`. A reply is one binary message: the
length of the head (four bytes, little-endian), the head as JSON, then the arrays that it lists under `arrays`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from diorama.core.errors import InputError, shortened
from diorama.core.scene import Scene

#: Values of `want`. QUICK is answered at once, SLOW after a handle is released, by the helper process.
QUICK = ("picture", "logits", "exact", "effects")
SLOW = ("maps", "scores", "layers", "codes", "concept")
OTHER = ("hello", "sample", "case", "cases", "save")
WANTS = (*QUICK, *SLOW, *OTHER)
#: The longest request, how deep it may be nested, and the longest text in it.
LONGEST, DEEPEST, TEXT = 256_000, 12, 400


@dataclass(frozen=True, slots=True)
class Request:
    """A request about `do(scene, **do)`; `seq` counts up, and only the newest request matters."""

    seq: int
    want: tuple[str, ...] = ()
    scene: Scene | None = None
    do: dict[str, Any] = field(default_factory=dict)
    #: Whether a handle is being dragged: answers may be approximate, and are marked so.
    drag: bool = False
    model: int = 0
    #: The class that is explained; None: the true one.
    target: int | None = None
    #: The share of the shading that is added to the reflectance as a planted error, for decompositions.
    leak: float = 0.0
    #: The number of a scene, its seed, the name of a case, and the change that defines a concept.
    index: int = 0
    seed: int = 0
    name: str = ""
    concept: str = ""

    def to_json(self) -> dict[str, Any]:
        """The request as JSON, for the helper process."""
        own = {name: getattr(self, name) for name in Request.__slots__}
        return {**own, "want": list(self.want), "scene": self.scene.to_json() if self.scene else None}


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """One answer: its kind, its JSON values, and arrays by name."""

    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def head(self, seq: int) -> dict[str, Any]:
        """The JSON part."""
        listed = [{"name": n, "shape": a.shape, "type": str(a.dtype)} for n, a in self.arrays.items()]
        return {"kind": self.kind, "seq": seq, **self.values, "arrays": listed}

    def buffers(self) -> list[bytes]:
        """The arrays' bytes, little-endian, row by row."""
        return [np.ascontiguousarray(a).tobytes() for a in self.arrays.values()]


def packed(head: dict[str, Any], buffers: list[bytes]) -> bytes:
    """A reply as one binary message."""
    text = json.dumps(_without_nan(head), separators=(",", ":"), allow_nan=False).encode()
    return len(text).to_bytes(4, "little") + text + b"".join(buffers)


def _without_nan(value: Any) -> Any:
    """The value with NaN and infinities, which JSON lacks, as None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _without_nan(held) for name, held in value.items()}
    return [_without_nan(held) for held in value] if isinstance(value, list | tuple) else value


def read(text: str | bytes) -> Request:
    """Parse a message from the socket; InputError says what is wrong with it."""
    if len(text) > LONGEST:
        raise InputError(f"the message has {len(text)} characters; at most {LONGEST} are read")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise InputError("the message is nested too deeply") from error
    except ValueError as error:  # no JSON, no UTF-8, a number of thousands of digits
        raise InputError(shortened(f"the message is not JSON: {error}", 200)) from error
    return request(value)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def request(value: Any) -> Request:
    """A request from a JSON value, every field checked."""
    if not isinstance(value, dict):
        raise InputError(f"a message is an object with seq and want, not {type(value).__name__}")
    if unknown := sorted(set(map(str, value)) - set(Request.__slots__)):
        raise InputError(f"a message has no {unknown[0][:40]!r}; it has {', '.join(Request.__slots__)}")
    for _ in _check_tree(value, 0):
        pass
    want = value.get("want", [])
    if not isinstance(want, list) or not all(isinstance(w, str) and w in WANTS for w in want):
        raise InputError(f"want is a list of {', '.join(WANTS)}")
    do = value.get("do") or {}
    if (
        not isinstance(do, dict)
        or len(do) > 32
        or not all(name.replace(".", "").isidentifier() or "." in name for name in do)
    ):
        raise InputError("do is an object of at most 32 changes by name")
    scene = value.get("scene")
    target = value.get("target")
    return Request(
        seq=_whole(value, "seq", 2**53),
        want=tuple(dict.fromkeys(want)),
        scene=None if scene is None else _scene(scene),
        do=do,
        drag=_flag(value, "drag"),
        model=_whole(value, "model", 64),
        target=None if target is None else _whole(value, "target", 1_000_000),
        leak=_share(value, "leak"),
        index=_whole(value, "index", 2**31),
        seed=_whole(value, "seed", 2**31),
        name=_text(value, "name"),
        concept=_text(value, "concept"),
    )


def _scene(value: Any) -> Scene:
    found = Scene.from_json(value)
    if not isinstance(found.world, str):
        raise InputError("a scene names its world")
    return found


def _check_tree(value: Any, depth: int) -> Iterator[None]:
    """Refuse what no scene contains: deep nesting, long texts, paths that lead out of a folder."""
    if depth > DEEPEST:
        raise InputError("the message is nested too deeply")
    if isinstance(value, str):
        if len(value) > TEXT or value.startswith(("/", "~")) or ".." in value.replace("\\", "/").split("/"):
            raise InputError(f"the text {value[:40]!r} cannot be part of a scene")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise InputError("a text in the message is not UTF-8")
    elif isinstance(value, dict):
        for name, held in value.items():
            yield from _check_tree(name, depth)
            yield from _check_tree(held, depth + 1)
    elif isinstance(value, list):
        for held in value:
            yield from _check_tree(held, depth + 1)
    elif isinstance(value, int) and abs(value) > 2**53:
        raise InputError("a number in the message is too large")
    yield


def _whole(value: dict[str, Any], name: str, below: int) -> int:
    found = value.get(name, 0)
    if type(found) is not int or not 0 <= found < below:
        raise InputError(f"{name} is a whole number from 0 to {below - 1}")
    return found


def _flag(value: dict[str, Any], name: str) -> bool:
    found = value.get(name, False)
    if not isinstance(found, bool):
        raise InputError(f"{name} is true or false")
    return found


def _share(value: dict[str, Any], name: str) -> float:
    found = value.get(name, 0.0)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1:
        raise InputError(f"{name} is a number from 0 to 1")
    return float(found)


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name, "")
    if not isinstance(found, str):
        raise InputError(f"{name} is a text")
    return found
