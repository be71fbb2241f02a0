"""What the sets of candle are built from: skies, surface textures, trees, houses, rooms. Everything is procedural.

A place on a set is given as seen from the camera: (right, depth) in metres, height above the floor.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from diorama.core.scene import rng
from diorama.render.mesh import (
    Mesh,
    box,
    cylinder,
    plane,
    rotation,
    scaling,
    smooth_normals,
    sphere,
    sweep,
    translation,
)
from diorama.render.stage import Instance, RectLight

EYE = (0.0, 14.0, 3.76)  # the camera stands here and looks along −y; right is −x
Colour = tuple[float, float, float]


class Sky(NamedTuple):
    """Radiance by direction (…, 3) without the sun's disc; that of the disc; and the sun as a lamp far away."""

    even: Callable[[np.ndarray], np.ndarray]
    disc: Callable[[np.ndarray], np.ndarray] | None = None
    sun: RectLight | None = None


class Piece(NamedTuple):
    """One thing on a set."""

    mesh: str
    transform: np.ndarray
    colour: Colour = (1.0, 1.0, 1.0)
    texture: str | None = None
    gloss: tuple[float, float] | None = None


class Set(NamedTuple):
    """A whole set: its pieces, the sky around it, its lamps, the mean brightness of its photograph, and the light paths per
    pixel of that photograph (rooms need more).
    """

    pieces: Sequence[Piece]
    sky: Sky
    lamps: Sequence[RectLight] = ()
    key: float = 0.2
    samples: int = 24


def at(right: float, depth: float, height: float = 0.0) -> np.ndarray:
    """The translation to a place on the set."""
    return translation((-right, EYE[1] - depth, height))


# Noise and textures


@lru_cache(maxsize=32)
def noise(name: str, slope: float, size: int = 512) -> np.ndarray:
    """A periodic random field with spectrum 1/f^slope, mean 1/2 and most values in 0..1 (n, n)."""
    white = np.fft.rfft2(rng(0, "candle noise", name, size).standard_normal((size, size)))
    f = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None]) * size
    field = np.fft.irfft2(white * np.where(f > 0, np.maximum(f, 1.0) ** -slope, 0), (size, size))
    return (0.5 + field / (5 * field.std())).clip(0, 1).astype(np.float32)


def mixed(a: Colour, b: Colour, share: np.ndarray) -> np.ndarray:
    """Two colours mixed pixel by pixel, (h, w, 3)."""
    s = np.clip(share, 0, 1)[..., None]
    return (np.array(a) * (1 - s) + np.array(b) * s).astype(np.float32)


def speckled(
    dark: Colour, light: Colour, name: str, fine: float = 0.6, size: int = 1024, slope: float = 0.35
) -> np.ndarray:
    """Ground: coarse patches and grain between two colours; `fine` is the share of the grain, `slope` its coarseness."""
    coarse, grain = noise(name, 1.6, size), noise(name + " grain", slope, size)
    return mixed(dark, light, 0.5 + (1 - fine) * 2.2 * (coarse - 0.5) + fine * 2.2 * (grain - 0.5))


def grooved(
    texture: np.ndarray, rows: int, columns: int, width: float, dark: float, stagger: bool = False
) -> np.ndarray:
    """Joints between planks, slabs or bricks: darker lines, and a different tone for every piece."""
    n = texture.shape[0]
    y, x = np.mgrid[0:n, 0:n] / n
    row = np.floor(y * rows).astype(int)
    shift = (0.5 * (row % 2) if stagger else 0) / columns
    column = np.floor(((x + shift) % 1) * columns).astype(int)
    tone = 0.85 + 0.3 * rng(0, "candle joints", rows, columns).random((rows, columns))[row, column]
    near = np.minimum(
        np.abs((y * rows + 0.5) % 1 - 0.5) / rows, np.abs(((x + shift) * columns + 0.5) % 1 - 0.5) / columns
    )
    return (texture * (tone * np.where(near < width, dark, 1))[..., None]).astype(np.float32)


def facade(
    wall: Colour, glass: Colour, rows: int, columns: int, lit: float = 0.0, glow: Colour = (1, 0.8, 0.5)
) -> np.ndarray:
    """A house front with rows × columns windows, some of them lit."""
    n = 256
    y, x = np.mgrid[0:n, 0:n] / n
    inside = (np.abs((x * columns) % 1 - 0.5) < 0.28) & (np.abs((y * rows) % 1 - 0.5) < 0.32)
    cell = np.floor(y * rows).astype(int), np.floor(x * columns).astype(int)
    tone = rng(0, "candle windows", rows, columns).random((rows, columns))[cell]
    panes = np.where((tone < lit)[..., None], np.array(glow), np.array(glass) * (0.5 + tone[..., None]))
    plaster = mixed(wall, (wall[0] * 0.8, wall[1] * 0.8, wall[2] * 0.8), noise("plaster", 1.2, n))
    return np.where(inside[..., None], panes, plaster).astype(np.float32)


# Skies


def sky(
    zenith: Colour,
    horizon: Colour,
    clouds: float = 0.0,
    sun: tuple[float, float, float] | None = None,
    gray: float = 1.0,
    contrast: float = 0.7,
) -> Sky:
    """A sky of two colours with a share of clouds; `sun` is (degrees right of the view, elevation, irradiance).

    Nothing shines from below the horizon. The sun's disc has a radius of one degree, so that a map can resolve it.
    """
    field = noise("clouds", 1.7, 1024)

    def even(directions: np.ndarray) -> np.ndarray:
        d = directions / np.linalg.norm(directions, axis=-1, keepdims=True)
        up = np.clip(d[..., 2], 0, 1)
        light = mixed(horizon, zenith, np.sqrt(up)).astype(np.float64)
        if clouds > 0:
            reach = 90 / (up + 0.12)
            cover = _sampled(field, d[..., 0] * reach, d[..., 1] * reach)
            share = np.clip((cover - 0.75 + 0.55 * clouds) * 5, 0, 1) * np.clip(up * 12, 0, 1)
            shade = gray * (0.75 + contrast * (_sampled(field, d[..., 0] * reach + 7, d[..., 1] * reach + 3) - 0.4))
            light += share[..., None] * (shade[..., None] * np.array([0.98, 0.99, 1.02]) - light)
        if sun is not None:
            light += 0.012 * sun[2] * np.exp(-_degrees_off(d, sun) / 6)[..., None] * _SUN
        return light * (d[..., 2:] > -0.04)

    if sun is None:
        return Sky(even)
    # a soft edge from 0.5 to 1.5 degrees: ∫ disc dω = 1.03e-3
    return Sky(
        even,
        lambda d: sun[2] / 1.03e-3 * np.clip(1.5 - _degrees_off(d, sun), 0, 1)[..., None] * _SUN,
        _sun_lamp(_sun_direction(sun), sun[2]),
    )


def veiled(clear: Sky, sun: tuple[float, float, float], width: float) -> Sky:
    """A sky with the glow of a sun behind clouds, `width` degrees wide, in place of a disc; `sun` as for `sky`."""
    peak = sun[2] / (np.pi * np.radians(width) ** 2)
    return Sky(lambda d: clear.even(d) + peak * np.exp(-((_degrees_off(d, sun) / width) ** 2))[..., None] * _SUN)


_SUN = np.array([1.0, 0.94, 0.82])


def _sun_direction(sun: tuple[float, float, float]) -> np.ndarray:
    a, e = np.radians(sun[0]), np.radians(sun[1])
    return np.array([-np.sin(a) * np.cos(e), -np.cos(a) * np.cos(e), np.sin(e)])


def _degrees_off(d: np.ndarray, sun: tuple[float, float, float]) -> np.ndarray:
    cosine = d @ _sun_direction(sun) / np.linalg.norm(d, axis=-1)
    return np.asarray(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def _sun_lamp(towards: np.ndarray, power: float) -> RectLight:
    """A square 2 degrees wide, 2 km away, that gives the irradiance `power`."""
    far, side = 2000.0, 70.0
    u = np.cross((0, 0, 1), towards)
    u *= side / np.linalg.norm(u)
    v = np.cross(u, towards)
    corner, bright = far * towards - (u + v) / 2, power * (far / side) ** 2 * _SUN
    return RectLight(tuple(corner.tolist()), tuple(u.tolist()), tuple(v.tolist()), tuple(bright.tolist()))


def _sampled(field: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A periodic field at any place, bilinear."""
    n = len(field)
    x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
    fx, fy = x - x0, y - y0
    a, b, c, d = x0 % n, (x0 + 1) % n, y0 % n, (y0 + 1) % n
    top = (1 - fx) * field[c, a] + fx * field[c, b]
    found: np.ndarray = (1 - fy) * top + fy * ((1 - fx) * field[d, a] + fx * field[d, b])
    return found


# Things


@lru_cache(maxsize=1)
def meshes() -> dict[str, Mesh]:
    """The meshes that pieces name: unit solids, leaves, tubes."""
    return {
        "box": _upright_box(),
        "ball": sphere(32, 16),
        "rod": cylinder(24),
        "sheet": plane(),
        "ground": _tiled(plane(), 400 / 24),
        "leaves": _leaves(5000),
        "slide": sweep(_helix(), 0.42, 16),
        "vault": _vault(),
        "hill": _hill(),
        "apron": _apron(),
    }


def _mesh(points: np.ndarray, normals: np.ndarray, uv: np.ndarray, faces: np.ndarray) -> Mesh:
    return Mesh(points.astype(np.float32), normals.astype(np.float32), uv.astype(np.float32), faces.astype(np.int32))


def _tiled(mesh: Mesh, times: float) -> Mesh:
    return Mesh(mesh.vertices, mesh.normals, mesh.uv * times, mesh.faces)


def _upright_box() -> Mesh:
    """The cube with textures upright on its four walls: u runs along the wall, v from the top down."""
    mesh = box()
    v, n = mesh.vertices, mesh.normals
    along = np.where(np.abs(n[:, :1]) > 0.5, v[:, 1:2] * n[:, :1], -v[:, :1] * np.where(n[:, 1:2] > 0.5, 1, -1))
    side = np.concatenate([(along + 1) / 2, (1 - v[:, 2:]) / 2], 1)
    flat = (v[:, :2] + 1) / 2
    return Mesh(v, n, np.where(np.abs(n[:, 2:]) > 0.5, flat, side), mesh.faces)


def _leaves(count: int) -> Mesh:
    """A crown of radius 1: triangular leaves scattered near the surface of lumps, each with a shade of its own."""
    chance = rng(0, "candle leaves")
    lumps = chance.normal(size=(22, 3)) * (0.42, 0.42, 0.36)
    out = chance.normal(size=(count, 3))
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    middle = lumps[chance.integers(len(lumps), size=count)] + out * chance.uniform(0.24, 0.36, (count, 1))
    corners = middle[:, None] + chance.normal(size=(count, 3, 3)) * 0.03
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    uv = np.repeat(chance.random((count, 2)), 3, axis=0)
    faces = np.arange(3 * count).reshape(-1, 3)
    return _mesh(corners.reshape(-1, 3), np.repeat(normal, 3, axis=0), uv, faces)


def _helix() -> np.ndarray:
    t = np.linspace(0, 1, 60)
    turn = 2.2 * np.pi * t
    return np.stack([1.7 * np.cos(turn) - 1.7 * t, 1.7 * np.sin(turn), 5.2 * (1 - t) ** 1.1 + 0.4], 1)


def _vault() -> Mesh:
    """A half tube of radius 1 along y from −1 to 1, seen from inside."""
    turn, along = np.meshgrid(np.linspace(0, np.pi, 49), np.linspace(-1, 1, 2))
    points = np.stack([np.cos(turn), along, np.sin(turn)], -1).reshape(-1, 3)
    inward = points * (-1, 0, -1)
    uv = np.stack([turn / np.pi * 6, (along + 1) * 12], -1).reshape(-1, 2)
    i = np.arange(48)
    faces = np.concatenate([np.stack([i, i + 1, i + 50], 1), np.stack([i, i + 50, i + 49], 1)])
    return _mesh(points, inward, uv, faces)


def _hill() -> Mesh:
    """A ragged ridge: the sheet −1..1 lifted by noise, 0 at its rim."""
    mesh = plane(96, 96)
    x, y = mesh.vertices[:, 0].astype(float), mesh.vertices[:, 1].astype(float)
    rough = _sampled(noise("hill", 1.8, 256), x * 60 + 31, y * 60 + 47)
    z = np.clip(1 - x**2, 0, 1) * np.clip(1 - y**2, 0, 1) * (0.25 + 1.3 * rough)
    points = np.stack([x, y, z], 1)
    return _mesh(points, smooth_normals(points, mesh.faces), mesh.uv * 8, mesh.faces)


def _apron() -> Mesh:
    """Ground from 30 m behind the origin to a ragged edge near it, 80 m wide; its texture repeats every 24 m."""
    mesh = plane(400, 1)
    x, far = mesh.vertices[:, 0].astype(float) * 40, mesh.vertices[:, 1] < 0
    ragged = 2.2 * (_sampled(noise("edge", 1.3, 256), x * 3, 0 * x) - 0.5) + 0.7 * _sampled(
        noise("tufts", 0.3, 256), x * 9, 0 * x
    )
    points = np.stack([x, np.where(far, ragged, 30.0), 0 * x], 1)
    return _mesh(points, mesh.normals, points[:, :2] / 24, mesh.faces)


def block(
    right: float, depth: float, size: tuple[float, float, float], colour: Colour, texture: str | None = None,
    height: float = 0.0,
) -> Piece:  # fmt: skip
    """A box of (width, thickness, height) standing at a place, its bottom at `height`."""
    w, t, h = size
    return Piece("box", at(right, depth, height + h / 2) @ scaling((w / 2, t / 2, h / 2)), colour, texture)


def post(right: float, depth: float, radius: float, tall: float, colour: Colour, height: float = 0.0) -> Piece:
    """An upright rod."""
    return Piece("rod", at(right, depth, height + tall / 2) @ scaling((radius, radius, tall / 2)), colour)


def beam(a: tuple[float, float, float], b: tuple[float, float, float], radius: float, colour: Colour) -> Piece:
    """A rod between two places (right, depth, height)."""
    p, q = (np.array([-r, EYE[1] - d, h]) for r, d, h in (a, b))
    way = q - p
    long = float(np.linalg.norm(way))
    axis = np.cross((0.0, 0.0, 1.0), way / long)
    angle = float(np.arctan2(np.linalg.norm(axis), way[2] / long))
    turn = rotation(axis if np.linalg.norm(axis) > 1e-9 else (1, 0, 0), angle)
    return Piece("rod", translation((p + q) / 2) @ turn @ scaling((radius, radius, long / 2)), colour)


def tree(right: float, depth: float, tall: float, turn: float, shade: Colour = (1, 1, 1)) -> list[Piece]:
    """A trunk and a crown rotated by `turn` radians, so that trees differ."""
    wide = 0.42 * tall
    crown = at(right, depth, 0.66 * tall) @ rotation((0, 0, 1), turn) @ scaling((wide, wide, 0.46 * tall))
    return [post(right, depth, 0.03 * tall, 0.6 * tall, (0.09, 0.06, 0.04)), Piece("leaves", crown, shade, "leaf")]


def wood(
    start: float, end: float, depth: float, tall: tuple[float, float], step: float, shade: Colour = (1, 1, 1)
) -> list[Piece]:
    """A row of trees from `start` to `end` (right), two deep."""
    chance = rng(0, "candle wood", start, end, depth)
    pieces: list[Piece] = []
    for right in np.arange(start, end, step):
        for row in range(2):
            place = right + chance.uniform(-0.4, 0.4) * step, depth + (row + chance.uniform(-0.3, 0.3)) * step
            pieces += tree(*place, float(chance.uniform(*tall)), float(chance.uniform(0, 6)), shade)
    return pieces


def hedge(start: float, end: float, depth: float, tall: float, shade: Colour = (1, 1, 1)) -> list[Piece]:
    """Crowns without trunks, close together on the ground."""
    chance = rng(0, "candle hedge", start, end, depth)
    pieces = []
    for right in np.arange(start, end, 0.75 * tall):
        high = tall * chance.uniform(0.8, 1.25)
        place = at(right, depth + chance.uniform(-0.3, 0.3) * tall, 0.4 * high)
        turn = rotation((0, 0, 1), chance.uniform(0, 6))
        pieces.append(Piece("leaves", place @ turn @ scaling((0.75 * tall, 0.75 * tall, 0.7 * high)), shade, "leaf"))
    return pieces


def room(half: float, back: float, tall: float, walls: str, ceiling: Colour, front: float = -6.0) -> list[Piece]:
    """Four walls and a ceiling around camera and floor: ±half wide, from depth `front` (behind the camera) to `back`."""
    middle, long = (front + back) / 2, back - front
    return [
        block(0, back + 0.1, (2 * half, 0.2, tall), (1, 1, 1), walls),
        block(0, front - 0.1, (2 * half, 0.2, tall), (1, 1, 1), walls),
        block(-half - 0.1, middle, (0.2, long + 0.4, tall), (1, 1, 1), walls),
        block(half + 0.1, middle, (0.2, long + 0.4, tall), (1, 1, 1), walls),
        block(0, middle, (2 * half + 0.4, long + 0.4, 0.2), ceiling, None, tall),
    ]


def turned(pieces: Sequence[Piece], degrees: float, pivot: np.ndarray, to: np.ndarray) -> list[Piece]:
    """Pieces rotated together about the upright axis through `pivot`, which is then moved to the place `to`.

    Places are translations made by `at`; a positive angle rotates to the left as seen from above.
    """
    move = to @ rotation((0, 0, 1), float(np.radians(degrees))) @ np.linalg.inv(pivot)
    return [piece._replace(transform=move @ piece.transform) for piece in pieces]


def lamp(
    right: float, depth: float, height: float, size: tuple[float, float], radiance: float, tint: Colour = (1, 1, 1)
) -> RectLight:
    """A panel (wide, deep) that shines down."""
    x, y, _ = at(right, depth)[:3, 3].tolist()
    bright = (radiance * tint[0], radiance * tint[1], radiance * tint[2])
    return RectLight((x - size[0] / 2, y + size[1] / 2, height), (size[0], 0, 0), (0, -size[1], 0), bright)


def window_light(
    right: float, depth: float, height: float, size: tuple[float, float], radiance: float, side: int
) -> RectLight:
    """An upright panel (long, tall) on a side wall that shines to the right (side 1) or to the left (side −1)."""
    x, y, _ = at(right, depth)[:3, 3].tolist()
    edge = (0.0, -side * size[0], 0.0)
    return RectLight((x, y + side * size[0] / 2, height), edge, (0, 0, size[1]), (radiance,) * 3)


def instances(pieces: Sequence[Piece]) -> list[Instance]:
    """The pieces as instances of a stage."""
    return [Instance(p.mesh, p.transform, p.colour, p.texture, p.gloss) for p in pieces]
