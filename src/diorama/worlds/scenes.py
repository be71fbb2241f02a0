"""Scenes: those listed in a file, one JSON line each, as the lab saves them; a regression suite for any protocol."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.catalogue import Component, build
from diorama.core.contracts import World
from diorama.core.errors import InputError
from diorama.core.scene import Scene, digest
from diorama.io.files import read_text

#: The most lines a list may have.
MOST = 100_000


class Scenes(World):
    """A list of scenes of another world, with that world's parts, classes, levels, truth and changes.

    file   list of scenes, e.g. cases.jsonl: lines of {"world": SPEC, "scene": {…}}, as `diorama lab` appends them
    world  world that stages the scenes; None for the one that the lines name, which must not be your own code

    Every protocol for the other world judges these scenes: `diorama run -w "scenes(file=cases.jsonl)" -M birds_cnn …`.
    """

    located = ("file",)
    example = 'diorama run -w "{}" -M birds_cnn -m grad_cam -p single_deletion'

    def __new__(cls, file: str, world: Component[World] | None = None) -> Scenes:
        """The other world with this list in place of its own scenes."""
        lines = _read(Path(file).expanduser())
        inner = world or build("world", _named(lines, file))
        kind: Any = type(inner.object)
        made: Any = object.__new__(_listing(kind))
        for name, value in _state(inner.object).items():
            object.__setattr__(made, name, value)
        object.__setattr__(made, "_lines", [(line["name"], _checked(inner, line, file)) for line in lines])
        object.__setattr__(made, "_inner", inner)
        return made

    def __init__(self, file: str, world: Component[World] | None = None) -> None:
        """Nothing to do: `__new__` has filled the object."""

    def fingerprint(self) -> str:
        """The digest of the scenes and of the world that stages them, with its source and data."""
        return digest([self._inner.digest, [scene.key for _, scene in self._lines]])

    @property
    def length(self) -> int:
        """The number of scenes."""
        return len(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def as_published(self) -> bool:
        """False, because published values are those of other scenes."""
        return False

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th scene of the file with its name."""
        return self._lines[index]

    def scene_at(self, seed: int, index: int) -> tuple[str, Scene]:
        """The index-th scene, whatever the seed."""
        return self._lines[index]

    def sample(self, rng: np.random.Generator) -> Scene:
        """One of the scenes."""
        return self._lines[int(rng.integers(len(self._lines)))][1]

    _lines: Sequence[tuple[str, Scene]]
    _inner: Component[World]


@cache
def _listing(kind: Any) -> Any:
    """The class of worlds that are a list of another class's scenes; `do`, `render` and all else are the other's."""
    return type("Scenes", (Scenes, kind), {"__module__": __name__, "layouts": {}})


def _state(world: Any) -> dict[str, Any]:
    """The values of an object by name: its fields and all other attributes."""
    named = {field.name: getattr(world, field.name) for field in fields(world)} if is_dataclass(world) else {}
    return {**named, **(vars(world) if "__dict__" in dir(world) else {})}


def _read(path: Path) -> list[dict[str, Any]]:
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    if not lines or len(lines) > MOST:
        raise InputError(f"scenes: {path} has {len(lines)} lines; give a file with 1 to {MOST} scenes")
    return [_line(text, f"{path}, line {number}", number) for number, text in enumerate(lines, 1)]


def _line(text: str, where: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"scenes: {where} is not JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("world"), str) or "scene" not in found:
        raise InputError(f'scenes: {where} should be {{"world": SPEC, "scene": {{…}}}}')
    scene = Scene.from_json(found["scene"])
    return {"name": f"{number:05d}-{scene.key[:8]}", "world": found["world"], "scene": scene}


def _named(lines: Sequence[dict[str, Any]], file: str) -> str:
    """The one world that all lines name."""
    named = list(dict.fromkeys(line["world"] for line in lines))
    if len(named) > 1:
        raise InputError(f"scenes: {file} has scenes of {named[0]} and of {named[1]}: write one file for each")
    if ":" in named[0]:  # ./mine.py:World or package.module:World, also in a parameter: a data file must not run code
        raise InputError(f"scenes: {file} names code, {named[0][:80]!r}: if you trust it, give scenes(file=…, world=…)")
    return named[0]


def _checked(inner: Component[World], line: dict[str, Any], file: str) -> Scene:
    scene: Scene = line["scene"]
    own = inner.object.scene_at(0, 0)[1].world
    if scene.world != own:
        raise InputError(f"scenes: {file} has a scene of {scene.world!r}, and {inner.label} stages {own!r}")
    return scene
