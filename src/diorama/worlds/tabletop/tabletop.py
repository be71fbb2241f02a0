"""Tabletop: one or three objects on a white table under a movable lamp, with exact R, S and C (staged).

The experiment of Grosse, Johnson, Adelson and Freeman (ICCV 2009), rendered: image = reflectance·shading + specular in
linear light, to the last bit. Lengths are in metres, power in watts. Light 0 is the key light, 1 to 10 are hand-held, 11 is
the second fixed light; `do(scene, uniform=True)` is the twin painted with one gray. The simple and complex, flat and
textured settings are those of the concept sets of Interpreting Intrinsic Image Decomposition (ICVGIP 2022).

    world = Tabletop(objects=3, surface="textured")
    scene = world.sample(rng)
    sweep = world.render([world.do(scene, light_angle=a) for a in range(-44, 45, 2)])

The part map `truth["parts"]` is 0 on the table and i + 1 on object i.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from diorama.core.bounds import Within
from diorama.core.contracts import World
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest

KEY, SECOND, LIGHTS = 0, 11, 12
#: The ranges of the numbers that `do` changes.
_RANGES = {
    "light_angle": Within(-180, 180),
    "temperature": Within(1000, 20000),
    "power": Within(0, 1e6),
    "radius": Within(0.001, 3),
    "fill": Within(0, 100),
    "table": Within(0, 1),
}
#: The ones that may also be None.
_OPTIONAL = ("light_angle", "temperature")
_SLOTS = {1: ((0.0, 0.0),), 3: ((-0.88, -0.2), (0.86, -0.42), (0.08, 0.85))}


@dataclass(frozen=True, slots=True)
class Tabletop(World):
    """Square images of a table with objects, exact layers and geometry.

    size         side of the images in pixels
    samples      light paths per pixel; more give less noise in the shadows
    bounces      number of inter-reflections; 0 for direct light only, with which the layers do not depend on each other
    objects      1 (the paper's simple scenes) or 3 (complex)
    surface      paint of the objects: one colour each (rgb), or textured
    specular     highlights, as a separate layer; False for none
    temperature  black-body temperature of the lamp in kelvin; None for exactly white, so that shading is gray
    power        power of the lamp in watts
    radius       half side of the square lamp in metres; larger makes softer shadows
    fill         radiance of a dim even sky of the lamp's tint, 0 for none
    meshes       folder of OBJ, PLY or GLB files; None for Diorama's own solids
    textures     folder of images; None for Diorama's own patterns
    up           the axis that points up in the files of `meshes`
    """

    size: Annotated[int, Within(8, 4096)] = 128
    samples: Annotated[int, Within(1, 65536)] = 32
    bounces: Annotated[int, Within(0, 64)] = 0
    objects: int = 1
    surface: Literal["rgb", "textured"] = "rgb"
    specular: bool = True
    temperature: Annotated[float, _RANGES["temperature"]] | None = None
    power: Annotated[float, _RANGES["power"]] = 1000.0
    radius: Annotated[float, _RANGES["radius"]] = 0.5
    fill: Annotated[float, _RANGES["fill"]] = 0.15
    meshes: str | None = None
    textures: str | None = None
    up: Literal["y", "z"] = "y"

    cite = ("grosse2009",)
    located = ("meshes", "textures")
    layouts: ClassVar[dict[str, str]] = {"mit": "diorama.worlds.tabletop.mit:write_mit"}
    slow = True
    quick: ClassVar[dict[str, int]] = {"size": 48, "samples": 4}
    truth: ClassVar[tuple[str, ...]] = (
        *("mask", "parts", "reflectance", "shading", "specular", "depth", "normal", "lights", "factors"),
    )
    factors: ClassVar[dict[str, str]] = {
        "light": "0 for the key light, 1 to 10 for the hand-held ones, 11 for the second fixed one",
        "light_angle": "degrees of the key light to the right of the camera, −180 to 180",
        "temperature": "of the lamp in kelvin, 1000 to 20000, or None for exactly white",
        "power": "of the lamp in watts",
        "radius": "half side of the lamp in metres; larger makes softer shadows",
        "fill": "radiance of the even sky, 0 for none",
        "albedo": "one linear [r, g, b] for all objects, or {object: [r, g, b]}",
        "uniform": "True for the twin painted with one gray",
        "specular": "False for no highlights",
        "table": "reflectance of the table, 0 (black paper) to 1",
        "pan": "[right, down]: the picture moved by these shares of its height",
    }

    def __post_init__(self) -> None:
        if self.objects not in _SLOTS:
            raise InputError(f"tabletop: objects={self.objects!r}: there are scenes of 1 (simple) and 3 (complex)")
        for name in self.located:
            folder = getattr(self, name)
            if folder is not None and not Path(folder).expanduser().is_dir():
                raise InputError(f"tabletop: {name}={folder!r}: there is no such folder")

    def fingerprint(self) -> str:
        """The digest of the mesh and texture files, so that keys depend on their content and not on their path."""
        from diorama.worlds.tabletop.meshes import KINDS
        from diorama.worlds.tabletop.paint import IMAGES

        parts = []
        for folder, kinds in ((self.meshes, KINDS), (self.textures, IMAGES)):
            root = Path(folder or ".").expanduser()
            files = (p for p in root.rglob("*") if p.suffix.lower() in kinds) if folder else ()
            parts.append(files_digest(files, root) if folder else "")
        return "/".join(parts)

    def sample(self, rng: np.random.Generator) -> Scene:
        """Objects, paint, camera and all twelve light positions."""
        from diorama.worlds.tabletop.meshes import mesh_names

        names = mesh_names(self.meshes)
        chosen = rng.permutation(len(names))[: self.objects].tolist()
        chosen += rng.integers(len(names), size=self.objects - len(chosen)).tolist()
        things = [self._object(rng, names[i], slot) for i, slot in zip(chosen, _SLOTS[self.objects], strict=True)]
        params = {
            "objects": things,
            "camera": {"elevation": _round(rng.uniform(14, 24)), "distance": 5.4 if self.objects == 1 else 8.4},
            "lights": _draw_lights(rng),
            "light": KEY,
            "light_angle": None,
            "temperature": self.temperature,
            "power": self.power,
            "radius": self.radius,
            "fill": self.fill,
            "table": 0.85,
            "uniform": False,
            "specular": self.specular,
            "pan": [0.0, 0.0],
        }
        return Scene("tabletop", params)

    def _object(self, rng: np.random.Generator, name: str, slot: tuple[float, float]) -> dict[str, Any]:
        shift = rng.uniform(-0.08, 0.08, 2) if self.objects > 1 else np.zeros(2)
        return {
            "mesh": name,
            "position": np.round(shift + slot, 4).tolist(),
            "turn": _round(rng.uniform(-60, 60)),
            "scale": _round(rng.uniform(0.92, 1.0)),
            "paint": self._paint(rng),
            "gloss": [_round(rng.uniform(0.03, 0.06)), _round(rng.uniform(0.12, 0.3))],
        }

    def _paint(self, rng: np.random.Generator) -> list[float] | dict[str, Any]:
        from diorama.worlds.tabletop.paint import draw_colour, draw_pattern, image_names

        if self.surface == "rgb":
            return draw_colour(rng)
        if self.textures is None:
            return draw_pattern(rng)
        names = image_names(self.textures)
        return {"image": names[int(rng.integers(len(names)))]}

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The scene with some factors changed; see `Tabletop.factors`. `light` resets an earlier `light_angle`."""
        if {"light", "light_angle"} <= changes.keys():
            raise InputError("tabletop: give light or light_angle, not both: each says where the lamp is")
        params = dict(scene.params)
        for name, value in changes.items():
            if name not in self.factors:
                raise InputError(f"tabletop cannot change {name!r}; {did_you_mean(name, list(self.factors))}")
            if name == "albedo":
                params["objects"] = _repainted(params["objects"], value)
            else:
                params[name] = _CHECKED[name](name, value)
        if "light_angle" in changes:
            params["light"] = KEY
        elif "light" in changes:
            params["light_angle"] = None
        return Scene(scene.world, params)

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """Trace every scene, all with the same random numbers, so that two images differ only by what was changed."""
        return [self._frame(scene) for scene in scenes]

    def _frame(self, scene: Scene) -> Frame:
        from diorama.render import render
        from diorama.worlds.tabletop.stage import SHADOWS, lamp_position, stage_of

        try:
            stage = stage_of(scene.params, self.meshes, self.textures, self.up)
            picture = render(stage, self.size, self.size, self.samples, self.bounces, shadows=SHADOWS)
        except InputError:
            raise
        except ValueError as error:  # a mesh file cannot be read, the camera is inside an object
            raise InputError(f"tabletop: {error}") from error
        parts = np.maximum(picture["part"], 0).astype(np.uint8)
        truth = {
            "mask": parts > 0,
            "parts": parts,
            "reflectance": picture["albedo"],
            "lights": [lamp_position(scene.params).tolist()],
            "factors": {k: scene.params[k] for k in ("light", "light_angle", "temperature", "uniform", "specular")},
            **{name: picture[name] for name in ("shading", "specular", "depth", "normal")},
        }
        return Frame(scene, picture["image"], "linear", truth)


def _draw_lights(rng: np.random.Generator) -> list[list[float]]:
    """(x, y, z) of the twelve lights: the fixed ones left and right of the camera, the others anywhere in front."""
    azimuth, elevation = rng.uniform(-100, 100, LIGHTS), rng.uniform(20, 70, LIGHTS)
    distance = rng.uniform(4.2, 6.0, LIGHTS)
    azimuth[[KEY, SECOND]] = rng.uniform(35, 60, 2) * (-1, 1)
    elevation[[KEY, SECOND]], distance[[KEY, SECOND]] = rng.uniform(38, 52, 2), 5.0
    a, e = np.radians(azimuth), np.radians(elevation)
    return (distance * [np.cos(e) * np.sin(a), -np.cos(e) * np.cos(a), np.sin(e)]).T.round(4).tolist()


def _repainted(objects: list[dict[str, Any]], value: Any) -> list[dict[str, Any]]:
    paints = value if isinstance(value, dict) else dict.fromkeys(range(len(objects)), value)
    for i, paint in paints.items():
        if not _whole(i, 0, len(objects) - 1):
            raise InputError(f"tabletop: albedo names object {i!r}; the scene has 0 to {len(objects) - 1}")
        if np.shape(paint) != (3,) or not all(_number(v, 0, 1) for v in paint):
            raise InputError(f"tabletop: albedo={paint!r}: give [r, g, b], linear, 0 to 1")
    return [{**thing, "paint": _floats(paints[i])} if i in paints else thing for i, thing in enumerate(objects)]


def _round(value: float) -> float:
    return round(float(value), 4)


def _floats(values: Any) -> list[float]:
    return [float(v) for v in values]


def _whole(value: Any, low: int, high: int) -> bool:
    return bool(isinstance(value, int | np.integer) and not isinstance(value, bool) and low <= value <= high)


def _number(value: Any, low: float, high: float) -> bool:
    fits = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return bool(fits and low <= value <= high)  # False for NaN


def _ranged(name: str, value: Any) -> float | None:
    if name in _OPTIONAL and value is None:
        return None
    low, high = _RANGES[name].low, _RANGES[name].high
    if not _number(value, low, high):
        raise InputError(f"tabletop: {name}={value!r}: give a number from {low:g} to {high:g}")
    return float(value)


def _light(name: str, value: Any) -> int:
    if not _whole(value, 0, LIGHTS - 1):
        raise InputError(f"tabletop: {name}={value!r} does not exist; there are 0 to {LIGHTS - 1}")
    return int(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"tabletop: {name}={value!r}: it is True or False")
    return bool(value)


def _pan(name: str, value: Any) -> list[float]:
    if np.shape(value) != (2,) or not all(_number(v, -0.5, 0.5) for v in value):
        raise InputError(f"tabletop: {name}={value!r}: give [right, down], each −0.5 to 0.5 of the image's height")
    return _floats(value)


_CHECKED: dict[str, Callable[[str, Any], Any]] = {
    "light": _light,
    **dict.fromkeys(_RANGES, _ranged),
    "uniform": _flag,
    "specular": _flag,
    "pan": _pan,
}
