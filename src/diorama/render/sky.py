"""Importance sampling of light from the sky, in proportion to brightness times the cosine at the surface.

The map is cut into tiles. For each of 625 groups of normals there is a table of the tiles' brightness times their cosine;
inside a tile pixels are drawn by brightness alone. The density of every direction is known exactly, so the estimate is
unbiased, and few rays are wasted on the sky behind a surface. An even sky needs no table: its directions are drawn by the
cosine alone, so that every unblocked ray contributes the same.
"""

# mypy: disable-error-code="no-untyped-def"
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diorama.render.jit import inlined
from diorama.render.sampling import cosine_direction, to_world
from diorama.render.stage import Environment

_CELLS = 25  # groups of normals along each side of the octahedral square; odd, so that one has +z in its middle
_TILES = 16, 32  # at most so many rows and columns of tiles
_FINE = 64  # rows that a map has at least; a smaller one is enlarged, pixel by pixel
_LUMINANCE = (0.2126, 0.7152, 0.0722)


class Sky(NamedTuple):
    """A map and its tables: cumulative shares over tiles for every group of normals, and over pixels in every tile."""

    image: NDArray[np.float32]  # (h, w, 3); (0, 0, 3) for none
    rows: NDArray[np.float64]  # (groups, tile rows)
    columns: NDArray[np.float64]  # (groups, tile rows, tile columns)
    inner_rows: NDArray[np.float64]  # (tile rows, tile columns, pixel rows in a tile)
    inner_columns: NDArray[np.float64]  # (h, w), beginning anew in every tile
    even: bool  # all pixels equal; then there are no tables


_NO_TABLES = np.zeros((0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0))
NO_SKY = Sky(np.zeros((0, 0, 3), np.float32), *_NO_TABLES, False)


@lru_cache(maxsize=4)
def sky_of(environment: Environment) -> Sky:
    """The tables of an environment."""
    image = np.ascontiguousarray(environment.image, np.float32)
    if image.ndim != 3 or image.shape[2] != 3 or not image.size or not np.isfinite(image).all() or image.min() < 0:
        raise ValueError("render: the environment must be a finite (h, w, 3) array without negative values")
    if (image == image[0, 0]).all():
        return Sky(image, *_NO_TABLES, True)
    times = math.ceil(_FINE / image.shape[0])
    image = np.ascontiguousarray(image.repeat(times, 0).repeat(times, 1))
    height, width = image.shape[:2]
    high, wide = (
        max(n for n in range(1, most + 1) if size % n == 0) for size, most in zip((height, width), _TILES, strict=True)
    )
    light = image.astype(float) @ _LUMINANCE
    # a floor keeps dark pixels reachable, which colours outside the luminance weights need
    weight = (light + 1e-4 * light.mean() + 1e-12) * np.sin((np.arange(height) + 0.5) / height * np.pi)[:, None]
    tiles = weight.reshape(high, height // high, wide, width // wide)
    each = tiles.sum((1, 3)) * _cosines(high, wide).reshape(-1, high, wide)
    inner_columns = _cumulative(tiles).reshape(height, width)
    inner_rows = _cumulative(tiles.sum(3).transpose(0, 2, 1))
    return Sky(image, _cumulative(each.sum(2)), _cumulative(each), inner_rows, inner_columns, False)


def _cumulative(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative shares along the last axis; exactly 1 at the end."""
    steps = np.cumsum(weight, -1)
    return np.ascontiguousarray(steps / steps[..., -1:])


@lru_cache(maxsize=8)
def _cosines(high: int, wide: int) -> NDArray[np.float64]:
    """(groups, tiles): max(cos, 0) between the normals of a group and a tile, halfway between its mean and its maximum,
    and never 0."""
    theta = (np.arange(4 * high) + 0.5) / (4 * high) * np.pi
    phi = (np.arange(4 * wide) + 0.5) / (4 * wide) * 2 * np.pi - np.pi
    level = np.broadcast_to(np.cos(theta)[:, None], (4 * high, 4 * wide))
    around = [np.sin(theta)[:, None] * f(phi) for f in (np.cos, np.sin)]
    directions = np.stack([*around, level], -1)
    found = np.zeros((_CELLS * _CELLS, high * wide))
    steps = (np.arange(3 * _CELLS) + 0.5) / (3 * _CELLS) * 2 - 1
    normals = _unfolded(*np.meshgrid(steps, steps)).reshape(_CELLS, 3, _CELLS, 3, 3).transpose(0, 2, 1, 3, 4)
    for group, few in enumerate(normals.reshape(-1, 9, 3)):
        cosine = np.maximum(directions @ few.T, 0).reshape(high, 4, wide, 4, 9)
        found[group] = (cosine.mean((1, 3, 4)) + cosine.max((1, 3, 4))).ravel() / 2
    return found + 0.004


def _unfolded(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The unit vectors at places of the octahedral square −1..1 (Meyer et al. 2010)."""
    z = 1 - np.abs(x) - np.abs(y)
    fold = np.maximum(-z, 0)
    found = np.stack([x - np.copysign(fold, x), y - np.copysign(fold, y), z], -1)
    return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True))


@inlined
def _group(nx, ny, nz):
    """The group of a normal."""
    scale = 1 / (abs(nx) + abs(ny) + abs(nz))
    x, y = nx * scale, ny * scale
    if nz < 0:
        x, y = math.copysign(1 - abs(y), x), math.copysign(1 - abs(x), y)
    column, row = int((x + 1) * (0.5 * _CELLS)), int((y + 1) * (0.5 * _CELLS))
    return min(row, _CELLS - 1) * _CELLS + min(column, _CELLS - 1)


@inlined
def _found(steps, u):
    """The cell of cumulative shares that contains u, its share, and the place of u in the cell."""
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if steps[middle] <= u:
            low = middle + 1
        else:
            high = middle
    start = steps[low - 1] if low > 0 else 0.0
    share = steps[low] - start
    return low, share, min((u - start) / max(share, 1e-300), 0.99999994)


@inlined
def _share(steps, cell):
    return steps[cell] - (steps[cell - 1] if cell > 0 else 0.0)


@inlined
def sky_direction(u, v, nx, ny, nz, sky):
    """A direction for a surface with this normal, its pixel, and its density per solid angle."""
    if sky.even:
        x, y, z = cosine_direction(u, v)
        dx, dy, dz = to_world(nx, ny, nz, x, y, z)
        return dx, dy, dz, 0, 0, z / math.pi
    height, width = sky.inner_columns.shape
    group = _group(nx, ny, nz)
    tall, broad = sky.inner_rows.shape[2], width // sky.columns.shape[2]
    tile_row, p, u = _found(sky.rows[group], u)
    tile_column, q, v = _found(sky.columns[group, tile_row], v)
    y, r, u = _found(sky.inner_rows[tile_row, tile_column], u)
    row, start = tile_row * tall + y, tile_column * broad
    x, s, v = _found(sky.inner_columns[row, start : start + broad], v)
    theta, phi = (row + u) / height * math.pi, (start + x + v) / width * 2 * math.pi - math.pi
    sine = math.sin(theta)
    density = p * q * r * s * width * height / (2 * math.pi * math.pi * max(sine, 1e-6))
    return sine * math.cos(phi), sine * math.sin(phi), math.cos(theta), row, start + x, density


@inlined
def sky_density(row, column, dx, dy, dz, nx, ny, nz, sky):
    """The density per solid angle with which `sky_direction` draws a direction in one pixel."""
    if sky.even:
        return max(nx * dx + ny * dy + nz * dz, 0.0) / math.pi
    height, width = sky.inner_columns.shape
    group = _group(nx, ny, nz)
    tall, broad = sky.inner_rows.shape[2], width // sky.columns.shape[2]
    tile_row, tile_column = row // tall, column // broad
    start = tile_column * broad
    p = _share(sky.rows[group], tile_row) * _share(sky.columns[group, tile_row], tile_column)
    p *= _share(sky.inner_rows[tile_row, tile_column], row - tile_row * tall)
    p *= _share(sky.inner_columns[row, start : start + broad], column - start)
    return p * width * height / (2 * math.pi * math.pi * math.sqrt(max(1e-12, 1 - dz * dz)))
