"""The toon rasteriser: kernels that project, rasterise and shade the triangles of one instance.

Coordinates are homogeneous pixels p = (x·w, y·w, w), w the depth along the view axis. A triangle p0 p1 p2 covers the
sample (x, y) if e_i = (p_j × p_k)·(x, y, 1) have one sign; then 1/w = Σe_i/det and e_i/Σe_i are the barycentric
coordinates (Olano & Greer 1997). No clipping is needed, and neighbours share their edge exactly.
"""

# mypy: disable-error-code="no-untyped-def"
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diorama.render.jit import carray, inlined, kernel, pointer_to_float32, pointer_to_int32

_ONE = np.float32(1)
_SLACK = np.float32(1 / 512)  # pixels: the bounding box must not be tighter than the exact edges


class Cast(NamedTuple):
    """Tables over the instances of a stage."""

    meshes: NDArray[np.int64]  # addresses of vertices, normals and faces; numbers of vertices and faces
    matrices: NDArray[np.float64]  # (n, 3, 4), to homogeneous pixels
    clip_metrics: NDArray[np.float64]  # (n, 3, 3), the square length of a direction in clip space
    normal_matrices: NDArray[np.float64]  # (n, 3, 3), to view space
    conformal: NDArray[np.bool_]  # whether the view keeps angles
    fronts: NDArray[np.float64]  # the sign of the determinant of front faces
    shines: NDArray[np.float64]  # (n, 2, 3), colour·ambient and colour·intensity


@kernel
def paint(members, cast, lens, thickness, clip, look, offsets, scratch, target):
    """Draw instances into the target (depth, colour, owner) by depth; returns the touched window (x0, y0, x1, y1)."""
    window = np.array([1 << 30, 1 << 30, -1, -1])
    for k in members:
        touched = _paint_one(k, cast, lens, thickness, clip, look, offsets, scratch, target)
        window[:2] = np.minimum(window[:2], touched[:2])
        window[2:] = np.maximum(window[2:], touched[2:])
    return window


@kernel
def _paint_one(k, cast, lens, thickness, clip, look, offsets, scratch, target):
    points, hull, turned, face_of = scratch
    depth, _, owners = target
    n, m = cast.meshes[k, 3], cast.meshes[k, 4]
    vertices = carray(pointer_to_float32(cast.meshes[k, 0]), (n, 3))
    normals = carray(pointer_to_float32(cast.meshes[k, 1]), (n, 3))
    faces = carray(pointer_to_int32(cast.meshes[k, 2]), (m, 3))
    matrix, shine = cast.normal_matrices[k], cast.shines[k]
    project(vertices, normals, cast.matrices[k], cast.clip_metrics[k], thickness, points, hull)
    window = cover(points, hull, faces, cast.fronts[k], offsets, clip, k, depth, owners, face_of)
    if window[2] >= 0:
        if cast.conformal[k]:  # then turning and interpolating normals commute
            shade(window, k, (points, normals, faces, matrix), target, face_of, offsets, lens, look, shine)
        else:
            turn(normals, matrix, turned)
            shade(window, k, (points, turned, faces, np.eye(3)), target, face_of, offsets, lens, look, shine)
    return window


@kernel
def project(vertices, normals, matrix, clip_metric, thickness, points, hull):
    """Every vertex in pixels (x·w, y·w, w), and the same on the outline hull.

    With p = M·(v, 1) and d = M·(n, 0) the hull is p + t·w·d/√(nᵀQn), which is three.js' clip-space outline
    clip + t·w·P·n/‖P·n‖: Q = CᵀC for the matrix C that takes n to the clip-space 4-vector P·n.
    """
    # local names, because the compiler must assume that a store to `points` may change the matrix
    a, b, c, d = matrix[0]
    e, f, g, h = matrix[1]
    j, k, m, n = matrix[2]
    q = clip_metric
    xx, yy, zz, xy, xz, yz = q[0, 0], q[1, 1], q[2, 2], 2 * q[0, 1], 2 * q[0, 2], 2 * q[1, 2]
    for i in range(len(vertices)):
        x, y, z = vertices[i, 0], vertices[i, 1], vertices[i, 2]
        px, py, w = a * x + b * y + c * z + d, e * x + f * y + g * z + h, j * x + k * y + m * z + n
        points[i, 0], points[i, 1], points[i, 2] = px, py, w
        if thickness > 0:
            x, y, z = normals[i, 0], normals[i, 1], normals[i, 2]
            square = x * (xx * x + xy * y + xz * z) + y * (yy * y + yz * z) + zz * z * z
            step = thickness * w / math.sqrt(square + 1e-300)
            dx, dy, dw = a * x + b * y + c * z, e * x + f * y + g * z, j * x + k * y + m * z
            hull[i, 0], hull[i, 1], hull[i, 2] = px + step * dx, py + step * dy, w + step * dw


@kernel
def turn(normals, matrix, turned):
    """The unit normals in view space."""
    for i in range(len(normals)):
        x, y, z = normals[i, 0], normals[i, 1], normals[i, 2]
        nx = matrix[0, 0] * x + matrix[0, 1] * y + matrix[0, 2] * z
        ny = matrix[1, 0] * x + matrix[1, 1] * y + matrix[1, 2] * z
        nz = matrix[2, 0] * x + matrix[2, 1] * y + matrix[2, 2] * z
        scale = 1.0 / math.sqrt(nx * nx + ny * ny + nz * nz + 1e-300)
        turned[i, 0], turned[i, 1], turned[i, 2] = nx * scale, ny * scale, nz * scale


@kernel
def cover(points, hull, faces, front, offsets, clip, owner, depth, owners, face_of):
    """Write the front faces and the back faces of the hull by depth; returns the touched window (x0, y0, x1, y1).

    Planes 0..n−1 of the target are the colour samples at `offsets`; plane n is the pixel centre without the outline.
    `face_of` becomes the face, −1 for the outline. `front` is the sign of the determinant of front faces.
    """
    planes, outlined, near = len(offsets), len(hull) > 0, clip[0]
    height, width = depth.shape[0], depth.shape[1]
    window = np.array([1 << 30, 1 << 30, -1, -1])
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        if front * _det(points, a, b, c) > 0:
            box = _bounds(points, a, b, c, near, width, height)
            if _may_show(box, offsets, planes, depth):
                _fill(points, a, b, c, box, offsets, planes, clip, owner, f, depth, owners, face_of, window)
    if outlined:  # after the faces, which hide most of it
        for f in range(len(faces)):
            a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
            if front * _det(hull, a, b, c) < 0:
                box = _bounds(hull, a, b, c, near, width, height)
                if _may_show(box, offsets, planes - 1, depth):
                    _fill(hull, a, b, c, box, offsets, planes - 1, clip, owner, -1, depth, owners, face_of, window)
    return window


@inlined
def _bounds(p, a, b, c, near, width, height):
    """Left, right, upper and lower end and nearest depth of a triangle; left > right if it is not in view."""
    ahead = (p[a, 2] >= near) + (p[b, 2] >= near) + (p[c, 2] >= near)
    left, right, upper, lower = np.float32(0), np.float32(width), np.float32(0), np.float32(height)
    if ahead == 3:
        wa, wb, wc = _ONE / p[a, 2], _ONE / p[b, 2], _ONE / p[c, 2]
        xa, xb, xc = p[a, 0] * wa, p[b, 0] * wb, p[c, 0] * wc
        ya, yb, yc = p[a, 1] * wa, p[b, 1] * wb, p[c, 1] * wc
        left, right = max(left, min(xa, xb, xc) - _SLACK), min(right, max(xa, xb, xc) + _SLACK)
        upper, lower = max(upper, min(ya, yb, yc) - _SLACK), min(lower, max(ya, yb, yc) + _SLACK)
    elif ahead == 0:
        left = np.float32(width + 1)
    nearest = max(near, min(p[a, 2], p[b, 2], p[c, 2])) * (1 - 1e-6)  # rounding must not hide what a sample would show
    return left, right, upper, lower, nearest


@inlined
def _may_show(box, offsets, planes, depth):
    """Whether a sample lies in the bounding box and behind its nearest depth; false for most of a fine mesh."""
    left, right, upper, lower, nearest = box
    if left > right or upper > lower:
        return False
    x0, x1 = int(left), min(int(right), depth.shape[1] - 1)
    y0, y1 = int(upper), min(int(lower), depth.shape[0] - 1)
    if x1 > x0 + 1 or y1 > y0 + 1:
        return True
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            for s in range(planes):
                dx, dy = x + offsets[s, 0], y + offsets[s, 1]
                if left <= dx <= right and upper <= dy <= lower and depth[y, x, s] >= nearest:
                    return True
    return False


@inlined
def _det(p, a, b, c):
    x, y, z = _edge(p, b, c)
    return p[a, 0] * x + p[a, 1] * y + p[a, 2] * z


@inlined
def _edge(p, a, b):
    """The edge function p_a × p_b; swapping a and b negates it exactly, so that neighbours leave no gap."""
    ax, ay, az = np.float64(p[a, 0]), np.float64(p[a, 1]), np.float64(p[a, 2])
    bx, by, bz = np.float64(p[b, 0]), np.float64(p[b, 1]), np.float64(p[b, 2])
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@inlined
def _fill(p, a, b, c, box, offsets, planes, clip, owner, face, depth, owners, face_of, window):
    near, far = clip
    left, right, upper, lower, _ = box
    x0, x1 = int(left), min(int(right), depth.shape[1] - 1)
    y0, y1 = int(upper), min(int(lower), depth.shape[0] - 1)
    e0x, e0y, e0z = _edge(p, b, c)
    e1x, e1y, e1z = _edge(p, c, a)
    e2x, e2y, e2z = _edge(p, a, b)
    det = p[a, 0] * e0x + p[a, 1] * e0y + p[a, 2] * e0z
    sign = 1.0 if det > 0 else -1.0
    touched = False
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            for s in range(planes):
                sx, sy = x + offsets[s, 0], y + offsets[s, 1]
                if sx < left or sx > right or sy < upper or sy > lower:
                    continue
                e0 = sign * (e0x * sx + e0y * sy + e0z)
                e1 = sign * (e1x * sx + e1y * sy + e1z)
                e2 = sign * (e2x * sx + e2y * sy + e2z)
                if e0 < 0 or e1 < 0 or e2 < 0 or e0 + e1 + e2 <= 0:
                    continue
                w = sign * det / (e0 + e1 + e2)
                if near <= w <= far and np.float32(w) < depth[y, x, s]:
                    depth[y, x, s] = w
                    owners[y, x, s] = owner
                    face_of[y, x, s] = face
                    touched = True
    if touched:
        window[0], window[1] = min(window[0], x0), min(window[1], y0)
        window[2], window[3] = max(window[2], x1), max(window[3], y1)


@kernel
def shade(window, owner, solid, target, face_of, offsets, lens, look, shine):
    """Colour the samples that `owner` covers: outline black, faces colour·(ambient + intensity·g·a) in sRGB bytes.

    g is the gradient at (N·L)/2 + 1/2 and a = clamp(1 − d/cutoff); `shine` holds colour·ambient, colour·intensity.
    """
    points, normals, faces, matrix = solid
    depth, colour, owners = target
    begins, codes, steps, cutoff, light = look
    for y in range(window[1], window[3] + 1):
        for x in range(window[0], window[2] + 1):
            for s in range(len(offsets) - 1):
                if owners[y, x, s] != owner:
                    continue
                f = face_of[y, x, s]
                if f < 0:
                    colour[y, x, s, 0] = colour[y, x, s, 1] = colour[y, x, s, 2] = 0
                    continue
                sx, sy = x + offsets[s, 0], y + offsets[s, 1]
                strength = _strength(
                    points, normals, faces, matrix, f, sx, sy, depth[y, x, s], lens, steps, cutoff, light
                )
                for k in range(3):
                    colour[y, x, s, k] = _byte(shine[0, k] + shine[1, k] * strength, begins, codes)


@inlined
def _strength(points, normals, faces, matrix, f, x, y, w, lens, steps, cutoff, light):
    width, height, focal_x, focal_y = lens
    a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
    e0x, e0y, e0z = _edge(points, b, c)
    e1x, e1y, e1z = _edge(points, c, a)
    e2x, e2y, e2z = _edge(points, a, b)
    e0, e1, e2 = e0x * x + e0y * y + e0z, e1x * x + e1y * y + e1z, e2x * x + e2y * y + e2z
    ox = e0 * normals[a, 0] + e1 * normals[b, 0] + e2 * normals[c, 0]
    oy = e0 * normals[a, 1] + e1 * normals[b, 1] + e2 * normals[c, 1]
    oz = e0 * normals[a, 2] + e1 * normals[b, 2] + e2 * normals[c, 2]
    nx = matrix[0, 0] * ox + matrix[0, 1] * oy + matrix[0, 2] * oz
    ny = matrix[1, 0] * ox + matrix[1, 1] * oy + matrix[1, 2] * oz
    nz = matrix[2, 0] * ox + matrix[2, 1] * oy + matrix[2, 2] * oz
    lx = light[0] - (2 * x / width - 1) * w / focal_x
    ly = light[1] - (1 - 2 * y / height) * w / focal_y
    lz = light[2] - w
    distance = math.sqrt(lx * lx + ly * ly + lz * lz)
    length = math.copysign(math.sqrt(nx * nx + ny * ny + nz * nz), e0 + e1 + e2)
    cosine = (nx * lx + ny * ly + nz * lz) / (length * distance)
    step = min(max(int((0.5 * cosine + 0.5) * len(steps)), 0), len(steps) - 1)
    return steps[step] * min(max(1 - distance / cutoff, 0.0), 1.0)


@inlined
def _byte(value, begins, codes):
    value = min(max(value, 0.0), 1.0)
    code = codes[int(value * 4096)]
    while value >= begins[code + 1]:
        code += 1
    return code


@kernel
def resolve(colour, samples, image):
    """The rounded mean of the sample bytes, in integers, so that the order of summation does not matter."""
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            for k in range(3):
                total = 0
                for s in range(samples):
                    total += colour[y, x, s, k]
                image[y, x, k] = (2 * total + samples) // (2 * samples)


@kernel
def collect(target, window):
    """The covered samples of one layer (place, depth, owner, colour); clears them in the target for the next layer."""
    depth, colour, owner = target
    x0, y0, x1, y1 = window
    width, planes = depth.shape[1], depth.shape[2]
    count = np.count_nonzero(depth[y0 : y1 + 1, x0 : x1 + 1] < np.inf)
    where, owners = np.empty(count, np.int32), np.empty(count, np.int32)
    depths, colours = np.empty(count, np.float32), np.empty((count, 3), np.uint8)
    i = 0
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            for s in range(planes):
                if depth[y, x, s] < np.inf:
                    where[i] = (y * width + x) * planes + s
                    depths[i], owners[i] = depth[y, x, s], owner[y, x, s]
                    for k in range(3):
                        colours[i, k] = colour[y, x, s, k]
                    depth[y, x, s] = np.inf
                    i += 1
    return where, depths, owners, colours
