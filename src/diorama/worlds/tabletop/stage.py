"""The studio: a white table whose far end curves up into a backdrop, a camera in front, a square lamp, a dim even sky."""

from functools import lru_cache
from typing import Any

import numpy as np

from diorama.render.colour import black_body
from diorama.render.mesh import Mesh, rotation, scaling, smooth_normals, translation
from diorama.render.stage import Camera, Environment, Instance, RectLight, Stage
from diorama.worlds.tabletop.meshes import mesh_named
from diorama.worlds.tabletop.paint import texture_of

#: Reflectance of the uniformly painted twin.
UNIFORM = 0.75
#: Image value per unit of radiance (W/(m²·sr)); makes a white card under 1,000 W at 5 m about 1.
EXPOSURE = 0.28
#: Rays that a light path sends to lamp and sky if its pixel lies in the lamp's penumbra.
SHADOWS = 4
_FOV, _TARGET = 24.0, (0.0, 0.0, 0.62)
Params = dict[str, Any]


def lamp_position(params: Params) -> np.ndarray:
    """The lamp's position: one of the scene's, or the key light's rotated to `light_angle` from the camera."""
    position = np.array(params["lights"][params["light"]])
    if params["light_angle"] is None:
        return position
    turn, reach = np.radians(params["light_angle"]), np.hypot(*position[:2])
    return np.array([reach * np.sin(turn), -reach * np.cos(turn), position[2]])


def tint(kelvin: float | None) -> np.ndarray:
    """The lamp's linear RGB: a black body of luminance 1, or exactly white."""
    return np.ones(3) if kelvin is None else black_body(kelvin)


def lamp(params: Params) -> RectLight:
    """A square of side 2·radius facing the objects; radiance = exposure·power/(π·area)."""
    position, radius = lamp_position(params), params["radius"]
    towards = np.subtract(_TARGET, position)
    towards = towards / np.linalg.norm(towards)
    u = np.cross(towards, (0.0, 1.0, 0.0) if abs(towards[2]) > 0.99 else (0.0, 0.0, 1.0))
    u = u / np.linalg.norm(u)
    v = np.cross(towards, u)
    radiance = EXPOSURE * params["power"] / (np.pi * 4 * radius**2) * tint(params["temperature"])
    edges = 2 * radius * u, 2 * radius * v
    return RectLight(_triple(position - radius * (u + v)), _triple(edges[0]), _triple(edges[1]), _triple(radiance))


def stage_of(params: Params, meshes: str | None, textures: str | None, up: str) -> Stage:
    """Everything that is rendered of a scene."""
    library, images, instances = {"table": _cove()}, {}, [_table(params["table"])]
    for i, thing in enumerate(params["objects"], 1):
        library[thing["mesh"]] = mesh_named(thing["mesh"], meshes, up)
        colour, texture = (UNIFORM,) * 3, None
        if not params["uniform"] and isinstance(thing["paint"], dict):
            colour, texture = (1.0, 1.0, 1.0), f"paint{i}"
            images[texture] = texture_of(thing["paint"], textures)
        elif not params["uniform"]:
            colour = _triple(thing["paint"])
        gloss = tuple(thing["gloss"]) if params["specular"] else None
        instances.append(Instance(thing["mesh"], _place(thing), colour, texture, gloss, object=i, part=i))
    sky = None
    if params["fill"] > 0:
        sky = Environment(np.broadcast_to(params["fill"] * tint(params["temperature"]), (4, 8, 3)), seen=False)
    return Stage(library, instances, _camera(params), [lamp(params)], images, sky)


def _triple(values: Any) -> tuple[float, float, float]:
    x, y, z = (float(v) for v in values)
    return x, y, z


def _table(reflectance: float) -> Instance:
    return Instance("table", colour=(reflectance,) * 3, object=0, part=0)


def _place(thing: dict[str, Any]) -> np.ndarray:
    turn = rotation((0, 0, 1), np.radians(thing["turn"]))
    return translation((*thing["position"], 0.0)) @ turn @ scaling(thing["scale"])


def _camera(params: Params) -> Camera:
    """The camera in front of the table; `pan` moves the picture right and down by shares of its height."""
    view = params["camera"]
    tilt = np.radians(view["elevation"])
    eye = np.add(_TARGET, view["distance"] * np.array([0.0, -np.cos(tilt), np.sin(tilt)]))
    right, up, _ = Camera(_triple(eye), _TARGET, fov_degrees=_FOV).basis()
    reach = 2 * view["distance"] * np.tan(np.radians(_FOV) / 2)
    at = np.add(_TARGET, reach * (params["pan"][1] * up - params["pan"][0] * right))
    return Camera(_triple(eye), _triple(at), fov_degrees=_FOV)


@lru_cache(maxsize=1)
def _cove() -> Mesh:
    """A sheet 40 wide: flat to y = 1.8, then a quarter circle of radius 1.5, then upright to z = 20."""
    turn = np.linspace(0, np.pi / 2, 25)
    y = np.concatenate([[-30], 1.8 + 1.5 * np.sin(turn), [3.3]])
    z = np.concatenate([[0], 1.5 - 1.5 * np.cos(turn), [20]])
    vertices = np.concatenate([np.stack([np.full_like(y, x), y, z], 1) for x in (-20, 20)])
    n = len(y)
    i = np.arange(n - 1)
    faces = np.concatenate([np.stack([i, i + n, i + n + 1], 1), np.stack([i, i + n + 1, i + 1], 1)])
    return Mesh(vertices, smooth_normals(vertices, faces), np.zeros((2 * n, 2), np.float32), faces)
