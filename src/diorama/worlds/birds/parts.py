"""Where the parts of a bird go, and the stage that is rendered for a bird scene.

Placement is the published table (three.js r141 units). Own meshes are made in bird units about the same points; the
official GLB files keep their own scales and rotations.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diorama.core.errors import InputError
from diorama.core.scene import canonical
from diorama.render.mesh import Mesh, box, merge, read_mesh, revolve, rotation, sphere, transform
from diorama.render.stage import Camera, Instance, PointLight, Stage
from diorama.worlds.birds.classes import BACKGROUND, CATALOGUE, IDS, PARTS, SUB_PARTS
from diorama.worlds.birds.meshes import BLACK, PAINT, WHITE, Colour, Model, Piece, own_models
from diorama.worlds.birds.scenes import Params, camera_eye, point

Vector = tuple[float, float, float]
Matrix = NDArray[np.float64]

CSS: dict[str, Colour] = {
    "red": (1.0, 0.0, 0.0),
    "green": (0.0, 128 / 255, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "yellow": (1.0, 1.0, 0.0),
}
GREY: Colour = (0xAA / 255, 0xAA / 255, 0xAA / 255)


def placed(position: Vector, scale: Vector = (1.0, 1.0, 1.0), turn: Vector = (0.0, 0.0, 0.0)) -> Matrix:
    """Scaled, then turned by Rx·Ry·Rz (three.js' default Euler order), then moved."""
    (a, b, c), (d, e, f) = map(math.cos, turn), map(math.sin, turn)
    x, y, z = scale
    return np.array(
        [
            [b * c * x, -b * f * y, e * z, position[0]],
            [(a * f + c * d * e) * x, (a * c - d * e * f) * y, -b * d * z, position[1]],
            [(d * f - a * c * e) * x, (c * d + a * e * f) * y, a * b * z, position[2]],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


OFFICIAL_PLACES: dict[str, Matrix] = {
    "body": placed((0, 0, 0), (20, 20, 20)),
    "beak": placed((0, 35, 60), (8, 8, 8), (0, 3.14, 0)),
    "foot01": placed((-15, -10, 0), (8, 8, 8), (0, 3.14, 0.01)),
    "foot02": placed((15, -10, 0), (8, 8, 8), (0, 3.14, -0.01)),
    "eye01": placed((-10, 45, 50), (5, 5, 5), (0, -0.2, 0)),
    "eye02": placed((10, 45, 50), (5, 5, 5), (0, 0.2, 0)),
    "tail": placed((0, -2, -47), (15, 15, 15)),
    "wing01": placed((-20, 5, 10), (35, -35, 35), (-0.3, 0, 0)),
    "wing02": placed((20, 5, 10), (-35, -35, 35), (-0.3, 0, 0)),
}
OWN_PLACES: dict[str, Matrix] = {
    "body": placed((0, 0, 0)),
    "beak": placed((0, 35, 60)),
    "foot01": placed((-15, -10, 0)),
    "foot02": placed((15, -10, 0), (-1, 1, 1)),
    "eye01": placed((-10, 45, 50), (1, 1, 1), (0, -0.2, 0)),
    "eye02": placed((10, 45, 50), (-1, 1, 1), (0, 0.2, 0)),
    "tail": placed((0, -2, -47)),
    "wing01": placed((-20, 5, 10)),
    "wing02": placed((20, 5, 10), (-1, 1, 1)),
}


@dataclass(frozen=True, slots=True, eq=False)
class PartSet:
    """Models by name, the transform of every part, and the colours of paints."""

    models: Mapping[str, Model]
    places: Mapping[str, Matrix]
    paint: Mapping[str, Colour]

    def library(self) -> dict[str, Mesh]:
        """Every piece under the name that its instances use."""
        return {f"{name}.{i}": piece.mesh for name, model in self.models.items() for i, piece in enumerate(model)}


@cache
def part_set(folder: str | None) -> PartSet:
    """Diorama's own parts, or the official ones from a folder of GLB files."""
    if folder is None:
        return PartSet(own_models(), OWN_PLACES, PAINT)
    return PartSet(official_models(Path(folder)), OFFICIAL_PLACES, CSS)


def official_models(folder: Path) -> dict[str, Model]:
    """The models of `bird01.glb`, `beak/beak01.glb`, …; an InputError names the file that is missing or broken."""
    if not folder.is_dir():
        raise InputError(f"parts={str(folder)!r}: no such folder; give the one that holds bird01.glb")
    names = sorted({variant.model for part in PARTS for variant in CATALOGUE[part]})
    body = {"bird01": tuple(Piece(mesh, GREY) for mesh in read_glb(folder / "bird01.glb").values())}
    return body | {name: _official(folder, name) for name in names}


def _official(folder: Path, name: str) -> Model:
    part = name.rstrip("0123456789")
    meshes = read_glb(folder / part / f"{name}.glb")
    if part != "eye":
        return (Piece(merge(meshes.values())),)
    return tuple(Piece(mesh, BLACK if node == "Sphere.001" else WHITE) for node, mesh in meshes.items())


def read_glb(path: Path) -> dict[str, Mesh]:
    """The named meshes of a GLB file, in the file's world space."""
    if not path.is_file():
        raise InputError(f"missing part file {path}; the official set has bird01.glb and 16 part models")
    try:
        return read_mesh(path)
    except ValueError as error:
        raise InputError(str(error)) from error


# Background objects: three.js primitives, with the published misuse of their constructor arguments


_UP = np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1]])  # z-up solids to y-up, seam towards +z


@lru_cache(maxsize=8192)
def primitive(shape: str, scale: Vector) -> tuple[Mesh, Vector]:
    """The mesh of a background object and its scale; meshes are shared between objects where that is exact.

    box(x, y, z) · cone(radius x, height y, z segments) · sphere(radius x, y by z segments) ·
    cylinder(top radius x, bottom radius y, height z; 8 segments) · capsule(radius x, length y, z segments per cap).
    """
    x, y, z = scale
    if shape == "box":
        return _shared(box), (x / 2, y / 2, z / 2)
    if shape == "cone":
        return _shared(_cone, max(3, int(z))), (x, y / 2, x)
    if shape == "sphere":
        return _shared(_ball, max(3, int(y)), max(2, int(z))), (x, x, x)
    if shape == "cylinder":
        return _shared(_cylinder, x / y), (y, z / 2, y)
    return _capsule(x, y, max(1, int(z))), (1, 1, 1)


@lru_cache(maxsize=1024)
def _shared(make: Callable[..., Mesh], *shape: float) -> Mesh:
    """A mesh, made once for each shape: objects with the same mesh are drawn together."""
    return make(*shape)


def _cone(segments: int) -> Mesh:
    return transform(revolve([(0, -1), (1, -1), (1, -1), (0, 1)], segments), _UP)


def _cylinder(top: float) -> Mesh:
    return transform(revolve([(0, -1), (1, -1), (1, -1), (top, 1), (top, 1), (0, 1)], 8), _UP)


def _ball(across: int, down: int) -> Mesh:
    return transform(sphere(across, down), rotation((0, 1, 0), -np.pi / 2) @ _UP)


def _capsule(radius: float, length: float, segments: int) -> Mesh:
    angle = np.linspace(0, np.pi / 2, 2 * segments + 1)
    lower = [(radius * np.sin(a), -radius * np.cos(a) - length / 2) for a in angle]
    return transform(revolve([*lower, *((r, -h) for r, h in reversed(lower))], 8), _UP)


# The stage


Cast = dict[str, tuple[Any, Any]]


def cast_of(params: Params) -> Cast:
    """The parts and objects of a scene, by layer name: ("wing", 3) for a part, (7, {…}) for background object 7."""
    cast: Cast = {"0 body": ("body", 0)}
    for i, (part, variant) in enumerate(params["parts"].items()):
        if variant is not None:
            cast[f"{i + 1} {part} {variant}"] = (part, variant)
    for i, thing in enumerate(params["background"]):
        if thing is not None:
            cast[f"object {i:02d} {canonical(thing)}"] = (i, thing)
    return cast


def stage_of(cast: Cast, params: Params, parts: PartSet) -> Stage:
    """The cast in front of the camera and under the lamp of `params`, in the order of its layer names."""
    library = dict(_library(parts))
    instances: list[Instance] = []
    for layer in sorted(cast):
        who, what = cast[layer]
        if isinstance(who, int):
            instances.append(_object(who, what, layer, parts, library))
        else:
            instances += _bird_part(who, what, layer, parts)
    light = params["light"]
    lamp = PointLight(point(light["distance"], light["pitch"], light["roll"]), (4.0, 4.0, 4.0))
    camera = Camera(eye=camera_eye(params["camera"]), up=(0.0, 1.0, 0.0), fov_degrees=40.0)
    return Stage(library=library, instances=instances, camera=camera, lights=[lamp])


@lru_cache(maxsize=4)
def _library(parts: PartSet) -> dict[str, Mesh]:
    return parts.library()


def model_of(part: str, variant: int) -> str:
    """The name of the model behind a variant of a part, or behind the body."""
    return "bird01" if part == "body" else CATALOGUE[part][variant].model


def _bird_part(part: str, variant: int, layer: str, parts: PartSet) -> list[Instance]:
    paint = parts.paint[(CATALOGUE[part][variant].color if part != "body" else None) or "yellow"]
    model = model_of(part, variant)
    return [
        Instance(
            mesh=f"{model}.{i}",
            transform=parts.places[sub],
            colour=piece.colour or paint,
            object=IDS[sub],
            part=IDS[sub],
            layer=layer,
        )
        for sub in SUB_PARTS[part]
        for i, piece in enumerate(parts.models[model])
    ]


def _object(i: int, thing: Mapping[str, Any], layer: str, parts: PartSet, library: dict[str, Mesh]) -> Instance:
    mesh, size = primitive(thing["shape"], tuple(thing["scale"]))
    name = f"background {i}"
    while library.setdefault(name, mesh) is not mesh:  # another scene of the group has another object of this number
        name += "'"
    return Instance(
        mesh=name,
        transform=placed(point(thing["radius"], thing["pitch"], thing["roll"]), size, thing["rotation"]),
        colour=parts.paint[thing["color"]],
        object=BACKGROUND + i,
        part=BACKGROUND + i,
        layer=layer,
    )
