"""A scene: the JSON that fully describes one staged or recorded image; and random generators derived from keys."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from diorama.core.errors import InputError


def canonical(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, no NaN, shortest floats.

    >>> canonical({"b": 1.0, "a": [None, True]})
    '{"a":[null,true],"b":1.0}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError) as error:
        why = " ".join(str(error).split())[:80]
        raise InputError(f"{_shown(value)} cannot be JSON ({why}): give finite numbers and words") from error


def _shown(value: Any) -> str:
    """The beginning of a value's `repr`, for errors."""
    try:
        return repr(value)[:120]
    except RecursionError:
        return f"a {type(value).__name__} nested very deeply"


def json_bytes(value: Any) -> bytes:
    """The canonical spelling in UTF-8; text that UTF-8 cannot hold is refused.

    >>> json_bytes("é")
    b'"\\xc3\\xa9"'
    """
    try:
        return canonical(value).encode()
    except UnicodeEncodeError as error:
        around = error.object[max(error.start - 40, 0) : error.end + 10]
        raise InputError(f"{around!r} is not UTF-8: rename it") from error


def digest(value: Any) -> str:
    """A 128-bit BLAKE2b digest of a JSON value's canonical spelling, as 32 hexadecimal digits.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    return hashlib.blake2b(json_bytes(value), digest_size=16).hexdigest()


def rng(*parts: Any) -> np.random.Generator:
    """A generator that depends on nothing but its parts (seed, purpose, case …).

    >>> bool(rng(0, "case", 3).random() == rng(0, "case", 3).random())
    True
    """
    return np.random.Generator(np.random.Philox(key=int(digest(list(parts)), 16)))


@dataclass(frozen=True)
class Scene:
    """One scene of a world. `params` holds JSON only, with no randomness left: rendering is a function of it."""

    world: str
    params: dict[str, Any]

    @cached_property
    def key(self) -> str:
        """The digest of the scene's content."""
        return digest([self.world, self.params])

    def to_json(self) -> dict[str, Any]:
        """The scene as a JSON value.

        >>> s = Scene("mondrian", {"light": 0})
        >>> Scene.from_json(s.to_json()) == s
        True
        """
        return {"world": self.world, "params": self.params}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Scene":
        """The inverse of `to_json`."""
        if not isinstance(value, dict) or not isinstance(value.get("params"), dict) or "world" not in value:
            raise InputError(f'not a scene: {str(value)[:80]!r}; a scene is {{"world": …, "params": {{…}}}}')
        return cls(value["world"], value["params"])

    def changed(self, changes: dict[str, Any]) -> "Scene":
        """The same scene with some parameters replaced; every other parameter stays as it is."""
        return Scene(self.world, {**self.params, **changes})


@dataclass(frozen=True)
class _Sealed(Scene):
    """A scene that hides its parameters, except for the number of its light where it has one."""

    known_as: str = ""

    @property
    def key(self) -> str:
        """The key of the original scene."""
        return self.known_as


def sealed(scene: Scene) -> Scene:
    """A scene for a method: its world, its key, and `light` where that is a number; none of the other parameters.

    >>> sealed(Scene("mondrian", {"colours": [0.1], "light": 3})).params
    {'light': 3}
    """
    light = scene.params.get("light")
    return _Sealed(scene.world, {"light": light} if type(light) is int else {}, scene.key)
