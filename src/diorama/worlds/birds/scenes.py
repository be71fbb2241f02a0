"""The JSON of a bird scene, how one is drawn, and every change that `do` may make to it.

    {"label": 25, "parts": {"beak": 0, "eye": null, …}, "camera": {"distance", "pitch", "roll"},
     "light": {"distance", "pitch", "roll"}, "background": [{"shape", "radius", "pitch", "roll", "scale", "rotation",
     "color"}, null, …]}

Removed parts and removed background objects are `null`, so that the others keep their names and indices.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from diorama.core.errors import InputError, did_you_mean
from diorama.worlds.birds.classes import CATALOGUE, PARTS

Params = dict[str, Any]

SHAPES = ("box", "cone", "sphere", "cylinder", "capsule")
COLOURS = ("red", "green", "blue", "yellow")
MOST_OBJECTS = 51  # the part-map code of object i is (204, 204, 204 + i)
VIEW = ("distance", "pitch", "roll")
OBJECT = ("shape", "radius", "pitch", "roll", "scale", "rotation", "color")

#: What `do` may change, and what it may be changed to.
FACTORS: dict[str, str] = {
    "label": "the class; gives the bird all five parts of that class",
    **{part: f"variant 0 to {len(CATALOGUE[part]) - 1}, or None: removed" for part in PARTS},
    "camera": "any of distance, pitch, roll; the bird is always seen from the front",
    "light": "any of distance, pitch, roll of the one lamp",
    "background": "the indices of the objects to keep, or a new list of objects (None: an empty place)",
    "background_without": "the index, or the indices, of objects to remove; the others keep their numbers",
}


def point(radius: float, pitch: float, roll: float) -> tuple[float, float, float]:
    """The point (r·sin p·cos q, −r·sin q, r·cos p·cos q) of radius r, pitch p and roll q.

    >>> [round(v, 3) for v in point(2.0, 0.0, 0.0)]
    [0.0, -0.0, 2.0]
    """
    return (
        radius * math.sin(pitch) * math.cos(roll),
        -radius * math.sin(roll),
        radius * math.cos(pitch) * math.cos(roll),
    )


def camera_eye(camera: Mapping[str, float]) -> tuple[float, float, float]:
    """The published camera: x and y on the sphere, but z forced to the distance, so never behind the bird."""
    x, y, _ = point(camera["distance"], camera["pitch"], camera["roll"])
    return x, y, float(camera["distance"])


def bounding_radius(thing: Mapping[str, Any]) -> float:
    """The radius of a sphere around a background object's position that contains it."""
    a, b, c = thing["scale"]
    return {
        "box": math.hypot(a, b, c) / 2,
        "cone": math.hypot(a, b / 2),
        "sphere": a,
        "cylinder": math.hypot(max(a, b), c / 2),
        "capsule": a + b / 2,
    }[thing["shape"]]


def engulfs(thing: Mapping[str, Any], eye: Sequence[float]) -> bool:
    """Whether the camera may be inside a background object (by its bounding sphere, with the near plane's unit)."""
    centre = point(thing["radius"], thing["pitch"], thing["roll"])
    return math.dist(centre, eye) < bounding_radius(thing) + 1


def draw_params(rng: np.random.Generator, classes: Sequence[Mapping[str, int]], most: int, removal: bool) -> Params:
    """A scene drawn with the published distributions, without objects that would contain the camera.

    `removal` removes n ~ U{0..5} random parts from half of the birds, as in the training split.
    """
    label = int(rng.integers(len(classes)))
    distance, count = int(rng.integers(200, 401)), int(rng.integers(0, most + 1))
    camera_pitch, camera_roll, light_pitch, light_roll = rng.uniform(0, 2 * math.pi, 4).tolist()
    camera = {"distance": distance, "pitch": camera_pitch, "roll": camera_roll}
    removed = rng.permutation(len(PARTS))[: rng.integers(0, 6)] if removal and rng.integers(2) else ()
    gone = {PARTS[i] for i in removed}
    return {
        "label": label,
        "parts": {part: None if part in gone else classes[label][part] for part in PARTS},
        "camera": camera,
        "light": {"distance": distance, "pitch": light_pitch, "roll": light_roll},
        "background": [thing for thing in _draw_objects(rng, count) if not engulfs(thing, camera_eye(camera))],
    }


def _draw_objects(rng: np.random.Generator, count: int) -> list[Params]:
    shapes, paints = rng.integers(5, size=count).tolist(), rng.integers(4, size=count).tolist()
    radii, scales = rng.integers(100, 201, count).tolist(), rng.integers(5, 21, (count, 3)).tolist()
    angles = rng.uniform(0, 2 * math.pi, (count, 5)).tolist()
    return [
        {
            "shape": SHAPES[shapes[i]],
            "radius": radii[i],
            "pitch": angles[i][0],
            "roll": angles[i][1],
            "scale": scales[i],
            "rotation": angles[i][2:],
            "color": COLOURS[paints[i]],
        }
        for i in range(count)
    ]


def change(params: Params, changes: Mapping[str, Any], classes: Sequence[Mapping[str, int]]) -> Params:
    """The parameters after `changes`; all others stay as they are."""
    for name in changes:
        if name not in FACTORS:
            raise InputError(f"a bird has no {name!r}; {did_you_mean(name, list(FACTORS))}")
    new = dict(params)
    for name in sorted(changes, key=list(FACTORS).index):  # a label comes before the parts that refine it
        new |= _CHANGERS[name](new, name, changes[name], classes)
    return new


def _label(params: Params, name: str, value: Any, classes: Sequence[Mapping[str, int]]) -> Params:
    index = _whole(name, value, len(classes), "class")
    return {"label": index, "parts": dict(classes[index])}


def _part(params: Params, name: str, value: Any, classes: Sequence[Mapping[str, int]]) -> Params:
    variant = None if _is_none(value) else _whole(name, value, len(CATALOGUE[name]), "None (removed) or variant")
    return {"parts": params["parts"] | {name: variant}}


def _view(params: Params, name: str, value: Any, classes: Sequence[Mapping[str, int]]) -> Params:
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"{name}={value!r}: give one or more of {', '.join(VIEW)}, as in {{'pitch': 0.5}}")
    for key in value:
        if key not in VIEW:
            raise InputError(f"{name} has no {key!r}; {did_you_mean(str(key), list(VIEW))}")
    new = {key: _number(f"{name} {key}", value[key]) for key in value}
    if not 0 < new.get("distance", 1.0) <= 2000:
        raise InputError(
            f"{name} distance={new['distance']!r}: give more than 0 and at most 2000 (published: 200 to 400)"
        )
    return {name: params[name] | new}


def _background(params: Params, name: str, value: Any, classes: Sequence[Mapping[str, int]]) -> Params:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"background={value!r}: give a list, of indices to keep or of objects")
    values, old = list(value), params["background"]
    if values and all(_is_whole(v) for v in values):
        keep = {_whole(name, v, len(old), "object") for v in values}
        return {"background": [thing if i in keep else None for i, thing in enumerate(old)]}
    if len(values) > MOST_OBJECTS:
        raise InputError(f"background has {len(values)} objects; at most {MOST_OBJECTS} have a code in the part map")
    return {"background": [None if thing is None else check_object(thing) for thing in values]}


def _without(params: Params, name: str, value: Any, classes: Sequence[Mapping[str, int]]) -> Params:
    old = params["background"]
    values = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    gone = {_whole(name, v, len(old), "object") for v in values}
    return {"background": [None if i in gone else thing for i, thing in enumerate(old)]}


_CHANGERS: dict[str, Callable[[Params, str, Any, Sequence[Mapping[str, int]]], Params]] = {
    "label": _label,
    **dict.fromkeys(PARTS, _part),
    "camera": _view,
    "light": _view,
    "background": _background,
    "background_without": _without,
}


def check_object(thing: Any) -> Params:
    """A background object with plain JSON values, or an InputError that says what is wrong with it."""
    if not isinstance(thing, Mapping) or set(thing) != set(OBJECT):
        raise InputError(f"a background object has {', '.join(OBJECT)}, not {str(thing)[:80]!r}")
    for key, allowed in (("shape", SHAPES), ("color", COLOURS)):
        if thing[key] not in allowed:
            raise InputError(f"background {key}={thing[key]!r}: it is one of {', '.join(allowed)}")
    for key in ("scale", "rotation"):
        if not isinstance(thing[key], list | tuple) or len(thing[key]) != 3:
            raise InputError(f"background {key}={str(thing[key])[:60]}: give a list of three numbers")
    triples = {key: [_number(f"background {key}", v) for v in thing[key]] for key in ("scale", "rotation")}
    if not all(0 < v <= 200 for v in triples["scale"]):
        raise InputError(f"background scale={triples['scale']!r}: each must be above 0 and at most 200")
    numbers = {key: _number(f"background {key}", thing[key]) for key in ("radius", "pitch", "roll")}
    return {"shape": thing["shape"], **numbers, **triples, "color": thing["color"]}


def check_params(params: Params, classes: int) -> None:
    """Raise InputError unless the parameters describe a bird scene."""
    kinds = {"label": int, "parts": dict, "camera": dict, "light": dict, "background": list}
    for name, kind in kinds.items():
        if not isinstance(params.get(name), kind):
            raise InputError(f"not a bird scene: {name} is {str(params.get(name))[:60]!r}, not a {kind.__name__}")
    for name, keys in (("parts", PARTS), ("camera", VIEW), ("light", VIEW)):
        if set(params[name]) != set(keys):
            raise InputError(f"not a bird scene: {name} has {', '.join(params[name])}; it needs {', '.join(keys)}")
    _whole("label", params["label"], classes, "class")
    for part, variant in params["parts"].items():
        _part(params, part, variant, ())
    for name in ("camera", "light"):
        _view(params, name, params[name], ())
    if len(params["background"]) > MOST_OBJECTS or any(_is_whole(thing) for thing in params["background"]):
        raise InputError(f"not a bird scene: background is a list of at most {MOST_OBJECTS} objects or None")
    for thing in params["background"]:
        if thing is not None:
            check_object(thing)


def flat_factors(params: Params) -> dict[str, Any]:
    """The factors of a scene in a flat dictionary."""
    views = {f"{name}_{key}": params[name][key] for name in ("camera", "light") for key in VIEW}
    shown = sum(thing is not None for thing in params["background"])
    return {"label": params["label"], **params["parts"], **views, "background": shown}


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.lower() == "none")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(name: str, value: Any, count: int, what: str) -> int:
    if not _is_whole(value) or not 0 <= value < count:
        allowed = f"{what} 0 to {count - 1}" if count else f"no {what} at all: there is none"
        raise InputError(f"{name}={value!r}: allowed is {allowed}")
    return int(value)


def _number(name: str, value: Any) -> float:
    plain = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not plain or not -1e6 <= value <= 1e6:
        raise InputError(f"{name}={value!r}: give a number of at most a million")
    return int(value) if _is_whole(value) else float(value)
