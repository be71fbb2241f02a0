"""The shapes of dSprites by rules recovered from its published frames: which pixel centres lie inside.

Nothing is antialiased: a pixel is 1 if its centre is inside the shape. In pixels at scale 1, around the origin of rotation:
a square of side 19.2; an ellipse with semi-axes 12.767 and 7.213; a heart, a polygon symmetric about the vertical whose
radius by angle from "up" is in the table below. Lengths were fitted to the 320 frames of dsprites.gif, so images are not
those of the data set bit for bit: a few pixels differ on some frames (see the tests).
"""

from typing import Any

import numpy as np

SHAPES = ("square", "ellipse", "heart")
#: Side of the image, and half the window that holds every shape at scale 1.
SIZE, REACH = 64, 14
NAMES = ("shape", "scale", "orientation", "x", "y")
#: The number of values of each factor in dSprites.
COUNTS = (3, 6, 40, 32, 32)

_SQUARE, _ELLIPSE = 9.6, (12.767, 7.213)
_HEART = """
    0 5.15  3 6.04  6 7.06  9 7.65  12 8.39  15 8.86  18 9.50  21 9.82  24 10.17  27 10.46  30 10.73  35 11.03  40 11.19
    45 11.31  50 11.23  55 11.12  60 10.88  65 10.62  70 10.16  75 9.77  80 9.17  85 8.70  90 8.06  95 7.65  100 7.26
    105 6.88  110 6.62  115 6.33  120 6.19  125 6.03  130 5.93  135 5.99  140 5.90  145 5.95  150 6.19  153 6.17  156 6.34
    159 6.36  162 6.77  165 6.76  168 7.11  171 7.48  174 7.89  177 8.51  180 9.65
"""
_ANGLES, _RADII = np.array(_HEART.split(), float).reshape(-1, 2).T
_ANGLES = np.radians(_ANGLES)


def are_counts(counts: tuple[int, ...]) -> bool:
    """Whether these are five positive whole numbers, none larger than in dSprites."""
    whole = len(counts) == len(COUNTS) and all(isinstance(n, int) for n in counts)
    return whole and all(1 <= n <= most for n, most in zip(counts, COUNTS, strict=True))


def levels(counts: tuple[int, ...]) -> dict[str, tuple[Any, ...]]:
    """`counts` evenly spaced values of every factor, in the published order."""
    whole = (range(3), np.linspace(0.5, 1, 6), np.linspace(0, 2 * np.pi, 40), *[np.linspace(0, 1, 32)] * 2)
    places = [_spread(n, len(v), name == "orientation") for name, v, n in zip(NAMES, whole, counts, strict=True)]
    chosen = [tuple(np.asarray(v)[place].tolist()) for v, place in zip(whole, places, strict=True)]
    return {"shape": tuple(SHAPES[i] for i in chosen[0]), **dict(zip(NAMES[1:], chosen[1:], strict=True))}


def _spread(count: int, total: int, cyclic: bool) -> np.ndarray:
    """`count` of `total` indices, evenly spaced; if `cyclic`, first and last are one value and the last is left out."""
    if cyclic and count < total:
        return np.arange(count) * (total - 1) // count
    return np.linspace(0, total - 1, count).round().astype(int)


def silhouettes(
    shape: np.ndarray, scale: np.ndarray, orientation: np.ndarray, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Images (n, 64, 64) uint8 of 0 and 1. Shapes are 0, 1, 2; the centre is at 16 + 32·x, 16 + 32·y pixels; angles in
    radians, anticlockwise on the screen."""
    images = np.zeros((len(shape), SIZE, SIZE), np.uint8)
    centre = np.stack([16 + 32 * x, 16 + 32 * y], axis=1)
    corner = np.floor(centre).astype(int) - REACH
    steps = np.arange(2 * REACH + 1) + 0.5
    dx, dy = (corner[:, i, None] + steps - centre[:, i, None] for i in (0, 1))
    cosine, sine = (f(orientation)[:, None, None] / scale[:, None, None] for f in (np.cos, np.sin))
    u = cosine * dx[:, None, :] - sine * dy[:, :, None]
    v = sine * dx[:, None, :] + cosine * dy[:, :, None]
    window = np.zeros(u.shape, bool)
    for i, inside in enumerate((_in_square, _in_ellipse, _in_heart)):
        mine = shape == i
        window[mine] = inside(u[mine], v[mine])
    rows, columns = (corner[:, i, None] + np.arange(2 * REACH + 1) for i in (1, 0))
    canvas = np.pad(images, ((0, 0), (REACH, REACH), (REACH, REACH)))
    n = np.arange(len(shape))[:, None, None]
    canvas[n, rows[:, :, None] + REACH, columns[:, None, :] + REACH] = window
    return canvas[:, REACH:-REACH, REACH:-REACH]


def _in_square(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.maximum(np.abs(u), np.abs(v)) < _SQUARE


def _in_ellipse(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (u / _ELLIPSE[0]) ** 2 + (v / _ELLIPSE[1]) ** 2 < 1


def _in_heart(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Below the chord between the two vertices on either side: r < r₁r₂ sin(a₂−a₁) / (r₁ sin(a−a₁) + r₂ sin(a₂−a))."""
    angle, radius = np.arctan2(np.abs(u), -v), np.hypot(u, v)
    i = np.clip(np.searchsorted(_ANGLES, angle, side="right") - 1, 0, len(_ANGLES) - 2)
    r1, r2, a1, a2 = _RADII[i], _RADII[i + 1], _ANGLES[i], _ANGLES[i + 1]
    chord = r1 * r2 * np.sin(a2 - a1) / (r1 * np.sin(angle - a1) + r2 * np.sin(a2 - angle))
    return radius < chord
