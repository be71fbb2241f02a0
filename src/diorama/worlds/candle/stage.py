"""The stage of candle: solids, paints, lamp and camera of the published simulator; boxes; the composed picture."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from diorama.render.mesh import (
    Mesh,
    box,
    cone,
    cylinder,
    flat,
    plane,
    rotation,
    scaling,
    sphere,
    torus,
    transform,
    translation,
)
from diorama.render.stage import Camera, Instance, PointLight, Stage
from diorama.worlds.candle.factors import HEIGHT, WIDTH
from diorama.worlds.candle.kit import EYE
from diorama.worlds.candle.panoramas import HALF, Panorama, backdrop, directions, view

#: Linear base colours of the released materials.
PAINT = {
    "red": (0.800, 0.0866, 0.0804),
    "blue": (0.0759, 0.0768, 0.800),
    "yellow": (0.800, 0.6083, 0.0561),
    "purple": (0.7257, 0.0879, 0.800),
    "orange": (0.800, 0.2237, 0.0194),
}
#: Where the lamp hangs; +x is on the left of the picture.
LAMPS = {"left": (5.0, -5.0, 7.0), "middle": (0.0, 0.0, 7.0), "right": (-5.0, 5.0, 7.0)}
LAMP_RADIUS = 0.25
#: The released material is glossy with specular 0.5 and roughness 0.5: F0 0.04, alpha 0.25.
GLOSS = (0.04, 0.25)
_REACH = 9  # shadows are looked for within this many sizes of the object
_MARKS = ((90.0, 38.0, (0.8, 0.8, 0.8)), (190.0, 50.0, (0.03, 0.03, 0.03)), (310.0, 26.0, (0.8, 0.8, 0.8)))


@lru_cache(maxsize=1)
def solids() -> dict[str, Mesh]:
    """The five objects at size 2: resting on z = 0, within −1..1 and 2 high; the torus wider and flat. u is the azimuth."""
    up = translation((0, 0, 1))
    return {
        "cube": transform(_cube(), up),
        "sphere": transform(sphere(96, 48), up),
        "cylinder": transform(flat(cylinder(32)), up),
        "cone": transform(cone(96), up),
        "torus": transform(torus(0.25, 96, 36), translation((0, 0, 0.25))),
    }


def _cube() -> Mesh:
    """The box with u = azimuth on its walls, so that marks differ from wall to wall; top and bottom plain."""
    mesh = box()
    v, n = mesh.vertices, mesh.normals
    middle, corner = np.arctan2(n[:, 1], n[:, 0]), np.arctan2(v[:, 1], v[:, 0])
    off = (corner - middle + np.pi) % (2 * np.pi) - np.pi  # keeps a wall on one side of the seam
    u = np.where(np.abs(n[:, 2]) > 0.5, 0.1, (middle + off) / (2 * np.pi))
    return Mesh(v, n, np.stack([u, np.zeros_like(u)], 1), mesh.faces)


def marks(color: str) -> np.ndarray:
    """A paint with two white stripes and a black one at unequal angles, as a texture (1, 720, 3) over the azimuth."""
    azimuth = np.arange(720) / 2 + 0.25
    paint = np.broadcast_to(np.array(PAINT[color]), (720, 3)).copy()
    for middle, wide, stripe in _MARKS:
        paint[np.abs((azimuth - middle + 180) % 360 - 180) < wide / 2] = stripe
    return paint[None].astype(np.float32)


def turn(params: Mapping[str, Any], bug: bool) -> float:
    """The rotation in radians; with `bug` degrees are taken for radians, as released.

    >>> [round(float(np.degrees(turn({"rotation": r}, True))) % 360, 1) for r in (15, 30, 90)]
    [139.4, 278.9, 116.6]
    """
    return float(params["rotation"]) if bug else float(np.radians(params["rotation"]))


def place(params: Mapping[str, Any], bug: bool) -> np.ndarray:
    """The transform of the object: the size is the edge in metres."""
    x, y = params["position"]
    return translation((x, y, 0.0)) @ rotation((0, 0, 1), turn(params, bug)) @ scaling(params["size"] / 2)


def stage_of(params: Mapping[str, Any], panorama: Panorama, power: float, marked: bool, bug: bool) -> Stage:
    """Object, invisible floor, lamp, panorama."""
    basis = view(*params["camera"])
    at, up = np.add(EYE, basis[2]).tolist(), basis[1].tolist()
    camera = Camera(EYE, tuple(at), tuple(up), float(np.degrees(2 * np.arctan(HALF * HEIGHT / WIDTH))))
    colour, texture = ((1.0, 1.0, 1.0), "marks") if marked else (PAINT[params["color"]], None)
    thing = Instance(params["object"], place(params, bug), colour, texture, GLOSS, object=1, part=1)
    floor = Instance("floor", scaling((300, 300, 1)), panorama.floor, object=0, part=0, seen=False)
    lamp = PointLight(LAMPS[params["light"]], (power / (4 * np.pi),) * 3)
    library = {"floor": _floor(), params["object"]: solids()[params["object"]]}
    textures = {"marks": marks(params["color"])} if marked else {}
    return Stage(library, [floor, thing], camera, [lamp] if power > 0 else [], textures, panorama.light)


@lru_cache(maxsize=1)
def _floor() -> Mesh:
    return plane()


# Boxes


def project(points: np.ndarray, basis: np.ndarray, width: int, height: int) -> np.ndarray:
    """Pixel coordinates (n, 2) of world points, from the top left."""
    local = (points - EYE) @ basis.T
    scale = width / (2 * HALF)
    return np.stack([width / 2 + scale * local[:, 0] / local[:, 2], height / 2 - scale * local[:, 1] / local[:, 2]], 1)


def loose_box(params: Mapping[str, Any], bug: bool, width: int = WIDTH, height: int = HEIGHT) -> list[int]:
    """The published box as x0, y0, x1, y1: that of the object's rotated bounding box, before the camera's jitter, not cut
    off at the image's edge."""
    low, high = solids()[params["object"]].bounds.astype(float)
    corners = np.array([[x, y, z, 1] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
    seen = project((corners @ place(params, bug).T)[:, :3], view(), width, height)
    return [round(float(v)) for v in (*seen.min(0), *seen.max(0))]


def visible_box(mask: np.ndarray) -> list[int] | None:
    """The tight box x0, y0, x1, y1 (far edge excluded) of a mask; None if it is empty.

    >>> visible_box(np.array([[0, 0, 0], [0, 1, 1]], bool))
    [1, 1, 3, 2]
    """
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return None
    return [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]


def _window(params: Mapping[str, Any], bug: bool, width: int, height: int) -> tuple[int, int, int, int]:
    """The pixels that the object may touch."""
    points = solids()[params["object"]].vertices.astype(float)
    world = points @ place(params, bug)[:3, :3].T + place(params, bug)[:3, 3]
    seen = project(world, view(*params["camera"]), width, height)
    x0, y0 = np.floor(seen.min(0) - 1).astype(int)
    x1, y1 = np.ceil(seen.max(0) + 1).astype(int)
    x0, x1 = sorted((min(max(x0, 0), width), min(max(x1, 0), width)))
    y0, y1 = sorted((min(max(y0, 0), height), min(max(y1, 0), height)))
    return int(x0), int(y0), int(x1), int(y1)


# Pictures


def picture_of(
    params: Mapping[str, Any], panorama: Panorama, size: tuple[int, int], samples: int, look: tuple[float, bool, bool]
) -> dict[str, np.ndarray]:
    """Image and layers of a scene; `look` is (power of the lamp, marked, rotation bug).

    image = reflectance·shading + specular. On the object these are the paint, its irradiance/π and the gloss; elsewhere
    "reflectance" is the panorama and "shading" the share of light left on the floor: 1 where no shadow falls.
    """
    from diorama.render.catcher import catch_shadows
    from diorama.render.path import render

    power, marked, bug = look
    width, height = size
    stage, basis = stage_of(params, panorama, power, marked, bug), view(*params["camera"])
    seen: dict[str, np.ndarray] = render(
        stage, width, height, samples, bounces=1, window=_window(params, bug, width, height)
    )
    share = catch_shadows(stage, width, height, _REACH * params["size"], LAMP_RADIUS)
    behind = (1 - seen["coverage"])[..., None] * backdrop(panorama, basis, width, height)
    reflectance = seen["albedo"] + behind
    diffuse = seen["albedo"] * seen["shading"] + behind * share
    shading = np.where(reflectance > 0, diffuse / np.where(reflectance > 0, reflectance, 1), 1).astype(np.float32)
    return {
        "image": np.asarray(reflectance * shading + seen["specular"]),
        "reflectance": reflectance,
        "shading": shading,
        "specular": seen["specular"],
        "mask": seen["object"] == 1,
        **_geometry(seen, basis, width, height),
    }


def _geometry(seen: Mapping[str, np.ndarray], basis: np.ndarray, width: int, height: int) -> dict[str, np.ndarray]:
    """Depth along the view and normals of the object and the floor; infinite and 0 above the horizon."""
    down = directions(basis, width, height, HALF)[..., 2]
    floor = np.where(down < 0, -EYE[2] / np.minimum(down, -1e-9), np.inf)
    inside = seen["object"] == 1
    flat = np.where((down < 0)[..., None], np.array([0.0, 0.0, 1.0]), 0.0)
    depth = np.where(inside, seen["depth"], floor).astype(np.float32)
    return {"depth": depth, "normal": np.where(inside[..., None], seen["normal"], flat).astype(np.float32)}


def floor_place(rng: np.random.Generator, scene: str) -> Sequence[float]:
    """A place of the object as published: x in ±4.5, y from −20 to 0 (closer in indoor, hall and grassland)."""
    far, near = {"indoor": (-15, 0), "hall": (-15, 0), "grassland": (-15, -2)}.get(scene, (-20, 0))
    return [round(float(rng.uniform(-4.5, 4.5)), 4), round(float(rng.uniform(far, near)), 4)]
