"""Diorama's own birds: every part as a formula, in bird units about the point where the part is attached.

x points to the viewer's right, y up, z towards the camera. Paired parts are made for the viewer's left and mirrored. Most
shapes are tubes with elliptical cross-sections, so that one function makes a feather, a toe and a beak.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diorama.render.mesh import Mesh, merge, scaling, smooth_normals, sphere, transform, translation

Array = NDArray[np.float64]
Colour = tuple[float, float, float]

#: Linear reflectance, less saturated than the CSS colours, so that the three tones of the toon ramp are visible.
PAINT: dict[str, Colour] = {
    "red": (0.80, 0.085, 0.07),
    "green": (0.07, 0.42, 0.09),
    "blue": (0.07, 0.17, 0.78),
    "yellow": (0.90, 0.55, 0.03),
}
BODY: Colour = (0.47, 0.47, 0.50)
BELLY: Colour = (0.64, 0.64, 0.66)
BLUSH: Colour = (0.85, 0.36, 0.36)
WHITE: Colour = (1.0, 1.0, 1.0)
BLACK: Colour = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Piece:
    """A mesh of a model; if its colour is None it has the paint of its part."""

    mesh: Mesh
    colour: Colour | None = None


Model = tuple[Piece, ...]


def own_models() -> dict[str, Model]:
    """Every model by name: `bird01` (the body), `beak01` … `wing02`."""
    return {name: make() for name, make in _MODELS.items()}


# Tools


def tube(path: ArrayLike, across: ArrayLike, thick: ArrayLike, side: ArrayLike = (1, 0, 0), sectors: int = 12) -> Mesh:
    """A closed tube of elliptical cross-section: half-width `across` along `side`, half-thickness `thick`.

    The path is smoothed; the ends are rounded off to a point.
    """
    centres, widths, depths = _smooth(path, across, thick)
    tangents = _unit(np.gradient(centres, axis=0))
    sides = np.asarray(side, float) - tangents * (tangents @ np.asarray(side, float))[:, None]
    sides = _unit(sides)
    normals = np.cross(tangents, sides)
    angle = np.arange(sectors) * 2 * np.pi / sectors
    rings = (
        centres[:, None]
        + np.cos(angle)[None, :, None] * (widths[:, None] * sides)[:, None]
        + np.sin(angle)[None, :, None] * (depths[:, None] * normals)[:, None]
    )
    return _close(rings)


def _smooth(path: ArrayLike, across: ArrayLike, thick: ArrayLike, steps: int = 15) -> tuple[Array, Array, Array]:
    """Catmull–Rom curves through the given points and for the two half-axes, sampled more densely at the ends."""
    points = np.asarray(path, float)
    knots = np.arange(len(points), dtype=float)
    wide = np.broadcast_to(np.asarray(across, float), knots.shape)
    deep = np.broadcast_to(np.asarray(thick, float), knots.shape)
    t = knots[-1] * (1 - np.cos(np.linspace(0, np.pi, steps + 1))) / 2
    curve = _catmull(np.column_stack([points, wide, deep]), t)
    return curve[:, :3], np.maximum(curve[:, 3], 0), np.maximum(curve[:, 4], 0)


def _catmull(points: Array, t: Array) -> Array:
    padded = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    i = np.minimum(t.astype(int), len(points) - 2)
    f = (t - i)[:, None]
    a, b, c, d = (padded[i + k] for k in range(4))
    return 0.5 * (2 * b + (c - a) * f + (2 * a - 5 * b + 4 * c - d) * f**2 + (3 * (b - c) + d - a) * f**3)


def _close(rings: Array) -> Mesh:
    """The surface over rings (n, k, 3), closed by the centres of the first and last ring, facing outwards."""
    n, k, _ = rings.shape
    ends = [rings[0].mean(0), rings[-1].mean(0)]
    vertices = np.concatenate([rings.reshape(-1, 3), ends])
    here = np.arange(n - 1)[:, None] * k + np.arange(k)
    right = np.arange(n - 1)[:, None] * k + (np.arange(k) + 1) % k
    wall = [np.stack([here, right, right + k], 2), np.stack([here, right + k, here + k], 2)]
    spin = (np.arange(k) + 1) % k
    first = np.stack([spin, np.arange(k), np.full(k, n * k)], 1)
    last = np.stack([np.arange(k), spin, np.full(k, n * k + 1 - (n - 1) * k)], 1) + (n - 1) * k
    faces = np.concatenate([*(w.reshape(-1, 3) for w in wall), first, last])
    faces = faces[_areas(vertices, faces) > 1e-9]
    if _volume(vertices, faces) < 0:
        faces = faces[:, ::-1]
    return Mesh(vertices, smooth_normals(vertices, faces), np.zeros((len(vertices), 2), np.float32), faces)


def _areas(vertices: Array, faces: NDArray[np.integer]) -> Array:
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return np.linalg.norm(np.cross(b - a, c - a), axis=1)


def _volume(vertices: Array, faces: NDArray[np.integer]) -> float:
    a, b, c = (vertices[faces[:, i]] for i in range(3))
    return float((np.cross(a, b) * c).sum()) / 6


def _unit(vectors: Array) -> Array:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def ball(centre: ArrayLike, radii: ArrayLike, fine: int = 2) -> Mesh:
    """An ellipsoid of 12·fine sectors."""
    return transform(sphere(12 * fine, 7 * fine), translation(centre) @ scaling(radii))


def feather(base: ArrayLike, tip: ArrayLike, width: float, bend: ArrayLike = (0, 0, 0), pointed: bool = False) -> Mesh:
    """A leaf from base to tip, bent by `bend` in the middle; round at the end, or pointed like a swallow's."""
    start, end = np.asarray(base, float), np.asarray(tip, float)
    t = np.array([0, 0.3, 0.6, 0.85, 1.0])
    path = start + t[:, None] * (end - start) + (4 * t * (1 - t))[:, None] * np.asarray(bend, float)
    profile = np.array([0.35, 0.8, 1.0, 0.5, 0.0]) if pointed else np.array([0.3, 0.62, 0.95, 0.85, 0.0])
    side = np.cross(end - start, (0, 0, 1))
    return tube(path, width * profile, 2.4 * np.minimum(profile * 1.6, 1) * (t < 1), side=side)


# The body: an egg, a round head with a tuft, a pale belly and two blushing cheeks


def _body() -> Model:
    egg = tube(
        [(0, -6, -50), (0, -5, -34), (0, -3, -8), (0, 1, 18), (0, 6, 40)],
        [0, 18, 29, 28, 0],
        [0, 16, 27, 27, 0],
        sectors=36,
    )
    head = ball((0, 36, 38), (24, 22.5, 23), fine=3)
    tuft = merge(_tuft())
    belly = ball((0, -7, 7), (22, 21, 32))
    cheeks = merge(ball((17.6 * s, 28.5, 50), (4.2, 3.2, 2.4), fine=1) for s in (-1, 1))
    return (Piece(merge([egg, head, tuft]), BODY), Piece(belly, BELLY), Piece(cheeks, BLUSH))


def _tuft() -> Iterator[Mesh]:
    for lean, height in ((-7.5, 10), (0, 14), (7.5, 10)):
        path = [(0.2 * lean, 54, 38), (0.6 * lean, 59 + height * 0.3, 37), (lean, 58 + height, 31)]
        yield tube(path, [2.5, 3.2, 0], [2, 2.4, 0], sectors=8)


# Beaks, attached at (0, 35, 60)


def _parrot() -> Model:
    upper = tube([(0, 4, -8), (0, 7, 3), (0, 4, 12), (0, -5, 15), (0, -15, 10)], [7, 8, 7, 4.5, 0], [6, 6.5, 6, 4, 0])
    lower = tube([(0, -5, -6), (0, -8, 2), (0, -10, 7)], [5, 4.5, 0], [4, 3, 0])
    return (Piece(merge([upper, lower])),)


def _duck() -> Model:
    upper = tube([(0, 2, -8), (0, 0, 4), (0, -3, 14), (0, -2, 23), (0, 0, 27)], [9, 10, 14, 14, 0], [5, 4, 2.6, 2.2, 0])
    lower = tube([(0, -4, -8), (0, -6, 4), (0, -8, 13), (0, -8, 19)], [8, 9, 11, 0], [3, 2.6, 2, 0])
    return (Piece(merge([upper, lower])),)


def _chirp() -> Model:
    upper = tube([(0, 4, -8), (0, 6, 2), (0, 8, 15)], [8, 6.5, 0], [6, 4.5, 0])
    lower = tube([(0, -4, -8), (0, -7, 2), (0, -13, 12)], [7, 5.5, 0], [5, 3.5, 0])
    return (Piece(merge([upper, lower])),)


def _curlew() -> Model:
    path = [(0, 0, -10), (0, 2, 6), (0, 0, 24), (0, -10, 42), (0, -30, 54)]
    return (Piece(tube(path, [6.5, 5.5, 4, 2.8, 0], [6.5, 5.5, 4, 2.8, 0])),)


# Eyes, attached at (∓10, 45, 50); made for the viewer's left


def _eye(centre: Sequence[float], radii: Sequence[float], pupil: Sequence[float], gaze: Sequence[float]) -> Model:
    middle = np.asarray(centre, float) + np.asarray(gaze, float)
    shine = middle + np.multiply((-0.35, 0.45, 0.8), pupil)
    return (
        Piece(ball(centre, radii), WHITE),
        Piece(ball(middle, pupil), BLACK),
        Piece(ball(shine, (0.34 * pupil[0],) * 3, fine=1), WHITE),
    )


def _round_eye() -> Model:
    return _eye((-1.5, 0.5, 3), (8, 8, 7), (4.6, 4.8, 3.4), (1.2, -0.3, 4.6))


def _stalk_eye() -> Model:
    stalk = tube([(2, -4, -4), (-2, 8, -3), (-7, 17, 0)], [2.6, 2.0, 2.0], [2.6, 2.0, 2.0])
    return (Piece(stalk, BODY), *_eye((-8, 21, 0), (7, 7, 6.5), (3.4, 3.4, 2.6), (0.8, 0, 4.8)))


def _tall_eye() -> Model:
    return _eye((0, 7, 0), (5.2, 13, 6), (3.0, 6.2, 2.6), (0.6, -3.0, 4.4))


# Feet, attached at (∓15, −10, 0)


def _leg(points: ArrayLike, radius: float) -> Mesh:
    return tube(points, radius, radius, sectors=8)


def _webbed(x: float, y: float, width: float, length: float) -> Mesh:
    t = np.array([0, 0.35, 0.75, 1.0])
    web = tube(
        np.column_stack([np.full(4, x), np.full(4, y + 0.6), -3 + length * 0.92 * t]),
        width * np.array([0.2, 0.6, 0.98, 0.7]),
        [1.8, 1.6, 1.2, 0.8],
    )
    toes = [
        _leg([(x, y + 1, -2), (x + 0.6 * turn * width, y + 1, 0.6 * length), (x + turn * width, y, length)], 2.1)
        for turn in (-1, 0, 1)
    ]
    return merge([web, *toes])


def _toes(x: float, y: float, length: float, radius: float) -> Mesh:
    tips = [(-0.75, 0.8), (0.0, 1.1), (0.75, 0.8), (0.0, -0.6)]
    return merge(
        tube(
            [(x, y + 2, 0), (x + 0.55 * a * length, y + 2.2, 0.55 * b * length), (x + a * length, y - 1, b * length)],
            [radius, radius, 0],
            [radius, radius, 0],
            sectors=8,
        )
        for a, b in tips
    )


def _wader() -> Model:
    return (Piece(merge([_leg([(0, -8, 0), (-1, -34, 0), (-1, -62, 0)], 2.4), _webbed(-1, -62, 12, 20)])),)


def _paddler() -> Model:
    return (Piece(merge([_leg([(0, -8, 2), (-2, -24, 3), (-3, -34, 3)], 3.4), _webbed(-3, -34, 19, 30)])),)


def _trousers() -> Model:
    puff = tube([(0, -2, 0), (-1, -18, 2), (-1, -34, 1), (-1, -44, 0)], [9, 13, 9, 0], [9, 12, 9, 0], sectors=18)
    return (Piece(merge([puff, _leg([(-1, -38, 0), (-1, -48, 0), (-1, -58, 0)], 3), _toes(-1, -58, 12, 2.8)])),)


def _hen() -> Model:
    leg = tube(
        [(0, -8, 4), (-3, -26, 4), (-6, -40, -7), (-4, -54, -2), (-3, -66, 0)],
        [2.6, 2.4, 4.6, 2.4, 2.2],
        [2.6, 2.4, 4.6, 2.4, 2.2],
    )
    return (Piece(merge([leg, _toes(-3, -67, 21, 2.2)])),)


# Tails, attached at (0, −2, −47)


def _fan() -> Model:
    angles = np.radians([-66, -34, 0, 34, 66])
    tips = [(68 * np.sin(a), 10 + 78 * np.cos(a), -14 - 4 * np.cos(a)) for a in angles]
    return (Piece(merge(feather((0, 0, 0), tip, 15, bend=(0, 0, -10)) for tip in tips)),)


def _plume() -> Model:
    path = [(0, -2, 6), (0, 0, -28), (0, 26, -52), (0, 62, -44), (0, 88, -18), (0, 86, 2)]
    quill = tube(path, [6, 11, 17, 20, 18, 0], [4, 4, 4, 4.5, 4, 0], sectors=18)
    return (Piece(quill),)


def _fork() -> Model:
    blades = [feather((0, 0, 0), (70 * s, 62, -40), 14, bend=(-10 * s, -6, -10), pointed=True) for s in (-1.0, 1.0)]
    return (Piece(merge(blades)),)


# Wings, attached at (∓20, 5, 10); made for the viewer's left


def _waving() -> Model:
    tips = [(-20, 56, -10), (-42, 49, -12), (-56, 33, -13), (-60, 13, -12)]
    blades = [feather((4, -4, -2), tip, 12, bend=(4, -3, -3)) for tip in tips]
    return (Piece(merge([*blades, ball((2, -2, -2), (10, 12, 6))])),)


def _gliding() -> Model:
    tips = [(-66, -30, -16), (-46, -36, -12), (-27, -34, -8)]
    bends = [(-6, 26, 0), (-4, 16, 0), (-4, 7, 0)]
    blades = [feather((6, 4, -2), tip, 13, bend=bend, pointed=True) for tip, bend in zip(tips, bends, strict=True)]
    return (Piece(merge(blades)),)


_MODELS: dict[str, Callable[[], Model]] = {
    "bird01": _body,
    "beak01": _parrot,
    "beak02": _duck,
    "beak03": _chirp,
    "beak04": _curlew,
    "eye01": _round_eye,
    "eye02": _stalk_eye,
    "eye03": _tall_eye,
    "foot01": _wader,
    "foot02": _paddler,
    "foot03": _trousers,
    "foot04": _hen,
    "tail01": _fan,
    "tail02": _plume,
    "tail03": _fork,
    "wing01": _waving,
    "wing02": _gliding,
}
