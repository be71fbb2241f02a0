"""A floor that only catches shadows: the share of its light that objects standing on it do not block, for every pixel.

The sky is a fixed set of beams drawn by importance (structured importance sampling in the sense of Agarwal et al. 2003),
and a ball-shaped lamp a fixed set of points. They are the same for every pixel, so that shadows are smooth without noise.
"""

# mypy: disable-error-code="no-untyped-def"
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diorama.render.check import transforms
from diorama.render.jit import inlined, kernel
from diorama.render.path import lens
from diorama.render.stage import Environment, PointLight, Stage
from diorama.render.trace import FAR, T_FAR, EmbreeScene, new_packet, occluded, set_ray

_LIFT = 1e-3  # rays start this far above the floor
_CORNERS = np.array([[a, b, c, 1.0] for a in (0, 1) for b in (0, 1) for c in (0, 1)])


class Beams(NamedTuple):
    """The light that falls on a horizontal floor: directions (n, 3) towards the light, irradiance (n, 3) from each.

    Every 8 consecutive directions lie in a cone (n/8, 5): its axis, the cosine and the sine of its half angle.
    """

    directions: NDArray[np.float64]
    irradiance: NDArray[np.float64]
    cones: NDArray[np.float64]


NO_BEAMS = Beams(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 5)))


def irradiance(image: NDArray[np.float32]) -> NDArray[np.float64]:
    """Irradiance of a floor under a lat-long map: E = ∫ L cos θ dω over the upper half.

    >>> irradiance(np.ones((64, 128, 3), np.float32)).round(2).tolist()  # π
    [3.14, 3.14, 3.14]
    """
    weight = _floor_weight(image.shape[0])
    return (image.astype(float) * weight[:, None, None]).sum((0, 1)) * 2 * np.pi / image.shape[1]


def _floor_weight(height: int) -> NDArray[np.float64]:
    """cos θ sin θ dθ of every row."""
    theta = (np.arange(height) + 0.5) / height * np.pi
    return np.maximum(np.cos(theta), 0) * np.sin(theta) * np.pi / height


@lru_cache(maxsize=16)
def beams(environment: Environment, count: int = 512) -> Beams:
    """`count` beams drawn in proportion to luminance·cos θ at the points of a Kronecker sequence (Roberts 2018)."""
    image = environment.image.astype(float)
    height, width = image.shape[:2]
    weight = (image @ (0.2126, 0.7152, 0.0722) + 1e-12) * _floor_weight(height)[:, None]
    u, v = ((0.5 + np.arange(count)[:, None] * (0.7548776662466927, 0.5698402909980532)) % 1).T
    rows = np.cumsum(weight.sum(1))
    row, y = _invert(rows / rows[-1], u)
    columns = np.cumsum(weight, 1)[row]
    column, x = _invert(columns / columns[:, -1:], v)
    theta, phi = (row + y) / height * np.pi, (column + x) / width * 2 * np.pi - np.pi
    directions = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], 1)
    light = image[row, column] / (image[row, column] @ (0.2126, 0.7152, 0.0722) + 1e-12)[:, None]
    # every beam has the same luminance; the sum is made exact in each channel
    brought = light * irradiance(environment.image) / np.maximum(light.sum(0), 1e-300)
    bundles = _bundles(directions, np.arange(count))
    order = np.concatenate(bundles)
    return Beams(directions[order], brought[order], np.array([_cone(directions[bundle]) for bundle in bundles]))


def _bundles(points: NDArray[np.float64], members: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Members in bundles of 8 neighbours, by halving along the widest axis recursively."""
    if len(members) <= 8:
        return [members]
    axis = np.ptp(points[members], 0).argmax()
    ordered = members[np.argsort(points[members, axis], kind="stable")]
    half = max(len(members) // 16 * 8, 8)
    return _bundles(points, ordered[:half]) + _bundles(points, ordered[half:])


def _cone(directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """The axis of a cone around directions, cosine and sine of its half angle."""
    axis = directions.sum(0) / np.linalg.norm(directions.sum(0))
    cosine = float(np.clip((directions @ axis).min() - 1e-9, -1, 1))
    return np.array([*axis, cosine, np.sqrt(1 - cosine * cosine)])


def _invert(steps: NDArray[np.float64], u: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The cell that contains u in a cumulative distribution, (n,) or (m, n) for one per sample, and u's place in it."""
    table = np.broadcast_to(steps, (len(u), steps.shape[-1]))
    cell = np.minimum((table <= u[:, None]).sum(1), steps.shape[-1] - 1)
    each = np.arange(len(u))
    low = np.where(cell > 0, table[each, cell - 1], 0)
    return cell, (u - low) / np.maximum(table[each, cell] - low, 1e-300)


def catch_shadows(
    stage: Stage, width: int, height: int, reach: float, radius: float = 0.0, count: int = 512
) -> NDArray[np.float32]:
    """The share (h, w, 3) of the light on the floor z = 0 that the objects of the stage do not block.

    Light is that of the environment and of the point lights, taken as balls of `radius`. The share is 1 on floor farther
    than `reach` from the middle of the objects and in pixels that do not show floor. Each pixel spreads `count` beams and 64
    lamp points over 8 places within it.
    """
    sky = beams(stage.environment, count) if stage.environment is not None else NO_BEAMS
    lamps = [light for light in stage.lights if isinstance(light, PointLight)]
    points = np.array([lamp.position + radius * _BALL for lamp in lamps], float).reshape(-1, 64, 3)
    power = np.array([lamp.intensity for lamp in lamps], float).reshape(-1, 3) / 64
    share = np.ones((height, width, 3), np.float32)
    with EmbreeScene(stage) as embree:
        _catch(embree, lens(stage, width, height), _ball(stage), reach, sky, points, power, share)
    return share


def _ball(stage: Stage) -> NDArray[np.float64]:
    """Centre and radius of a ball around everything the camera sees."""
    corners = []
    for instance, matrix in zip(stage.instances, transforms(stage), strict=True):
        if instance.seen:
            low, high = stage.library[instance.mesh].bounds.astype(float)
            box = np.concatenate([low + _CORNERS[:, :3] * (high - low), _CORNERS[:, 3:]], 1)
            corners.append((box @ matrix.T)[:, :3])
    points = np.concatenate(corners)
    centre = (points.min(0) + points.max(0)) / 2
    return np.array([*centre, np.linalg.norm(points - centre, axis=1).max()])


def _fibonacci(count: int) -> NDArray[np.float64]:
    z = 1 - (2 * np.arange(count) + 1) / count
    turn = np.arange(count) * np.pi * (3 - np.sqrt(5))
    return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], 1)


_BALL = _fibonacci(64)
# eight places in a pixel, one in each row and column of an 8×8 grid, no two close
_PLACES = (np.array([[0, 3], [1, 6], [2, 1], [3, 4], [4, 7], [5, 2], [6, 5], [7, 0]]) + 0.5) / 8


@kernel
def _catch(embree, camera, ball, reach, sky, points, power, share):
    packet = new_packet()
    height, width = share.shape[:2]
    floor, lost, total = np.zeros((8, 2)), np.zeros(3), np.zeros(3)
    even, sight = np.zeros(3), np.zeros(5)
    for k in range(len(sky.irradiance)):
        for c in range(3):
            even[c] += sky.irradiance[k, c]
    for y in range(height):
        for x in range(width):
            if not _floor_places(camera, x / width, y / height, 1 / width, 1 / height, ball, reach, floor):
                continue
            for c in range(3):
                lost[c], total[c] = 0.0, even[c]
            _look_at(ball, floor, sight)
            _lose_sky(embree, packet, sky, floor, ball, sight, lost)
            _lose_lamps(embree, packet, points, power, floor, ball, lost, total)
            for c in range(3):
                share[y, x, c] = 1 - lost[c] / total[c] if total[c] > 0 else 1.0


@inlined
def _floor_places(camera, x, y, dx, dy, ball, reach, floor):
    """Where the eight rays of a pixel hit the floor; False if one does not, or all are far from the objects."""
    near = False
    for k in range(8):
        u, v = x + _PLACES[k, 0] * dx, y + _PLACES[k, 1] * dy
        down = u * camera[1, 2] + v * camera[2, 2] + camera[3, 2]
        if down >= 0:
            return False
        t = -camera[0, 2] / down
        for axis in range(2):
            floor[k, axis] = camera[0, axis] + t * (u * camera[1, axis] + v * camera[2, axis] + camera[3, axis])
        near |= (floor[k, 0] - ball[0]) ** 2 + (floor[k, 1] - ball[1]) ** 2 < reach * reach
    return near


@inlined
def _may_hit(floor, k, lx, ly, lz, ball):
    """Whether a ray from the floor goes through the ball around the objects."""
    x, y, z = ball[0] - floor[k, 0], ball[1] - floor[k, 1], ball[2] - _LIFT
    along = x * lx + y * ly + z * lz
    return x * x + y * y + z * z - along * max(along, 0.0) < ball[3] * ball[3]


@inlined
def _look_at(ball, floor, sight):
    """The cone around all rays from a pixel's places that may hit the ball: axis, cosine, sine; −1, 0 for all directions."""
    x, y, wide = 0.0, 0.0, 0.0
    for k in range(8):
        x += floor[k, 0] / 8
        y += floor[k, 1] / 8
    for k in range(8):
        wide = max(wide, np.hypot(floor[k, 0] - x, floor[k, 1] - y))
    sight[0], sight[1], sight[2] = ball[0] - x, ball[1] - y, ball[2] - _LIFT
    far = np.sqrt(sight[0] ** 2 + sight[1] ** 2 + sight[2] ** 2)
    sine = (ball[3] + wide) * 1.000001 / max(far, 1e-300)
    for axis in range(3):
        sight[axis] /= max(far, 1e-300)
    sight[3], sight[4] = (np.sqrt(1 - sine * sine), sine) if sine < 1 else (-1.0, 0.0)


@inlined
def _apart(cones, i, sight):
    """Whether no direction of a cone is in the cone of sight."""
    along = cones[i, 0] * sight[0] + cones[i, 1] * sight[1] + cones[i, 2] * sight[2]
    # two cones whose half angles add up to more than 180° always overlap
    return cones[i, 3] > -sight[3] and along < cones[i, 3] * sight[3] - cones[i, 4] * sight[4] - 1e-9


@inlined
def _lose_sky(embree, packet, sky, floor, ball, sight, lost):
    for start in range(0, len(sky.directions), 8):
        if _apart(sky.cones, start // 8, sight):
            continue
        some = False
        for k in range(8):
            packet.active[k] = 0
            i = start + k
            if i < len(sky.directions):
                lx, ly, lz = sky.directions[i, 0], sky.directions[i, 1], sky.directions[i, 2]
                if _may_hit(floor, k, lx, ly, lz, ball):
                    set_ray(packet, k, floor[k, 0], floor[k, 1], _LIFT, lx, ly, lz, FAR)
                    some = True
        if some:
            occluded(embree, packet)
            for k in range(8):
                if packet.active[k] != 0 and packet.words[T_FAR, k] < 0:
                    for c in range(3):
                        lost[c] += sky.irradiance[start + k, c]


@inlined
def _lose_lamps(embree, packet, points, power, floor, ball, lost, total):
    light = np.zeros(8)
    for lamp in range(len(points)):
        for start in range(0, 64, 8):
            some = False
            for k in range(8):
                packet.active[k] = 0
                place = points[lamp, start + k]
                lx, ly, lz = place[0] - floor[k, 0], place[1] - floor[k, 1], place[2] - _LIFT
                far = np.sqrt(lx * lx + ly * ly + lz * lz)
                light[k] = max(lz, 0.0) / (far * far * far)
                for c in range(3):
                    total[c] += light[k] * power[lamp, c]
                if _may_hit(floor, k, lx / far, ly / far, lz / far, ball):
                    set_ray(packet, k, floor[k, 0], floor[k, 1], _LIFT, lx / far, ly / far, lz / far, far)
                    some = True
            if some:
                occluded(embree, packet)
                for k in range(8):
                    if packet.active[k] != 0 and packet.words[T_FAR, k] < 0:
                        for c in range(3):
                            lost[c] += light[k] * power[lamp, c]
