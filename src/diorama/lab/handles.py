"""Handles: the controls for changing a scene (parts to remove, lamps to drag, sliders, menus), each with its `do`.

The handles of another world are registered so:

    @handles.register
    def _(world: MyWorld, scene: Scene) -> list[Handle]: …

Without that, a world has menus of its levels and its parts, and the input line for any `do`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any

from diorama.core.capabilities import Levelled, Lit, Parted
from diorama.core.contracts import World
from diorama.core.scene import Scene
from diorama.worlds.birds.birds import Birds
from diorama.worlds.birds.classes import CATALOGUE
from diorama.worlds.candle.candle import Candle
from diorama.worlds.mondrian import LIGHTS, Mondrian
from diorama.worlds.mosaic.mosaic import Mosaic
from diorama.worlds.sprites import Sprites
from diorama.worlds.tabletop.tabletop import Tabletop

#: The most options of a menu; others are left out.
MOST_OPTIONS = 64


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a menu: its text, and the change it makes."""

    text: str
    do: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Handle:
    """`kind` is menu, slider, dome or colour; `value` is the scene's current one: an option's index, a number, angles."""

    kind: str
    name: str
    label: str
    value: Any = None
    options: list[Option] = field(default_factory=list)
    low: float = 0.0
    high: float = 1.0
    step: float = 0.01
    unit: str = ""
    #: Ids of its regions in the picture: pointing at them highlights the handle.
    ids: tuple[int, ...] = ()
    #: The index of the option that a click on the region chooses, or undoes.
    removed: int | None = None


def menu(name: str, values: Sequence[Any], now: Any, label: str = "") -> Handle:
    """A menu of values for `do(NAME=value)`."""
    options = [Option(worded(value), {name: value}) for value in values[:MOST_OPTIONS]]
    same = [value == now and isinstance(value, bool) is isinstance(now, bool) for value in values]
    place = same.index(True) if True in same else None
    return Handle("menu", name, label or name, place, options)


def slider(
    name: str, now: float | None, ends: tuple[float, float], step: float, label: str = "", unit: str = ""
) -> Handle:
    """A slider for `do(NAME=number)`."""
    return Handle("slider", name, label or name, now, [], *ends, step, unit)


def resolved(scene: Scene, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes in the form that `do` takes: `camera.distance` is an entry of a dictionary, `position.0` one of a list.

    >>> resolved(Scene("w", {"place": [1.0, 2.0]}), {"place.1": 5, "camera.pitch": 0.1, "albedo.0": [1, 1, 1]})
    {'place': [1.0, 5], 'camera': {'pitch': 0.1}, 'albedo': {0: [1, 1, 1]}}
    """
    found: dict[str, Any] = {}
    for name, value in changes.items():
        base, dot, inner = name.partition(".")
        now = found.get(base, scene.params.get(base))
        if not dot:
            found[name] = value
        elif isinstance(now, list) and inner.isdigit() and int(inner) < len(now):
            found[base] = [value if i == int(inner) else old for i, old in enumerate(now)]
        else:
            found[base] = {**found.get(base, {}), int(inner) if inner.isdigit() else inner: value}
    return found


def worded(value: Any) -> str:
    """The text of a value in a menu.

    >>> worded(None), worded(True), worded(2.5)
    ('none', 'yes', '2.5')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@singledispatch
def handles(world: World, scene: Scene) -> list[Handle]:
    """The handles of a scene; for worlds without registered ones: levels, parts and recorded lights."""
    found: list[Handle] = []
    if isinstance(world, Parted):
        found += [part(world, name, [Option("as it is", {})]) for name in world.part_names]
    if isinstance(world, Levelled):
        found += [menu(name, list(values), scene.params.get(name)) for name, values in world.levels.items()]
    if isinstance(world, Lit):
        found.append(menu("light", list(world.lights(scene)), scene.params.get("light")))
    return found


def part(world: Parted, name: str, variants: Iterable[Option], now: int | None = 0) -> Handle:
    """A part with its variants; the last option removes it."""
    options = [*variants, Option("removed", {name: None})]
    place = len(options) - 1 if now is None else now
    return Handle("menu", name, name, place, options, ids=tuple(world.part_ids[name]), removed=len(options) - 1)


@handles.register
def _(world: Birds, scene: Scene) -> list[Handle]:
    variants = scene.params["parts"]
    parts = [
        part(world, name, [Option(f"variant {i + 1}", {name: i}) for i in range(len(CATALOGUE[name]))], variants[name])
        for name in world.part_names
    ]
    domes = [Handle("dome", name, _LABELS.get(name, name), scene.params[name]) for name in ("light", "camera")]
    classes = menu("label", list(range(len(world.classes))), scene.params["label"], "class")
    left = [i for i, thing in enumerate(scene.params["background"]) if thing is not None]
    away = Option(f"take all {len(left)} away" if left else "none left", {"background_without": left} if left else {})
    ground = Handle("menu", "background", "background", None, [Option(f"{len(left)} objects", {}), away])
    distance = slider("camera.distance", scene.params["camera"]["distance"], (200, 400), 5, "camera distance")
    return [*parts, *domes, distance, classes, ground]


@handles.register
def _(world: Candle, scene: Scene) -> list[Handle]:
    order = ("object", "color", "size", "rotation", "scene", "light")
    units = {"rotation": " (°)", "size": " (m)"}
    menus = [menu(n, list(world.levels[n]), scene.params[n], _LABELS.get(n, n) + units.get(n, "")) for n in order]
    x, y = scene.params["position"]
    places = [
        slider("position.0", x, (-6, 6), 0.1, "place, left", " m"),
        slider("position.1", y, (-20, 2), 0.1, "place, near", " m"),
    ]
    return [replace(menus[0], ids=(1,)), *menus[1:], *places]


_LABELS = {"color": "colour", "light": "lamp"}


@handles.register
def _(world: Tabletop, scene: Scene) -> list[Handle]:
    now = scene.params
    lamp = now["light_angle"]
    if lamp is None:
        x, y, _ = now["lights"][now["light"]]
        lamp = math.degrees(math.atan2(x, -y))
    paints = []
    for i, thing in enumerate(now["objects"]):
        paint, label = thing["paint"], f"paint of the {thing['mesh'].replace('_', ' ')}"
        colour = [0.5, 0.5, 0.5] if isinstance(paint, Mapping) else list(paint)
        paints.append(Handle("colour", f"albedo.{i}", label, colour, ids=(i + 1,)))
    return [
        slider("light_angle", lamp, (-180, 180), 1, "lamp angle", "°"),
        slider("temperature", now["temperature"] or 6500, (1500, 12000), 100, "lamp temperature", " K"),
        slider("power", now["power"], (0, 3000), 25, "lamp power", " W"),
        slider("radius", now["radius"], (0.05, 2), 0.05, "lamp size", " m"),
        slider("fill", now["fill"], (0, 1), 0.01, "sky"),
        *paints,
        menu("uniform", [False, True], now["uniform"], "one gray paint"),
        menu("specular", [True, False], now["specular"], "highlights"),
        slider("table", now["table"], (0, 1), 0.01, "table"),
    ]


@handles.register
def _(world: Sprites, scene: Scene) -> list[Handle]:
    now = scene.params
    return [
        replace(menu("shape", list(world.levels["shape"]), now["shape"]), ids=(1,)),
        slider("scale", now["scale"], (0.5, 1), 0.01),
        slider("orientation", now["orientation"], (0, round(2 * math.pi, 3)), 0.01, unit=" rad"),
        slider("x", now["x"], (0, 1), 0.01),
        slider("y", now["y"], (0, 1), 0.01),
    ]


@handles.register
def _(world: Mondrian, scene: Scene) -> list[Handle]:
    return [menu("light", list(range(LIGHTS)), scene.params["light"])]


@handles.register
def _(world: Mosaic, scene: Scene) -> list[Handle]:
    labels = [cell["label"] for cell in scene.params["cells"]]
    names = {label: world.class_name(label) for label in list(world.pool)[:MOST_OPTIONS]} if world.classes else {}
    found = []
    for i, label in enumerate(labels):
        options = [Option(f"{world.class_name(label)}: shown", {}), Option("another of its class", {"cell": i})]
        options += [Option(f"a {name}", {"cell": [i, other]}) for other, name in names.items() if other != label]
        found.append(Handle("menu", f"cell{i}", f"cell {i + 1}", None, options, ids=(i + 1,), removed=1))
    return found
