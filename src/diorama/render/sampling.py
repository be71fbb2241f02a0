"""Kernels for sampling: scrambled Sobol points, hemispheres, GGX lobes; the pixels of environment maps.

Every random number is a function of (pixel, sample, purpose, seed), never of the order of work.
"""

# mypy: disable-error-code="no-untyped-def"
import math

import numpy as np

from diorama.render.jit import inlined

_U = np.uint32
_TWO_PI = 2 * math.pi


@inlined
def hashed(x):
    """A 32-bit integer hash (Wellons 2018, `lowbias32`)."""
    x = _U(x)
    x = _U((x ^ (x >> _U(16))) * _U(0x7FEB352D))
    x = _U((x ^ (x >> _U(15))) * _U(0x846CA68B))
    return _U(x ^ (x >> _U(16)))


@inlined
def _reversed(x):
    x = _U((x >> _U(16)) | (x << _U(16)))
    x = _U(((x & _U(0xFF00FF00)) >> _U(8)) | ((x & _U(0x00FF00FF)) << _U(8)))
    x = _U(((x & _U(0xF0F0F0F0)) >> _U(4)) | ((x & _U(0x0F0F0F0F)) << _U(4)))
    x = _U(((x & _U(0xCCCCCCCC)) >> _U(2)) | ((x & _U(0x33333333)) << _U(2)))
    return _U(((x & _U(0xAAAAAAAA)) >> _U(1)) | ((x & _U(0x55555555)) << _U(1)))


@inlined
def _mixed(x, seed):
    """The hash of Laine & Karras 2011 (constants of Vegdahl 2021): between two bit reversals it is Owen scrambling."""
    x = _U(x + seed)
    x = _U(x ^ _U(x * _U(0x6C50B47C)))
    x = _U(x ^ _U(x * _U(0xB82F1E52)))
    x = _U(x ^ _U(x * _U(0xC7AFE638)))
    return _U(x ^ _U(x * _U(0x8D22F6E6)))


@inlined
def _pascal(x):
    """The bits of x times Pascal's triangle modulo 2, which makes Sobol's second dimension from the first."""
    x = _U(x ^ (x >> _U(16)))
    x = _U(x ^ ((x >> _U(8)) & _U(0x00FF00FF)))
    x = _U(x ^ ((x >> _U(4)) & _U(0x0F0F0F0F)))
    x = _U(x ^ ((x >> _U(2)) & _U(0x33333333)))
    return _U(x ^ ((x >> _U(1)) & _U(0x55555555)))


@inlined
def sobol(index, seed):
    """Point `index` of a two-dimensional Sobol sequence, shuffled and Owen-scrambled by `seed` (Burley 2020)."""
    i = _reversed(_mixed(_reversed(_U(index)), hashed(seed)))
    x = _reversed(_mixed(i, hashed(seed ^ _U(0x9E3779B9))))
    y = _reversed(_mixed(_pascal(i), hashed(seed ^ _U(0x7F4A7C15))))
    return (x >> _U(8)) * (1 / 16777216), (y >> _U(8)) * (1 / 16777216)


@inlined
def to_world(nx, ny, nz, x, y, z):
    """A vector given in a frame whose third axis is n (Duff et al. 2017)."""
    sign = math.copysign(1.0, nz)
    a = -1.0 / (sign + nz)
    b = nx * ny * a
    return (
        x * (1 + sign * nx * nx * a) + y * b + z * nx,
        x * sign * b + y * (sign + ny * ny * a) + z * ny,
        -x * sign * nx - y * ny + z * nz,
    )


@inlined
def to_local(nx, ny, nz, x, y, z):
    """The inverse of `to_world`."""
    sign = math.copysign(1.0, nz)
    a = -1.0 / (sign + nz)
    b = nx * ny * a
    return (
        x * (1 + sign * nx * nx * a) + y * sign * b - z * sign * nx,
        x * b + y * (sign + ny * ny * a) - z * ny,
        x * nx + y * ny + z * nz,
    )


@inlined
def cosine_direction(u1, u2):
    """A direction about +z with density cos θ/π."""
    r = math.sqrt(u1)
    return r * math.cos(_TWO_PI * u2), r * math.sin(_TWO_PI * u2), math.sqrt(max(0.0, 1 - u1))


@inlined
def ggx(vx, vy, vz, lx, ly, lz, alpha):
    """GGX reflection of l to v about +z, F = 1: D·G₂·cos/(4 cos cos) and the density G₁·D/(4 v_z) of `ggx_direction`.

    Height-correlated Smith shadowing (Heitz 2014).
    """
    if vz <= 0 or lz <= 0:
        return 0.0, 0.0
    hx, hy, hz = vx + lx, vy + ly, vz + lz
    cosine = hz / math.sqrt(hx * hx + hy * hy + hz * hz)
    a2 = alpha * alpha
    d = cosine * cosine * (a2 - 1) + 1
    distribution = a2 / (math.pi * d * d)
    root_v, root_l = math.sqrt(a2 + (1 - a2) * vz * vz), math.sqrt(a2 + (1 - a2) * lz * lz)
    value = distribution * 0.5 * lz / (lz * root_v + vz * root_l)
    return value, distribution * 0.5 / (vz + root_v)


@inlined
def ggx_direction(vx, vy, vz, alpha, u1, u2):
    """A reflected direction from the normals visible from v (Heitz 2018)."""
    x, y, z = alpha * vx, alpha * vy, vz
    scale = 1 / math.sqrt(x * x + y * y + z * z)
    x, y, z = x * scale, y * scale, z * scale
    flat = x * x + y * y
    ax, ay = (-y / math.sqrt(flat), x / math.sqrt(flat)) if flat > 0 else (1.0, 0.0)
    bx, by, bz = -z * ay, z * ax, x * ay - y * ax
    r = math.sqrt(u1)
    t1, t2 = r * math.cos(_TWO_PI * u2), r * math.sin(_TWO_PI * u2)
    half = 0.5 * (1 + z)
    t2 = (1 - half) * math.sqrt(1 - t1 * t1) + half * t2
    t3 = math.sqrt(max(0.0, 1 - t1 * t1 - t2 * t2))
    hx, hy = alpha * (t1 * ax + t2 * bx + t3 * x), alpha * (t1 * ay + t2 * by + t3 * y)
    hz = max(1e-9, t2 * bz + t3 * z)
    scale = 1 / math.sqrt(hx * hx + hy * hy + hz * hz)
    hx, hy, hz = hx * scale, hy * scale, hz * scale
    vh = 2 * (vx * hx + vy * hy + vz * hz)
    return vh * hx - vx, vh * hy - vy, vh * hz - vz


@inlined
def environment_pixel(dx, dy, dz, height, width):
    """Row and column of a direction in a lat-long map."""
    row = int(math.acos(min(1.0, max(-1.0, dz))) / math.pi * height)
    column = int((math.atan2(dy, dx) + math.pi) / _TWO_PI * width)
    return min(row, height - 1), min(column, width - 1)
