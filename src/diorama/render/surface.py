"""The tables of a stage for kernels, and the surface point at a hit."""

# mypy: disable-error-code="no-untyped-def"
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from diorama.render.check import cofactors, determinants, transforms
from diorama.render.jit import inlined, kernel
from diorama.render.sky import NO_SKY, Sky, sky_of
from diorama.render.stage import PointLight, RectLight, Stage
from diorama.render.trace import DIRECTION, INSTANCE, NORMAL, ORIGIN, PRIMITIVE, T_FAR, U, V

_OFFSET = 2e-5  # of the distances involved: how far new rays start from a surface


class Surfaces(NamedTuple):
    """Arrays over the vertices and faces of all meshes, and over the instances."""

    normals: NDArray[np.float32]
    uv: NDArray[np.float32]
    faces: NDArray[np.int32]
    first_face: NDArray[np.int64]
    normal_matrix: NDArray[np.float64]
    colour: NDArray[np.float64]
    specular: NDArray[np.float64]  # F0, alpha; F0 = 0 for none
    texture: NDArray[np.int64]  # first texel, height, width; height 0 for none
    texels: NDArray[np.float32]


class Lights(NamedTuple):
    """Rectangles (corner, edges, normal, dual edges, radiance), their areas, points (position, intensity), the sky."""

    rects: NDArray[np.float64]
    areas: NDArray[np.float64]
    points: NDArray[np.float64]
    sky: Sky


class Points(NamedTuple):
    """The surface points of a packet: position off the surface, towards the viewer, normals, reflectance."""

    position: NDArray[np.float64]  # (8, 3)
    viewer: NDArray[np.float64]
    normal: NDArray[np.float64]  # for shading, on the viewer's side
    flat: NDArray[np.float64]  # of the triangle, on the viewer's side
    albedo: NDArray[np.float64]
    specular: NDArray[np.float64]  # (8, 2)


def surfaces(stage: Stage) -> Surfaces:
    """Concatenate the meshes of a stage and tabulate its instances."""
    names = list(dict.fromkeys(instance.mesh for instance in stage.instances))
    meshes = [stage.library[name] for name in names]
    vertex_start = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    face_start = dict(zip(names, np.cumsum([0, *(len(mesh.faces) for mesh in meshes)]).tolist(), strict=False))
    linear = transforms(stage)[:, :3, :3]
    texture, texels = _textures(stage)
    return Surfaces(
        np.concatenate([mesh.normals for mesh in meshes]),
        np.concatenate([mesh.uv for mesh in meshes]),
        np.concatenate([mesh.faces + start for mesh, start in zip(meshes, vertex_start, strict=False)]).astype(
            np.int32
        ),
        np.array([face_start[instance.mesh] for instance in stage.instances]),
        cofactors(linear) * np.sign(determinants(linear))[:, None, None],
        np.array([instance.colour for instance in stage.instances], float),
        np.array([instance.specular or (0.0, 1.0) for instance in stage.instances], float),
        texture,
        texels,
    )


def _textures(stage: Stage) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    names = sorted({instance.texture for instance in stage.instances if instance.texture is not None})
    images = [np.asarray(stage.textures[name], np.float32) for name in names]
    for name, image in zip(names, images, strict=True):
        if image.ndim != 3 or image.shape[2] != 3 or not image.size or not np.isfinite(image).all():
            raise ValueError(f"render: texture {name!r} must be a finite (h, w, 3) array")
    start = np.cumsum([0, *(image.shape[0] * image.shape[1] for image in images)]).tolist()
    place = {name: (start[i], *images[i].shape[:2]) for i, name in enumerate(names)}
    rows = [place[i.texture] if i.texture is not None else (0, 0, 0) for i in stage.instances]
    flat = [image.reshape(-1, 3) for image in images] or [np.zeros((1, 3), np.float32)]
    return np.array(rows, np.int64), np.concatenate(flat)


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
    sky = NO_SKY if stage.environment is None else sky_of(stage.environment)
    return Lights(
        np.array(rows, float).reshape(-1, 7, 3), np.array(areas), np.array(points, float).reshape(-1, 2, 3), sky
    )


@kernel
def new_points():
    """Empty surface points for a packet."""
    return Points(
        np.zeros((8, 3)), np.zeros((8, 3)), np.zeros((8, 3)), np.zeros((8, 3)), np.zeros((8, 3)), np.zeros((8, 2))
    )


@inlined
def arrive(packet, k, surfaces, points):
    """Fill in surface point k from hit k of the packet; returns the instance."""
    words, codes = packet.words, packet.codes
    instance = np.int64(codes[INSTANCE, k])
    face = surfaces.first_face[instance] + np.int64(codes[PRIMITIVE, k])
    a, b, c = surfaces.faces[face, 0], surfaces.faces[face, 1], surfaces.faces[face, 2]
    u, v = np.float64(words[U, k]), np.float64(words[V, k])
    t = 1 - u - v
    reach, size = np.float64(words[T_FAR, k]), 0.0
    _turned_normals(surfaces, instance, words, k, a, b, c, t, u, v, points)
    for axis in range(3):
        hit = words[ORIGIN + axis, k] + reach * words[DIRECTION + axis, k]
        size += abs(hit)
        points.position[k, axis] = hit
        points.viewer[k, axis] = -words[DIRECTION + axis, k]
        points.albedo[k, axis] = surfaces.colour[instance, axis]
    for axis in range(3):
        points.position[k, axis] += _OFFSET * (size + reach) * points.flat[k, axis]
    points.specular[k, 0], points.specular[k, 1] = surfaces.specular[instance, 0], surfaces.specular[instance, 1]
    if surfaces.texture[instance, 1] > 0:
        x = t * surfaces.uv[a, 0] + u * surfaces.uv[b, 0] + v * surfaces.uv[c, 0]
        y = t * surfaces.uv[a, 1] + u * surfaces.uv[b, 1] + v * surfaces.uv[c, 1]
        _multiply_texture(surfaces.texture, instance, surfaces.texels, x, y, points.albedo, k)
    return instance


@inlined
def _turned_normals(surfaces, instance, words, k, a, b, c, t, u, v, points):
    """The interpolated and the triangle's normal in world space, unit length, on the side the ray comes from."""
    matrix, normals = surfaces.normal_matrix, surfaces.normals
    smooth, flat, towards = 0.0, 0.0, 0.0
    for row in range(3):
        n, g = 0.0, 0.0
        for axis in range(3):
            n += matrix[instance, row, axis] * (t * normals[a, axis] + u * normals[b, axis] + v * normals[c, axis])
            g += matrix[instance, row, axis] * words[NORMAL + axis, k]
        points.normal[k, row], points.flat[k, row] = n, g
        smooth += n * n
        flat += g * g
        towards += g * words[DIRECTION + row, k]
    side = -1.0 if towards > 0 else 1.0
    smooth, flat = side / math.sqrt(smooth), side / math.sqrt(flat)
    for row in range(3):
        points.normal[k, row] *= smooth
        points.flat[k, row] *= flat


@inlined
def _multiply_texture(place, instance, texels, u, v, albedo, k):
    """albedo[k] × the texture, bilinear, repeated; texel centres lie at (i + 1/2)/size."""
    start, height, width = place[instance, 0], place[instance, 1], place[instance, 2]
    x, y = u * width - 0.5, v * height - 0.5
    x0, y0 = math.floor(x), math.floor(y)
    fx, fy = x - x0, y - y0
    left, right, top, low = int(x0) % width, int(x0 + 1) % width, int(y0) % height, int(y0 + 1) % height
    for channel in range(3):
        above = (1 - fx) * texels[start + top * width + left, channel] + fx * texels[
            start + top * width + right, channel
        ]
        below = (1 - fx) * texels[start + low * width + left, channel] + fx * texels[
            start + low * width + right, channel
        ]
        albedo[k, channel] *= (1 - fy) * above + fy * below
