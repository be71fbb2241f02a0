"""Objects for the tabletop: Diorama's own solids, or a folder of meshes. Each stands on z = 0 and has a standard size."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np

from diorama.core.errors import InputError
from diorama.io.files import check_memory, check_regular
from diorama.render import mesh
from diorama.render.mesh import Mesh, merge, revolve, rotation, scaling, sweep, transform, translation

KINDS = (".obj", ".ply", ".glb")
_FOOT, _HEIGHT = 0.75, 1.7  # radius and height that an object of scale 1 fills


def _spline(points: list[tuple[float, float]], steps: int = 8) -> list[tuple[float, float]]:
    """A smooth (radius, z) profile through a few points."""
    from scipy.interpolate import PchipInterpolator

    at = np.linspace(0, 1, len(points))
    fine = np.linspace(0, 1, steps * (len(points) - 1) + 1)
    return [(max(float(r), 0.0), float(z)) for r, z in PchipInterpolator(at, np.array(points, float))(fine)]


def _ball(at: tuple[float, float, float], size: tuple[float, float, float]) -> Mesh:
    return transform(mesh.sphere(), translation(at) @ scaling(size))


def _vase() -> Mesh:
    outer = [(0, 0), (0.34, 0), (0.5, 0.25), (0.6, 0.65), (0.42, 1.1), (0.22, 1.4), (0.3, 1.62), (0.34, 1.66)]
    return revolve([*_spline(outer), *_spline([(0.29, 1.66), (0.17, 1.4), (0.3, 1.1), (0, 0.9)])])


def _mug() -> Mesh:
    wall = [(0, 0), (0.5, 0), (0.5, 0), (0.52, 0.05), (0.52, 1.1), (0.5, 1.13), (0.46, 1.1), (0.45, 0.1), (0, 0.1)]
    t = np.linspace(-np.pi / 2, np.pi / 2, 25)
    handle = np.stack([0.48 + 0.34 * np.cos(t), 0 * t, 0.57 + 0.36 * np.sin(t)], 1)
    return merge([revolve(wall), sweep(handle, 0.08)])


def _pear() -> Mesh:
    body = [(0, 0.03), (0.3, 0), (0.62, 0.4), (0.48, 0.85), (0.27, 1.25), (0.17, 1.42), (0, 1.46)]
    stem = sweep([(0, 0, 1.4), (0.02, 0, 1.55), (0.08, 0, 1.68)], [0.035, 0.03, 0.0])
    return merge([revolve(_spline(body)), stem])


def _pawn() -> Mesh:
    body = [(0, 0), (0.5, 0), (0.52, 0.12), (0.36, 0.24), (0.2, 0.6), (0.16, 0.95), (0.34, 1.05), (0.14, 1.12)]
    return merge([revolve(_spline(body)), _ball((0, 0, 1.36), (0.3, 0.3, 0.3))])


def _mushroom() -> Mesh:
    stem = _spline([(0, 0), (0.3, 0), (0.2, 0.4), (0.2, 0.8)])
    cap = _spline([(0.2, 0.74), (0.66, 0.68), (0.7, 0.8), (0.5, 1.15), (0.25, 1.28), (0, 1.32)])
    return merge([revolve(stem), revolve(cap)])


def _rings() -> Mesh:
    sizes = ((0.5, 0.17), (0.4, 0.53), (0.3, 0.87), (0.2, 1.17))
    tyres = [transform(mesh.torus(0.36), translation((0, 0, z)) @ scaling((r, r, r * 0.36 + 0.3))) for r, z in sizes]
    return merge([*tyres, transform(mesh.cylinder(), translation((0, 0, 0.65)) @ scaling((0.16, 0.16, 0.65)))])


def _duck() -> Mesh:
    body = _ball((0, 0, 0.42), (0.68, 0.5, 0.44))
    head = _ball((0.36, 0, 1.02), (0.33, 0.31, 0.32))
    beak = _ball((0.72, 0, 0.98), (0.17, 0.16, 0.06))
    tail = transform(mesh.cone(), translation((-0.66, 0, 0.66)) @ rotation((0, 1, 0), -0.9) @ scaling((0.2, 0.2, 0.24)))
    wings = [_ball((-0.08, side * 0.44, 0.5), (0.38, 0.12, 0.24)) for side in (-1, 1)]
    return merge([body, head, beak, tail, *wings])


def _rabbit() -> Mesh:
    body = [_ball((0, 0, 0.42), (0.5, 0.44, 0.44)), _ball((0.24, 0, 0.98), (0.34, 0.32, 0.32))]
    lean = rotation((0, 1, 0), -0.25)
    for side in (-1, 1):
        ear = transform(mesh.sphere(), translation((0.12, side * 0.15, 1.42)) @ lean @ scaling((0.07, 0.11, 0.36)))
        body += [ear, _ball((0.4, side * 0.25, 0.1), (0.2, 0.12, 0.1))]
    return merge([*body, _ball((-0.5, 0, 0.34), (0.14, 0.14, 0.14))])


def _egg_cup() -> Mesh:
    cup = [(0, 0), (0.36, 0), (0.34, 0.06), (0.12, 0.2), (0.12, 0.36), (0.4, 0.6), (0.46, 0.84), (0.42, 0.84)]
    return merge([revolve(_spline(cup)), _ball((0, 0, 0.98), (0.4, 0.4, 0.52))])


_OWN: dict[str, Callable[[], Mesh]] = {
    "duck": _duck,
    "egg_cup": _egg_cup,
    "mug": _mug,
    "mushroom": _mushroom,
    "pawn": _pawn,
    "pear": _pear,
    "rabbit": _rabbit,
    "rings": _rings,
    "vase": _vase,
}

#: The two solids among the meshes of the concept sets (Gupta et al. 2022) that need no file.
PLAIN: dict[str, Callable[[], Mesh]] = {"Cube": mesh.box, "Sphere": mesh.sphere}


def mesh_names(folder: str | None) -> tuple[str, ...]:
    """The names of the bundled solids, or of the mesh files of a folder."""
    if folder is None:
        return tuple(_OWN)
    names = tuple(sorted(p.name for p in Path(folder).expanduser().iterdir() if p.suffix.lower() in KINDS))
    if not names:
        raise InputError(f"meshes={folder!r} holds no mesh; put OBJ, PLY or GLB files there")
    return names


@lru_cache(maxsize=64)
def mesh_named(name: str, folder: str | None, up: str) -> Mesh:
    """A mesh by name, upright, standing on z = 0 at the origin, scaled to the standard size."""
    if folder is None or name in PLAIN:
        return _placed({**_OWN, **PLAIN}[name]())
    path = Path(folder).expanduser() / name
    check_regular(path)
    check_memory(path.stat().st_size, path)
    read = merge(mesh.read_mesh(path).values())
    if not read.uv.any():
        read = _charted(read)
    return _placed(transform(read, rotation((1, 0, 0), np.pi / 2)) if up == "y" else read)


def _placed(shape: Mesh) -> Mesh:
    low, high = shape.bounds.astype(float)
    foot = np.hypot(*(high - low)[:2] / 2)
    scale = min(_FOOT / max(foot, 1e-9), _HEIGHT / max(high[2] - low[2], 1e-9))
    centre = ((low + high) / 2 * (1, 1, 0)) + (0, 0, low[2])
    return transform(shape, scaling(scale) @ translation(-centre))


def _charted(shape: Mesh) -> Mesh:
    """The mesh with texture coordinates |angle| and height: mirrored front to back, so that there is no seam."""
    low, high = shape.bounds.astype(float)
    x, y, z = (shape.vertices - (low + high) / 2).T / max(np.ptp(shape.bounds, axis=0).max(), 1e-9)
    return Mesh(shape.vertices, shape.normals, np.stack([np.abs(np.arctan2(x, z)) / np.pi, y + 0.5], 1), shape.faces)
