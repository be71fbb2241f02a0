"""The toon rasteriser: kernels that project, cover and shade the triangles of one instance.

Coordinates are homogeneous pixels p = (x·w, y·w, w), w the depth along the view axis. A triangle p0 p1 p2 covers the
sample (x, y) if e_i = (p_j × p_k)·(x, y, 1) have one sign; then 1/w = Σe_i/det and e_i/Σe_i are the barycentric
coordinates (Olano & Greer 1997). No clipping is needed, and neighbours share their edge exactly.
"""

from __future__ import annotations

import math

import numpy as np

from diorama.render.jit import kernel


@kernel
def project(vertices, normals, view, normal_matrix, lens, points, hull, turned):  # type: ignore[no-untyped-def]
    """Every vertex in pixels (x·w, y·w, w, x, y), the same on the outline hull, and its unit normal in view space.

    The hull is the vertex moved along its normal by t·w/‖P·n‖, which is three.js' clip-space outline:
    clip + t·w·P·n/‖P·n‖ with the 4-vector P·n.  lens: width, height, 1/tan of x and y, z row of P, t.
    """
    width, height, focal_x, focal_y, z_row, thickness = lens
    for i in range(len(vertices)):
        x, y, z = vertices[i, 0], vertices[i, 1], vertices[i, 2]
        vx = view[0, 0] * x + view[0, 1] * y + view[0, 2] * z + view[0, 3]
        vy = view[1, 0] * x + view[1, 1] * y + view[1, 2] * z + view[1, 3]
        vz = view[2, 0] * x + view[2, 1] * y + view[2, 2] * z + view[2, 3]
        _to_pixels(vx, vy, vz, width, height, focal_x, focal_y, points[i])
        x, y, z = normals[i, 0], normals[i, 1], normals[i, 2]
        nx = normal_matrix[0, 0] * x + normal_matrix[0, 1] * y + normal_matrix[0, 2] * z
        ny = normal_matrix[1, 0] * x + normal_matrix[1, 1] * y + normal_matrix[1, 2] * z
        nz = normal_matrix[2, 0] * x + normal_matrix[2, 1] * y + normal_matrix[2, 2] * z
        scale = 1.0 / math.sqrt(nx * nx + ny * ny + nz * nz + 1e-300)
        turned[i, 0], turned[i, 1], turned[i, 2] = nx * scale, ny * scale, nz * scale
        if thickness > 0:
            nx = view[0, 0] * x + view[0, 1] * y + view[0, 2] * z
            ny = view[1, 0] * x + view[1, 1] * y + view[1, 2] * z
            nz = view[2, 0] * x + view[2, 1] * y + view[2, 2] * z
            cx, cy, cz = focal_x * nx, focal_y * ny, z_row * nz
            step = thickness * vz / math.sqrt(cx * cx + cy * cy + cz * cz + nz * nz + 1e-300)
            _to_pixels(vx + step * nx, vy + step * ny, vz + step * nz, width, height, focal_x, focal_y, hull[i])


@kernel(inline="always")
def _to_pixels(x, y, z, width, height, focal_x, focal_y, out):  # type: ignore[no-untyped-def]
    out[0] = 0.5 * width * (focal_x * x + z)
    out[1] = 0.5 * height * (z - focal_y * y)
    out[2] = z
    out[3] = out[0] / z
    out[4] = out[1] / z


@kernel
def draw(mesh, front_sign, offsets, lens, look, shine, owner, target):  # type: ignore[no-untyped-def]
    """Draw the front faces, shaded, and the back faces of the hull, black, into (depth, colour, owner) by depth.

    Planes 0..n−1 of the target are the colour samples at `offsets`, plane n is the pixel centre without the outline.
    Returns the touched window (x0, y0, x1, y1).
    """
    points, hull, turned, faces = mesh
    outlined = lens[5] > 0
    window = np.array([np.int64(1 << 30), np.int64(1 << 30), np.int64(-1), np.int64(-1)])
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        if front_sign * _det(points[a], points[b], points[c]) > 0:
            _cover(points, turned, a, b, c, False, offsets, lens, look, shine, owner, target, window)
        if outlined and front_sign * _det(hull[a], hull[b], hull[c]) < 0:
            _cover(hull, turned, a, b, c, True, offsets, lens, look, shine, owner, target, window)
    return window


@kernel(inline="always")
def _det(p, q, r):  # type: ignore[no-untyped-def]
    return (
        p[0] * (q[1] * r[2] - q[2] * r[1]) + p[1] * (q[2] * r[0] - q[0] * r[2]) + p[2] * (q[0] * r[1] - q[1] * r[0])
    )


@kernel
def _cover(points, turned, a, b, c, black, offsets, lens, look, shine, owner, target, window):  # type: ignore[no-untyped-def]
    depth, colour, owners = target
    begins, codes, steps, near, far, cutoff, light = look
    p, q, r = points[a], points[b], points[c]
    height, width, planes = depth.shape
    if p[2] < near and q[2] < near and r[2] < near:
        return
    x0, y0, x1, y1 = 0, 0, width - 1, height - 1
    if p[2] >= near and q[2] >= near and r[2] >= near:
        left, right = min(p[3], q[3], r[3]), max(p[3], q[3], r[3])
        upper, lower = min(p[4], q[4], r[4]), max(p[4], q[4], r[4])
        if right < 0 or lower < 0 or left >= width or upper >= height:
            return
        x0, y0 = max(0, int(left)), max(0, int(upper))
        x1, y1 = min(width - 1, int(right)), min(height - 1, int(lower))
    else:
        left, upper, right, lower = -1e30, -1e30, 1e30, 1e30
    e0x, e0y, e0z = q[1] * r[2] - q[2] * r[1], q[2] * r[0] - q[0] * r[2], q[0] * r[1] - q[1] * r[0]
    e1x, e1y, e1z = r[1] * p[2] - r[2] * p[1], r[2] * p[0] - r[0] * p[2], r[0] * p[1] - r[1] * p[0]
    e2x, e2y, e2z = p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]
    det = p[0] * e0x + p[1] * e0y + p[2] * e0z
    sign = 1.0 if det > 0 else -1.0
    if black:
        planes -= 1  # the id plane has no outline
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            for s in range(planes):
                sx, sy = x + offsets[s, 0], y + offsets[s, 1]
                if sx < left or sx > right or sy < upper or sy > lower:
                    continue
                e0 = sign * (e0x * sx + e0y * sy + e0z)
                e1 = sign * (e1x * sx + e1y * sy + e1z)
                e2 = sign * (e2x * sx + e2y * sy + e2z)
                total = e0 + e1 + e2
                if e0 < 0 or e1 < 0 or e2 < 0 or total <= 0:
                    continue
                w = abs(det) / total
                z = np.float32(w)
                if w < near or w > far or z >= depth[y, x, s]:
                    continue
                depth[y, x, s] = z
                owners[y, x, s] = owner
                if black:
                    colour[y, x, s, 0] = colour[y, x, s, 1] = colour[y, x, s, 2] = 0
                elif s < len(offsets) - 1:
                    _shade(
                        turned, a, b, c, e1 / total, e2 / total, sx, sy, w, lens, look, shine, colour[y, x, s]
                    )
                window[0], window[1] = min(window[0], x), min(window[1], y)
                window[2], window[3] = max(window[2], x), max(window[3], y)


@kernel(inline="always")
def _shade(turned, a, b, c, u, v, x, y, w, lens, look, shine, out):  # type: ignore[no-untyped-def]
    """colour·(ambient + intensity·g·a): g the gradient at (N·L)/2 + 1/2, a = clamp(1 − d/cutoff); shine = both terms."""
    begins, codes, steps, near, far, cutoff, light = look
    width, height, focal_x, focal_y, z_row, thickness = lens
    lx = light[0] - (2 * x / width - 1) * w / focal_x
    ly = light[1] - (1 - 2 * y / height) * w / focal_y
    lz = light[2] - w
    distance = math.sqrt(lx * lx + ly * ly + lz * lz)
    t = 1 - u - v
    nx = t * turned[a, 0] + u * turned[b, 0] + v * turned[c, 0]
    ny = t * turned[a, 1] + u * turned[b, 1] + v * turned[c, 1]
    nz = t * turned[a, 2] + u * turned[b, 2] + v * turned[c, 2]
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    cosine = (nx * lx + ny * ly + nz * lz) / (length * distance + 1e-300)
    step = min(max(int((0.5 * cosine + 0.5) * len(steps)), 0), len(steps) - 1)
    strength = steps[step] * min(max(1 - distance / cutoff, 0.0), 1.0)
    for k in range(3):
        value = min(max(shine[0, k] + shine[1, k] * strength, 0.0), 1.0)
        code = codes[int(value * 4096)]
        while value >= begins[code + 1]:
            code += 1
        out[k] = code


@kernel
def resolve(colour, samples, image):  # type: ignore[no-untyped-def]
    """The rounded mean of the sample bytes: integers, so that no order of summation matters."""
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            for k in range(3):
                total = 0
                for s in range(samples):
                    total += colour[y, x, s, k]
                image[y, x, k] = (2 * total + samples) // (2 * samples)


@kernel
def collect(target, window):  # type: ignore[no-untyped-def]
    """The covered samples of one layer (where, depth, owner, colour), which are cleared for the next layer."""
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
