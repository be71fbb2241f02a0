"""Toon images as FunnyBirds' renderer draws them, whole or as layers that composite byte for byte.

Triangles are rasterised, not traced: without cast shadows an instance looks the same whatever is around it, and since the
outline hull changes with every camera, an acceleration structure would have to be rebuilt each time.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from diorama.render.check import check, cofactors, determinants, transforms
from diorama.render.colour import byte_table
from diorama.render.mesh import Mesh
from diorama.render.stage import Colour, PointLight, Stage

if TYPE_CHECKING:
    from diorama.render.layers import Picture, ToonLayers
    from diorama.render.raster import Cast

Lens = tuple[float, float, float, float]  # width, height, and 1/tan of half the angle in x and y
Clip = tuple[float, float]
Target = tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Toon:
    """The shading model of FunnyBirds: colour·(ambient + intensity·g·clamp(1 − d/cutoff)), g = steps[(N·L)/2 + 1/2]."""

    steps: tuple[float, ...] = (0.0, 51 / 255, 102 / 255)
    ambient: Colour = (0x88 / 255, 0x88 / 255, 0x88 / 255)
    cutoff: float = 800.0
    background: tuple[int, int, int] = (0x55, 0x55, 0x99)  # sRGB bytes, written as they are
    outline: float = 0.003  # clip-space thickness of the black back-face hull; 0 = none
    near: float = 1.0
    far: float = 2500.0


FUNNYBIRDS = Toon()


def toon_image(stage: Stage, width: int, height: int, samples: int = 1, look: Toon = FUNNYBIRDS) -> Picture:
    """One image: `image` uint8 sRGB (h, w, 3), `object`, `part` int32 (−1 = nothing), `depth` float32 (inf = nothing).

    `samples` per pixel: 1 is the centre, 5 a good anti-aliasing; their bytes are averaged, as in multisampling. Ids and
    depth (along the view axis) come from the pixel centre, without the outline. Only front faces are drawn. Only the first
    point light is used, nothing casts a shadow, textures and highlights are ignored.
    """
    from diorama.render import raster

    paint = _painter(stage, width, height, samples, look)
    target = _blank(width, height, samples)
    target[1][:] = look.background
    paint(np.arange(len(stage.instances)), target)
    depth, colour, owner = target
    image = np.empty((height, width, 3), np.uint8)
    raster.resolve(colour, samples, image)
    _, objects, parts = _labels(stage)
    front = owner[:, :, samples]
    ids = {"object": np.append(objects, np.int32(-1))[front], "part": np.append(parts, np.int32(-1))[front]}
    return {"image": image, **ids, "depth": depth[:, :, samples].copy()}


def toon_layers(stage: Stage, width: int, height: int, samples: int = 1, look: Toon = FUNNYBIRDS) -> ToonLayers:
    """The stage as separate layers by `Instance.layer`; `layers.composite(drop)` equals `toon_image` without those."""
    from diorama.render import raster
    from diorama.render.layers import assemble

    paint = _painter(stage, width, height, samples, look)
    target = _blank(width, height, samples)
    labels = _labels(stage)
    entries = []
    for layer in range(labels[0].max() + 1):
        entries.append(raster.collect(target, paint(np.flatnonzero(labels[0] == layer), target)))
    where, depth, owner, colour = (np.concatenate(column) for column in zip(*entries, strict=True))
    background = np.array(look.background, np.uint8)
    return assemble(_names(stage), (where, depth, owner, colour), labels, background, (height, width, samples + 1))


@cache
def sample_offsets(samples: int) -> NDArray[np.float64]:
    """Positions in the pixel, the first at its centre: the rank-1 lattice (i, a·i)/n with the largest minimal distance.

    >>> sample_offsets(5).round(1).tolist()
    [[0.5, 0.5], [0.7, 0.9], [0.9, 0.3], [0.1, 0.7], [0.3, 0.1]]
    """
    i = np.arange(samples)
    gaps = []
    for a in range(1, samples + 1):
        x, y = i[1:] / samples, (a * i[1:] % samples) / samples
        gaps.append(np.hypot(np.minimum(x, 1 - x), np.minimum(y, 1 - y)).min(initial=2.0))
    a = 1 + int(np.argmax(np.round(gaps, 9)))
    return (np.stack([i, a * i], 1) / samples + 0.5) % 1


def _painter(
    stage: Stage, width: int, height: int, samples: int, look: Toon
) -> Callable[[NDArray[np.int64], Target], NDArray[np.int64]]:
    """A function that draws some instances into a target and returns the window of pixels they touched."""
    from diorama.render import raster

    check(stage, width, height, samples)
    basis = stage.camera.basis()
    light, intensity = _light(stage, basis)
    focal = 1 / math.tan(math.radians(stage.camera.fov_degrees) / 2)
    lens = (float(width), float(height), focal * height / width, focal)
    clip, thickness = (float(look.near), float(look.far)), float(look.outline)
    cast = _cast(stage, basis, lens, clip, np.array([look.ambient, intensity]))
    offsets = np.concatenate([sample_offsets(samples), [[0.5, 0.5]]])
    shading = (*byte_table(), np.array(look.steps), float(look.cutoff), light)
    n = cast.meshes[:, 3].max()
    scratch = (
        np.empty((n, 3), np.float32),
        np.empty((n if look.outline > 0 else 0, 3), np.float32),
        np.empty((n, 3), np.float32),
        np.empty((height, width, samples + 1), np.int32),
    )

    def paint(members: NDArray[np.int64], target: Target) -> NDArray[np.int64]:
        return raster.paint(members, cast, lens, thickness, clip, shading, offsets, scratch, target)

    return paint


def _cast(stage: Stage, basis: NDArray[np.float64], lens: Lens, clip: Clip, glow: NDArray[np.float64]) -> Cast:
    """The kernels' tables of the instances; `glow` holds the ambient light and the intensity of the lamp."""
    from diorama.render.raster import Cast

    width, height, focal_x, focal_y = lens
    views = basis @ transforms(stage)[:, :3]
    views[:, :, 3] -= basis @ np.asarray(stage.camera.eye, float)
    linear = views[:, :, :3]
    fronts = np.sign(determinants(linear))
    to_pixels = 0.5 * np.array([[width * focal_x, 0, width], [0, -height * focal_y, height], [0, 0, 2]])
    z_row = (clip[1] + clip[0]) / (clip[1] - clip[0])
    to_clip = np.array([[focal_x, 0, 0], [0, focal_y, 0], [0, 0, z_row], [0, 0, 1]]) @ linear
    colours = np.array([instance.colour for instance in stage.instances], float)
    return Cast(
        np.array([_addresses(stage.library[instance.mesh]) for instance in stage.instances]),
        to_pixels @ views,
        np.swapaxes(to_clip, 1, 2) @ to_clip,
        cofactors(linear) * fronts[:, None, None],
        _are_conformal(linear),
        fronts,
        glow * colours[:, None],
    )


def _addresses(mesh: Mesh) -> tuple[int, ...]:
    if mesh not in _known:
        places = (array.ctypes.data for array in (mesh.vertices, mesh.normals, mesh.faces))
        _known[mesh] = (*places, len(mesh.vertices), len(mesh.faces))
    return _known[mesh]


_known: weakref.WeakKeyDictionary[Mesh, tuple[int, ...]] = weakref.WeakKeyDictionary()


def _are_conformal(linear: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which (n, 3, 3) matrices keep angles: AᵀA = s²·1."""
    gram = np.swapaxes(linear, 1, 2) @ linear
    scale = np.trace(gram, axis1=1, axis2=2)[:, None, None] / 3
    return (np.abs(gram - scale * np.eye(3)) <= 1e-9 * scale).all((1, 2))


def _light(stage: Stage, basis: NDArray[np.float64]) -> tuple[NDArray[np.float64], Colour]:
    """The first point light in view coordinates, and its intensity; intensity 0 if there is none."""
    for light in stage.lights:
        if isinstance(light, PointLight):
            return basis @ np.subtract(light.position, stage.camera.eye), light.intensity
    return np.zeros(3), (0.0, 0.0, 0.0)


def _blank(width: int, height: int, samples: int) -> Target:
    shape = (height, width, samples + 1)
    return np.full(shape, np.inf, np.float32), np.empty((*shape, 3), np.uint8), np.full(shape, -1, np.int32)


def _names(stage: Stage) -> tuple[str, ...]:
    return tuple(dict.fromkeys(instance.layer for instance in stage.instances))


def _labels(stage: Stage) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Layer, object and part of every instance."""
    index = {name: i for i, name in enumerate(_names(stage))}
    rows = [(index[instance.layer], instance.object, instance.part) for instance in stage.instances]
    layer, objects, parts = np.array(rows, np.int32).T.copy()
    return layer, objects, parts
