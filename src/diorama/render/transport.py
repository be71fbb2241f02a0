"""The light transport kernels: packets of 8 paths through a pixel, with light samples at every surface.

Diffuse reflection is estimated by light samples alone; glossy reflection by light samples and by BSDF samples, combined by
multiple importance sampling with the balance heuristic (Veach 1997).
"""

# mypy: disable-error-code="no-untyped-def"
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diorama.render.jit import inlined, kernel
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
from diorama.render.sky import sky_density, sky_direction
from diorama.render.surface import arrive, new_points
from diorama.render.trace import (
    CAMERA,
    DIRECTION,
    FAR,
    GEOMETRY,
    MASK,
    NOTHING,
    T_FAR,
    intersect,
    new_packet,
    occluded,
    set_ray,
)

_U = np.uint32
_INVERSE_PI = 1 / math.pi
_ALIKE = 0.99  # the cosine between normals of neighbours that are turned the same way


class Paths(NamedTuple):
    """The state of 8 paths."""

    alive: NDArray[np.bool_]
    throughput: NDArray[np.float64]  # (8, 3)
    gathered: NDArray[np.float64]  # (8, 3)
    light: NDArray[np.float64]  # (8, 3), contribution of the current light sample by the diffuse lobe
    gloss: NDArray[np.float64]  # (8, 3), contribution of the current light sample by the glossy lobe
    glossed: NDArray[np.float64]  # (8, 3), direct light of the first surface by its glossy lobe
    density: NDArray[np.float64]  # of the current BSDF sample; 0 = a diffuse ray, to which lamps do not contribute


@inlined
def _ray(camera, x, y):
    dx = x * camera[1, 0] + y * camera[2, 0] + camera[3, 0]
    dy = x * camera[1, 1] + y * camera[2, 1] + camera[3, 1]
    dz = x * camera[1, 2] + y * camera[2, 2] + camera[3, 2]
    scale = 1 / math.sqrt(dx * dx + dy * dy + dz * dz)
    return dx * scale, dy * scale, dz * scale


@kernel
def centres(embree, surfaces, camera, span, front, depth, normal):
    """Instance, depth along the view axis and normal at the pixel centres of a window, 8 pixels at a time."""
    packet, points = new_packet(), new_points()
    packet.codes[MASK] = CAMERA
    height, width = front.shape
    for y in range(span[0], span[1]):
        for x0 in range(span[2], span[3], 8):
            _aim_centres(packet, camera, x0, y, width, height, span[3])
            intersect(embree, packet, embree.coherent)
            for k in range(min(8, span[3] - x0)):
                if packet.codes[GEOMETRY, k] == NOTHING:
                    continue
                front[y, x0 + k] = arrive(packet, k, surfaces, points)
                cosine = 0.0
                for axis in range(3):
                    cosine -= points.viewer[k, axis] * camera[4, axis]
                    normal[y, x0 + k, axis] = points.normal[k, axis]
                depth[y, x0 + k] = packet.words[T_FAR, k] * cosine


@kernel
def find_shadows(embree, surfaces, lights, camera, span, shade):
    """Classify the pixels of a window by shadow, with rays from their centres to the four corners of each rectangle lamp.

    2 (penumbra) if some corners of a lamp are visible and some are hidden (a straight edge that hides part of a rectangle
    hides a corner), 1 if all corners of a lamp are hidden, 0 if all lamps are visible. It depends on geometry only, not on
    paint or the power of lamps.
    """
    packet, points, light = new_packet(), new_points(), np.zeros((8, 3))
    met, arrived = np.zeros(8, np.bool_), np.zeros(8, np.int64)
    height, width = shade.shape
    for y in range(span[0], span[1]):
        for x0 in range(span[2], span[3], 8):
            _aim_centres(packet, camera, x0, y, width, height, span[3])
            packet.codes[MASK] = CAMERA
            intersect(embree, packet, embree.coherent)
            packet.codes[MASK] = NOTHING
            for k in range(8):
                met[k] = packet.active[k] != 0 and packet.codes[GEOMETRY, k] != NOTHING
                if met[k]:
                    arrive(packet, k, surfaces, points)
            for lamp in range(len(lights.rects)):
                _count_corners(embree, packet, lights, points, lamp, met, light, arrived)
                for k in range(8):
                    if met[k] and arrived[k] < 4:
                        shade[y, x0 + k] = max(shade[y, x0 + k], 2 if arrived[k] > 0 else 1)


@inlined
def _count_corners(embree, packet, lights, points, lamp, met, light, arrived):
    """The number of corners of a lamp that are visible from each surface point."""
    arrived[:] = 0
    for corner in range(4):
        for k in range(8):
            packet.active[k] = 0
            if met[k]:
                px, py, pz = points.position[k, 0], points.position[k, 1], points.position[k, 2]
                nx, ny, nz = points.normal[k, 0], points.normal[k, 1], points.normal[k, 2]
                u, v = float(corner % 2), float(corner // 2)
                lx, ly, lz, reach, _ = _to_lamp(lights, lamp, px, py, pz, nx, ny, nz, u, v, light, k)
                if reach > 0 and nx * lx + ny * ly + nz * lz > 0:
                    set_ray(packet, k, px, py, pz, lx, ly, lz, reach)
        occluded(embree, packet)
        for k in range(8):
            if packet.active[k] != 0 and packet.words[T_FAR, k] >= 0:
                arrived[k] += 1


@kernel
def find_calm(front, normal, span, calm):
    """The pixels of a window whose eight neighbours show the same surface with nearly the same normal.

    Inside of a surface a pixel needs fewer samples. Light plays no part in it, so that reflectance does not depend on light.
    """
    height, width = front.shape
    for y in range(span[0], span[1]):
        for x in range(span[2], span[3]):
            same = front[y, x] >= 0
            for row in range(max(y - 1, 0), min(y + 2, height)):
                for column in range(max(x - 1, 0), min(x + 2, width)):
                    cosine = 0.0
                    for axis in range(3):
                        cosine += normal[y, x, axis] * normal[row, column, axis]
                    same &= front[row, column] == front[y, x] and cosine > _ALIKE
            calm[y, x] = same


@inlined
def _aim_centres(packet, camera, x0, y, width, height, end):
    """Rays from the eye through the centres of up to 8 pixels of a row."""
    for k in range(8):
        packet.active[k] = 0
        if x0 + k < end:
            dx, dy, dz = _ray(camera, (x0 + k + 0.5) / width, (y + 0.5) / height)
            set_ray(packet, k, camera[0, 0], camera[0, 1], camera[0, 2], dx, dy, dz, FAR)


@kernel
def radiance(embree, surfaces, lights, camera, span, setting, shade, calm, sums, coverage):
    """Mean albedo, diffuse radiance, plain shading and specular radiance of the pixels of a window.

    `setting` ends with the number of light samples for each lamp and the sky in pixels that `shade` marks as shadow. A
    `calm` pixel takes half the paths and twice as many light samples in a shadow.
    """
    most, bounces, seed, seen, often = setting
    height, width = coverage.shape
    packet, points, first = new_packet(), new_points(), new_points()
    paths = _new_paths()
    total, hit = np.zeros((4, 3)), np.zeros(8, np.bool_)
    for y in range(span[0], span[1]):
        for x in range(span[2], span[3]):
            noise = hashed(_U(y * width + x) ^ hashed(_U(seed)))
            total[:] = 0
            hits = 0
            # more light samples of the sky in a shadow, of the lamps too in a penumbra
            samples, many = (most // 2, 2 * often) if calm[y, x] else (most, often)
            asked = many if shade[y, x] == 2 else 1, many if shade[y, x] > 0 else 1
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
                    _follow(embree, packet, surfaces, lights, points, paths, lobe, bounces, asked, start, noise)
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
    """Fill in the first surface points, add their albedo and the sky; gives their number and whether one is glossy."""
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
            row, column = environment_pixel(dx, dy, dz, lights.sky.image.shape[0], lights.sky.image.shape[1])
            for c in range(3):
                total[3, c] += lights.sky.image[row, column, c]
    return found, glossy


@kernel
def _new_paths():
    many = np.zeros((5, 8, 3))
    return Paths(np.zeros(8, np.bool_), many[0], many[1], many[2], many[3], many[4], np.zeros(8))


@inlined
def _begin(first, hit, lobe, points, paths):
    """Start 8 paths at the first surfaces with one lobe only: white diffuse (0) or glossy (1).

    The direct light of the glossy lobe was computed together with that of the diffuse lobe.
    """
    for k in range(8):
        paths.alive[k] = hit[k] and (lobe == 0 or first.specular[k, 0] > 0)
        points.specular[k, 0] = first.specular[k, 0]
        points.specular[k, 1] = first.specular[k, 1]
        for c in range(3):
            paths.throughput[k, c], paths.gathered[k, c] = 1.0, paths.glossed[k, c] if lobe == 1 else 0.0
            if lobe == 0:
                paths.glossed[k, c] = 0.0
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
def _follow(embree, packet, surfaces, lights, points, paths, lobe, bounces, asked, start, noise):
    """Trace the paths: at every surface add light samples, then sample the BSDF and go on.

    `asked` is the number of light samples at the first surface for each rectangle lamp, and for the sky.
    """
    lamps = len(lights.rects) + len(lights.points) + (1 if len(lights.sky.image) > 0 else 0)
    for bounce in range(bounces + 1):
        purpose = hashed(_U(2 * bounce + lobe + 1))
        for lamp in range(0 if bounce == 0 and lobe == 1 else lamps):
            first, own = bounce == 0, noise ^ hashed(purpose + _U(lamp + 2))
            times = _times(lights, lamp, asked) if first else 1
            for turn in range(times):
                if _aim_at_lamp(packet, lights, points, paths, lamp, first, start, turn, times, own):
                    occluded(embree, packet)
                    _collect(packet, paths, first)
        lobes = lobe if bounce == 0 else -1
        if not _scatter(packet, points, paths, lobes, bounce == bounces, start, noise ^ purpose):
            break
        intersect(embree, packet, embree.scattered)
        for k in range(8):
            if packet.active[k] == 0:
                continue
            if paths.density[k] > 0:
                _see_lamps(packet, k, lights, points, paths)
            paths.alive[k] = packet.codes[GEOMETRY, k] != NOTHING
            if paths.alive[k]:
                arrive(packet, k, surfaces, points)


@inlined
def _times(lights, lamp, asked):
    """The number of light samples for a lamp at the first surface; one for a point light."""
    if lamp < len(lights.rects):
        return asked[0]
    return asked[1] if lamp >= len(lights.rects) + len(lights.points) else 1


@inlined
def _glossy_share(points, k):
    """The probability of sampling the glossy lobe, in proportion to the reflectances."""
    brightest = max(points.albedo[k, 0], points.albedo[k, 1], points.albedo[k, 2])
    both = points.specular[k, 0] + brightest
    return points.specular[k, 0] / both if both > 0 else 0.0


@inlined
def _aim_at_lamp(packet, lights, points, paths, lamp, first, start, turn, times, noise):
    """Light samples of one lamp: rays to a place on it, contributions in `paths.light` and `gloss`; gives whether any.

    The `times` samples of a surface point are stratified over the lamp, and so are those of all points together. At the
    `first` surface the lobes are traced separately, so there the BSDF samples are drawn from the glossy lobe alone.
    """
    some = False
    for k in range(8):
        packet.active[k] = 0
        if not paths.alive[k]:
            continue
        u, v = sobol((start + k) * times + turn, noise)
        px, py, pz = points.position[k, 0], points.position[k, 1], points.position[k, 2]
        nx, ny, nz = points.normal[k, 0], points.normal[k, 1], points.normal[k, 2]
        lx, ly, lz, reach, density = _to_lamp(lights, lamp, px, py, pz, nx, ny, nz, u, v, paths.light, k)
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
            reflected *= 1.0 if first else _glossy_share(points, k)
            # density 0 marks a point light, which no BSDF sample can hit
            glossy = points.specular[k, 0] * value * (density / (density + reflected) if density > 0 else 1.0)
        for c in range(3):
            brought = paths.light[k, c] * paths.throughput[k, c] / times
            paths.gloss[k, c] = brought * glossy
            paths.light[k, c] = brought * points.albedo[k, c] * cosine * _INVERSE_PI
        set_ray(packet, k, px, py, pz, lx, ly, lz, reach)
        some = True
    return some


@inlined
def _to_lamp(lights, lamp, px, py, pz, nx, ny, nz, u, v, light, k):
    """Direction, distance and density per solid angle of a place on a lamp; light[k] becomes radiance/density.

    Distance 0 means that the lamp does not emit in this direction.
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
    lx, ly, lz, row, column, density = sky_direction(u, v, nx, ny, nz, lights.sky)
    for c in range(3):
        light[k, c] = lights.sky.image[row, column, c] / density
    return lx, ly, lz, np.float64(FAR), density


@inlined
def _collect(packet, paths, apart):
    """Add the light of unoccluded rays; that of the glossy lobe to a separate sum while lobes are `apart`."""
    for k in range(8):
        if packet.active[k] != 0 and packet.words[T_FAR, k] >= 0:
            for c in range(3):
                paths.gathered[k, c] += paths.light[k, c]
                if apart:
                    paths.glossed[k, c] += paths.gloss[k, c]
                else:
                    paths.gathered[k, c] += paths.gloss[k, c]


@inlined
def _scatter(packet, points, paths, lobe, last, start, noise):
    """Sample the BSDF for every path, from one lobe or (−1) from either; at the last surface only from the glossy lobe, for
    rays that hit lamps.
    """
    some = False
    for k in range(8):
        packet.active[k] = 0
        if not paths.alive[k]:
            continue
        paths.alive[k] = False
        share, choice = _glossy_share(points, k) if lobe < 0 else np.float64(lobe), 0.0
        if last and share == 0:
            continue
        u, v = sobol(start + k, noise)
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
def _see_lamps(packet, k, lights, points, paths):
    """Add the light of lamps hit by BSDF sample k, with the balance heuristic's weight against light samples."""
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
    if len(lights.sky.image) > 0 and packet.codes[GEOMETRY, k] == NOTHING:
        nx, ny, nz = points.normal[k, 0], points.normal[k, 1], points.normal[k, 2]
        row, column = environment_pixel(dx, dy, dz, lights.sky.image.shape[0], lights.sky.image.shape[1])
        other = sky_density(row, column, dx, dy, dz, nx, ny, nz, lights.sky)
        for c in range(3):
            radiance = lights.sky.image[row, column, c]
            paths.gathered[k, c] += paths.throughput[k, c] * radiance * density / (density + other)


@inlined
def _meet_rect(rects, i, px, py, pz, dx, dy, dz):
    """Distance along a ray to the emitting side of a rectangle; −1 if it misses."""
    facing = rects[i, 3, 0] * dx + rects[i, 3, 1] * dy + rects[i, 3, 2] * dz
    if facing >= 0:
        return -1.0
    ox, oy, oz = rects[i, 0, 0] - px, rects[i, 0, 1] - py, rects[i, 0, 2] - pz
    distance = (ox * rects[i, 3, 0] + oy * rects[i, 3, 1] + oz * rects[i, 3, 2]) / facing
    x, y, z = distance * dx - ox, distance * dy - oy, distance * dz - oz
    u = x * rects[i, 4, 0] + y * rects[i, 4, 1] + z * rects[i, 4, 2]
    v = x * rects[i, 5, 0] + y * rects[i, 5, 1] + z * rects[i, 5, 2]
    return distance if 0 <= u <= 1 and 0 <= v <= 1 else -1.0
