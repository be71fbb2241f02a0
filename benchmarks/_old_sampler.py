"""The light sampler of before 2026-11-18, kept to be compared with: the sky drawn by brightness alone, lobes apart.

`render_old` gives the layers `albedo`, `shading` and `specular` of `diorama.render.render` as that sampler makes them.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diorama.render.jit import inlined, kernel
from diorama.render.path import lens
from diorama.render.sampling import (
    cosine_direction,
    environment_pixel,
    ggx,
    ggx_direction,
    hashed,
    sobol,
    to_local,
    to_world,
)
from diorama.render.stage import Environment, PointLight, RectLight, Stage
from diorama.render.surface import arrive, new_points, surfaces
from diorama.render.trace import (
    CAMERA,
    DIRECTION,
    FAR,
    GEOMETRY,
    MASK,
    NOTHING,
    T_FAR,
    EmbreeScene,
    intersect,
    new_packet,
    occluded,
    set_ray,
)

_U = np.uint32
_INVERSE_PI = 1 / math.pi
_TWO_PI = 2 * math.pi


def render_old(
    stage: Stage, width: int, height: int, samples: int, bounces: int, seed: int = 0, window: tuple | None = None
) -> dict[str, np.ndarray]:
    """Layers of an image, or of the part of it that `window` (x0, y0, x1, y1) names."""
    x0, y0, x1, y1 = window or (0, 0, width, height)
    sums, coverage = np.zeros((4, height, width, 3), np.float32), np.zeros((height, width), np.float32)
    setting = samples, bounces, seed & 0xFFFFFFFF, False
    with EmbreeScene(stage) as embree:
        span = y0, y1, x0, x1
        radiance(embree, surfaces(stage), lights(stage), lens(stage, width, height), span, setting, sums, coverage)
    albedo, diffuse, plain, specular = sums
    shading = np.where(albedo > 0, diffuse / np.where(albedo > 0, albedo, 1), plain)
    layers = {"albedo": albedo, "shading": shading, "specular": specular, "coverage": coverage}
    return {**layers, "image": albedo * shading + specular}


class Lights(NamedTuple):
    """Rectangles (corner, edges, normal, dual edges, radiance), their areas, points (position, intensity), the sky."""

    rects: NDArray[np.float64]
    areas: NDArray[np.float64]
    points: NDArray[np.float64]
    sky: NDArray[np.float32]  # (0, 0, 3) for none
    sky_rows: NDArray[np.float64]
    sky_columns: NDArray[np.float64]


def lights(stage: Stage) -> Lights:
    """Tabulate the lights of a stage."""
    rects = [light for light in stage.lights if isinstance(light, RectLight)]
    points = [(light.position, light.intensity) for light in stage.lights if isinstance(light, PointLight)]
    rows, areas = [], []
    for light in rects:
        u, v = np.array(light.edge_u, float), np.array(light.edge_v, float)
        normal = np.cross(u, v)
        area = float(np.linalg.norm(normal))
        if not area > 0:
            raise ValueError("render: a rectangle light has no area; give two edges that are not parallel")
        normal /= area
        dual = np.cross(v, normal) / area, np.cross(normal, u) / area
        rows.append([light.corner, u, v, normal, *dual, light.radiance])
        areas.append(area)
    sky = (np.zeros((0, 0, 3), np.float32), np.zeros(0), np.zeros((0, 0)))
    if stage.environment is not None:
        sky = _sky(stage.environment)
    return Lights(
        np.array(rows, float).reshape(-1, 7, 3), np.array(areas), np.array(points, float).reshape(-1, 2, 3), *sky
    )


@lru_cache(maxsize=4)
def _sky(environment: Environment) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """The map and its cumulative distributions over rows, and over columns in each row."""
    image = np.ascontiguousarray(environment.image, np.float32)
    if image.ndim != 3 or image.shape[2] != 3 or not image.size or not np.isfinite(image).all() or image.min() < 0:
        raise ValueError("render: the environment must be a finite (h, w, 3) array without negative values")
    height = image.shape[0]
    light = image.astype(float) @ (0.2126, 0.7152, 0.0722)
    # a floor keeps dark pixels reachable, which colours outside the luminance weights need
    weight = (light + 1e-4 * light.mean() + 1e-12) * np.sin((np.arange(height) + 0.5) / height * np.pi)[:, None]
    columns = np.cumsum(weight, 1)
    rows = np.cumsum(columns[:, -1])
    return image, rows / rows[-1], columns / columns[:, -1:]


@inlined
def environment_density(row, column, dz, rows, columns):
    """Density per solid angle with which `environment_direction` draws from one pixel."""
    height, width = columns.shape
    p = rows[row] - (rows[row - 1] if row > 0 else 0.0)
    p *= columns[row, column] - (columns[row, column - 1] if column > 0 else 0.0)
    return p * width * height / (2 * math.pi * math.pi * math.sqrt(max(1e-12, 1 - dz * dz)))


@inlined
def environment_direction(u1, u2, rows, columns):
    """A direction drawn in proportion to the brightness of the map, its pixel, and its density."""
    height, width = columns.shape
    row = min(np.searchsorted(rows, u1, "right"), height - 1)
    low = rows[row - 1] if row > 0 else 0.0
    v = (u1 - low) / max(rows[row] - low, 1e-300)
    column = min(np.searchsorted(columns[row], u2, "right"), width - 1)
    low = columns[row, column - 1] if column > 0 else 0.0
    u = (u2 - low) / max(columns[row, column] - low, 1e-300)
    theta, phi = (row + v) / height * math.pi, (column + u) / width * _TWO_PI - math.pi
    dx, dy, dz = math.sin(theta) * math.cos(phi), math.sin(theta) * math.sin(phi), math.cos(theta)
    return dx, dy, dz, row, column, environment_density(row, column, dz, rows, columns)


class Paths(NamedTuple):
    """The state of 8 paths."""

    alive: NDArray[np.bool_]
    throughput: NDArray[np.float64]  # (8, 3)
    gathered: NDArray[np.float64]  # (8, 3)
    light: NDArray[np.float64]  # (8, 3), of the light sample under way
    density: NDArray[np.float64]  # of the reflected ray under way; 0 = a diffuse ray, which sees no lamps


@inlined
def _ray(camera, x, y):
    dx = x * camera[1, 0] + y * camera[2, 0] + camera[3, 0]
    dy = x * camera[1, 1] + y * camera[2, 1] + camera[3, 1]
    dz = x * camera[1, 2] + y * camera[2, 2] + camera[3, 2]
    scale = 1 / math.sqrt(dx * dx + dy * dy + dz * dz)
    return dx * scale, dy * scale, dz * scale


@kernel
def radiance(embree, surfaces, lights, camera, span, setting, sums, coverage):
    """Mean albedo, diffuse radiance, plain shading and specular radiance of the pixels of a window."""
    samples, bounces, seed, seen = setting
    height, width = coverage.shape
    packet, points, first = new_packet(), new_points(), new_points()
    paths = Paths(np.zeros(8, np.bool_), np.zeros((8, 3)), np.zeros((8, 3)), np.zeros((8, 3)), np.zeros(8))
    total, hit = np.zeros((4, 3)), np.zeros(8, np.bool_)
    for y in range(span[0], span[1]):
        for x in range(span[2], span[3]):
            noise = hashed(_U(y * width + x) ^ hashed(_U(seed)))
            total[:] = 0
            hits = 0
            for start in range(0, samples, 8):
                _aim(packet, camera, x, y, width, height, start, min(8, samples - start), noise)
                packet.codes[MASK] = CAMERA
                intersect(embree, packet, embree.coherent)
                packet.codes[MASK] = NOTHING
                found, glossy = _first_hits(packet, surfaces, lights, seen, first, hit, total)
                hits += found
                for lobe in range(2):
                    if found == 0 or (lobe == 1 and not glossy):
                        break
                    _begin(first, hit, lobe, points, paths)
                    _follow(embree, packet, surfaces, lights, points, paths, lobe, bounces, start, noise)
                    _gather(first, hit, paths, lobe, total)
            coverage[y, x] = hits / samples
            for layer in range(4):
                for c in range(3):
                    sums[layer, y, x, c] = total[layer, c] / (max(hits, 1) if layer == 2 else samples)


@inlined
def _aim(packet, camera, x, y, width, height, start, count, noise):
    """Rays from the eye through scattered places of one pixel."""
    for k in range(8):
        packet.active[k] = 0
        if k < count:
            u, v = sobol(start + k, noise)
            dx, dy, dz = _ray(camera, (x + u) / width, (y + v) / height)
            set_ray(packet, k, camera[0, 0], camera[0, 1], camera[0, 2], dx, dy, dz, FAR)


@inlined
def _first_hits(packet, surfaces, lights, seen, first, hit, total):
    """Fill in the first surface points, add their albedo and the sky; how many there are, and whether one is glossy."""
    found, glossy = 0, False
    for k in range(8):
        hit[k] = packet.active[k] != 0 and packet.codes[GEOMETRY, k] != NOTHING
        if hit[k]:
            arrive(packet, k, surfaces, first)
            found += 1
            glossy |= first.specular[k, 0] > 0
            for c in range(3):
                total[0, c] += first.albedo[k, c]
        elif packet.active[k] != 0 and seen:
            dx, dy, dz = packet.words[DIRECTION, k], packet.words[DIRECTION + 1, k], packet.words[DIRECTION + 2, k]
            row, column = environment_pixel(dx, dy, dz, lights.sky.shape[0], lights.sky.shape[1])
            for c in range(3):
                total[3, c] += lights.sky[row, column, c]
    return found, glossy


@inlined
def _begin(first, hit, lobe, points, paths):
    """Start 8 paths at the first surfaces with one lobe only: white diffuse (0) or glossy (1)."""
    for k in range(8):
        paths.alive[k] = hit[k] and (lobe == 0 or first.specular[k, 0] > 0)
        points.specular[k, 0] = first.specular[k, 0] if lobe == 1 else 0.0
        points.specular[k, 1] = first.specular[k, 1]
        for c in range(3):
            paths.throughput[k, c], paths.gathered[k, c] = 1.0, 0.0
            points.position[k, c], points.viewer[k, c] = first.position[k, c], first.viewer[k, c]
            points.normal[k, c], points.flat[k, c] = first.normal[k, c], first.flat[k, c]
            points.albedo[k, c] = 1.0 - lobe


@inlined
def _gather(first, hit, paths, lobe, total):
    for k in range(8):
        if hit[k]:
            for c in range(3):
                if lobe == 0:
                    total[1, c] += first.albedo[k, c] * paths.gathered[k, c]
                    total[2, c] += paths.gathered[k, c]
                else:
                    total[3, c] += paths.gathered[k, c]


@kernel
def _follow(embree, packet, surfaces, lights, points, paths, lobe, bounces, start, noise):
    """From surface to surface: gather the light of the lamps, choose a lobe, go on."""
    lamps = len(lights.rects) + len(lights.points) + (1 if len(lights.sky) > 0 else 0)
    for bounce in range(bounces + 1):
        purpose = hashed(_U(2 * bounce + lobe + 1))
        for lamp in range(lamps):
            if _aim_at_lamp(packet, lights, points, paths, lamp, start, noise ^ hashed(purpose + _U(lamp + 2))):
                occluded(embree, packet)
                _collect(packet, paths)
        if not _scatter(packet, points, paths, bounce == bounces, start, noise ^ purpose):
            break
        intersect(embree, packet, embree.scattered)
        for k in range(8):
            if packet.active[k] == 0:
                continue
            if paths.density[k] > 0:
                _see_lamps(packet, k, lights, paths)
            paths.alive[k] = packet.codes[GEOMETRY, k] != NOTHING
            if paths.alive[k]:
                arrive(packet, k, surfaces, points)


@inlined
def _glossy_share(points, k):
    """The probability of going on by the glossy lobe, in proportion to the reflectances."""
    brightest = max(points.albedo[k, 0], points.albedo[k, 1], points.albedo[k, 2])
    both = points.specular[k, 0] + brightest
    return points.specular[k, 0] / both if both > 0 else 0.0


@inlined
def _aim_at_lamp(packet, lights, points, paths, lamp, start, noise):
    """Rays to a place on one lamp, with the light each would bring in `paths.light`; whether there are any."""
    some = False
    for k in range(8):
        packet.active[k] = 0
        if not paths.alive[k]:
            continue
        u, v = sobol(start + k, noise)
        px, py, pz = points.position[k, 0], points.position[k, 1], points.position[k, 2]
        lx, ly, lz, reach, density = _to_lamp(lights, lamp, px, py, pz, u, v, paths.light, k)
        nx, ny, nz = points.normal[k, 0], points.normal[k, 1], points.normal[k, 2]
        cosine = nx * lx + ny * ly + nz * lz
        if reach <= 0 or cosine <= 0:
            continue
        if points.flat[k, 0] * lx + points.flat[k, 1] * ly + points.flat[k, 2] * lz <= 0:
            continue
        glossy = 0.0
        if points.specular[k, 0] > 0:
            vx, vy, vz = to_local(nx, ny, nz, points.viewer[k, 0], points.viewer[k, 1], points.viewer[k, 2])
            wx, wy, wz = to_local(nx, ny, nz, lx, ly, lz)
            value, reflected = ggx(vx, vy, vz, wx, wy, wz, points.specular[k, 1])
            reflected *= _glossy_share(points, k)
            # density 0 marks a point light, which no reflected ray can find
            glossy = points.specular[k, 0] * value * (density / (density + reflected) if density > 0 else 1.0)
        for c in range(3):
            paths.light[k, c] *= paths.throughput[k, c] * (points.albedo[k, c] * cosine * _INVERSE_PI + glossy)
        set_ray(packet, k, px, py, pz, lx, ly, lz, reach)
        some = True
    return some


@inlined
def _to_lamp(lights, lamp, px, py, pz, u, v, light, k):
    """Direction, distance and density per solid angle of a place on a lamp; light[k] becomes radiance/density.

    Distance 0 means that the lamp does not shine this way.
    """
    rects, lamps = lights.rects, lights.points
    if lamp < len(rects):
        lx = rects[lamp, 0, 0] + u * rects[lamp, 1, 0] + v * rects[lamp, 2, 0] - px
        ly = rects[lamp, 0, 1] + u * rects[lamp, 1, 1] + v * rects[lamp, 2, 1] - py
        lz = rects[lamp, 0, 2] + u * rects[lamp, 1, 2] + v * rects[lamp, 2, 2] - pz
        square = lx * lx + ly * ly + lz * lz
        reach = math.sqrt(square)
        lx, ly, lz = lx / reach, ly / reach, lz / reach
        cosine = -(rects[lamp, 3, 0] * lx + rects[lamp, 3, 1] * ly + rects[lamp, 3, 2] * lz)
        if cosine <= 0:
            return lx, ly, lz, 0.0, 0.0
        density = square / (cosine * lights.areas[lamp])
        for c in range(3):
            light[k, c] = rects[lamp, 6, c] / density
        return lx, ly, lz, reach * 0.9999, density
    lamp -= len(rects)
    if lamp < len(lamps):
        lx, ly, lz = lamps[lamp, 0, 0] - px, lamps[lamp, 0, 1] - py, lamps[lamp, 0, 2] - pz
        square = lx * lx + ly * ly + lz * lz
        reach = math.sqrt(square)
        for c in range(3):
            light[k, c] = lamps[lamp, 1, c] / square
        return lx / reach, ly / reach, lz / reach, reach * 0.9999, 0.0
    lx, ly, lz, row, column, density = environment_direction(u, v, lights.sky_rows, lights.sky_columns)
    for c in range(3):
        light[k, c] = lights.sky[row, column, c] / density
    return lx, ly, lz, np.float64(FAR), density


@inlined
def _collect(packet, paths):
    for k in range(8):
        if packet.active[k] != 0 and packet.words[T_FAR, k] >= 0:
            for c in range(3):
                paths.gathered[k, c] += paths.light[k, c]


@inlined
def _scatter(packet, points, paths, last, start, noise):
    """Choose a lobe and a direction for every path; after the last surface only glossy rays go on, to see the lamps."""
    some = False
    for k in range(8):
        packet.active[k] = 0
        if not paths.alive[k]:
            continue
        paths.alive[k] = False
        u, v = sobol(start + k, noise)
        share, choice = _glossy_share(points, k), 0.0
        if 0 < share < 1:
            choice, _ = sobol(start + k, noise ^ _U(0x68BC21EB))
        nx, ny, nz = points.normal[k, 0], points.normal[k, 1], points.normal[k, 2]
        paths.density[k] = 0.0
        if choice < share:
            vx, vy, vz = to_local(nx, ny, nz, points.viewer[k, 0], points.viewer[k, 1], points.viewer[k, 2])
            if vz <= 0:
                continue
            x, y, z = ggx_direction(vx, vy, vz, points.specular[k, 1], u, v)
            value, density = ggx(vx, vy, vz, x, y, z, points.specular[k, 1])
            if density <= 0:
                continue
            paths.density[k] = share * density
            for c in range(3):
                paths.throughput[k, c] *= points.specular[k, 0] * value / paths.density[k]
        elif last:
            continue
        else:
            x, y, z = cosine_direction(u, v)
            for c in range(3):
                paths.throughput[k, c] *= points.albedo[k, c] / (1 - share)
        dx, dy, dz = to_world(nx, ny, nz, x, y, z)
        if points.flat[k, 0] * dx + points.flat[k, 1] * dy + points.flat[k, 2] * dz <= 0:
            continue
        set_ray(packet, k, points.position[k, 0], points.position[k, 1], points.position[k, 2], dx, dy, dz, FAR)
        some = True
    return some


@inlined
def _see_lamps(packet, k, lights, paths):
    """Add the lamps on reflected ray k, weighted against the light samples that could have found them."""
    words, density = packet.words, paths.density[k]
    dx, dy, dz = (
        np.float64(words[DIRECTION, k]),
        np.float64(words[DIRECTION + 1, k]),
        np.float64(words[DIRECTION + 2, k]),
    )
    for lamp in range(len(lights.rects)):
        distance = _meet_rect(lights.rects, lamp, words[0, k], words[1, k], words[2, k], dx, dy, dz)
        if 0 < distance < words[T_FAR, k]:
            rects = lights.rects
            cosine = -(rects[lamp, 3, 0] * dx + rects[lamp, 3, 1] * dy + rects[lamp, 3, 2] * dz)
            other = distance * distance / (cosine * lights.areas[lamp])
            for c in range(3):
                paths.gathered[k, c] += paths.throughput[k, c] * rects[lamp, 6, c] * density / (density + other)
    if len(lights.sky) > 0 and packet.codes[GEOMETRY, k] == NOTHING:
        row, column = environment_pixel(dx, dy, dz, lights.sky.shape[0], lights.sky.shape[1])
        other = environment_density(row, column, dz, lights.sky_rows, lights.sky_columns)
        for c in range(3):
            paths.gathered[k, c] += paths.throughput[k, c] * lights.sky[row, column, c] * density / (density + other)


@inlined
def _meet_rect(rects, i, px, py, pz, dx, dy, dz):
    """Distance along a ray to the shining side of a rectangle; −1 if it misses."""
    facing = rects[i, 3, 0] * dx + rects[i, 3, 1] * dy + rects[i, 3, 2] * dz
    if facing >= 0:
        return -1.0
    ox, oy, oz = rects[i, 0, 0] - px, rects[i, 0, 1] - py, rects[i, 0, 2] - pz
    distance = (ox * rects[i, 3, 0] + oy * rects[i, 3, 1] + oz * rects[i, 3, 2]) / facing
    x, y, z = distance * dx - ox, distance * dy - oy, distance * dz - oz
    u = x * rects[i, 4, 0] + y * rects[i, 4, 1] + z * rects[i, 4, 2]
    v = x * rects[i, 5, 0] + y * rects[i, 5, 1] + z * rects[i, 5, 2]
    return distance if 0 <= u <= 1 and 0 <= v <= 1 else -1.0
