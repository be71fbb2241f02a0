"""Physically shaded images, path traced, split exactly into albedo·shading + specular.

The BSDF is f = albedo/π + F0·GGX(alpha), two-sided, with F0 constant over angles (so energy is never gained while
albedo + F0 ≤ 1). At the first surface the two lobes are traced separately: light reflected by the diffuse lobe gives the
shading, light reflected by the glossy lobe the specular layer. At later surfaces both lobes are sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from diorama.render.check import check
from diorama.render.stage import Stage

if TYPE_CHECKING:
    from diorama.render.layers import Picture

Window = tuple[int, int, int, int]
_ROWS = 8  # image rows per task; any number gives the same image
_FEWEST = 16  # with this many samples or more, calm pixels take half


def render(
    stage: Stage,
    width: int,
    height: int,
    samples: int = 16,
    bounces: int = 3,
    seed: int = 0,
    threads: int = 1,
    window: Window | None = None,
    shadows: int = 1,
) -> Picture:
    """All layers of one image, linear light, float32 (h, w, 3) unless said otherwise.

    `image` = `albedo`·`shading` + `specular` to the last bit of float32. With anti-aliasing, `albedo` is the mean
    reflectance of the samples, independent of the light, and `shading` = mean diffuse radiance/`albedo` (the plain mean
    shading where the albedo is 0). `specular` is all that is not diffuse: highlights, reflections and, if
    `Environment.seen`, the sky. `coverage` (h, w) is the share of samples that hit something. From the pixel centre, never
    averaged: `object`, `part` int32 (−1 = nothing), `depth` (h, w) along the view axis (inf = nothing), `normal` in world
    space, towards the viewer (0 = nothing). `bounces=0` is direct light only. `window` (x0, y0, x1, y1; far edge excluded)
    traces only these pixels, each as in the whole image; the others are empty. `shadows` is the number of rays that a path
    sends to rectangle lamps and sky if its pixel lies in the shadow of such a lamp, where noise is largest. With more than
    one, direct light only and 16 or more `samples`, pixels inside a surface take half the samples and twice the rays.
    """
    from diorama.render import transport
    from diorama.render.surface import lights, surfaces
    from diorama.render.trace import EmbreeScene

    check(stage, width, height, samples)
    if bounces < 0 or threads < 1 or shadows < 1:
        raise ValueError("render: bounces must be ≥ 0, threads and shadows ≥ 1")
    camera, lamps, tables = lens(stage, width, height), lights(stage), surfaces(stage)
    seen = stage.environment is not None and stage.environment.seen
    x0, y0, x1, y1 = window or (0, 0, width, height)
    if not (0 <= x0 <= x1 <= width and 0 <= y0 <= y1 <= height):
        raise ValueError(f"render: window {window} is not inside the image of {width}×{height}")
    sums = np.zeros((4, height, width, 3), np.float32)
    coverage, front = np.zeros((height, width), np.float32), np.full((height, width), -1, np.int32)
    shade, calm = np.zeros((height, width), np.uint8), np.zeros((height, width), np.bool_)
    setting = samples, bounces, seed & 0xFFFFFFFF, seen, shadows
    depth, normal = np.full((height, width), np.inf, np.float32), np.zeros((height, width, 3), np.float32)
    with EmbreeScene(stage) as embree:

        def look(span: Window) -> None:
            transport.centres(embree, tables, camera, span, front, depth, normal)
            if shadows > 1:
                transport.find_shadows(embree, tables, lamps, camera, span, shade)

        def trace(span: Window) -> None:
            if shadows > 1 and bounces == 0 and samples >= _FEWEST:
                transport.find_calm(front, normal, span, calm)
            transport.radiance(embree, tables, lamps, camera, span, setting, shade, calm, sums, coverage)

        # whether a pixel is calm depends on its neighbours, which may lie outside of the window
        _in_rows(look, (max(x0 - 1, 0), max(y0 - 1, 0), min(x1 + 1, width), min(y1 + 1, height)), threads)
        _in_rows(trace, (x0, y0, x1, y1), threads)
    outside = np.ones((height, width), np.bool_)
    outside[y0:y1, x0:x1] = False
    front[outside], depth[outside], normal[outside] = -1, np.inf, 0
    geometry = {**_ids(stage, front), "depth": depth, "normal": normal, "coverage": coverage}
    return {**_split(*sums), **geometry}


def _in_rows(work: Callable[[Window], None], window: Window, threads: int) -> None:
    """Call `work` for spans (y0, y1, x0, x1) of a few rows of a window (x0, y0, x1, y1)."""
    x0, y0, x1, y1 = window
    spans = [(y, min(y + _ROWS, y1), x0, x1) for y in range(y0, y1, _ROWS)]
    if threads == 1:
        for span in spans:
            work(span)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, spans))


def _split(
    albedo: NDArray[np.float32], diffuse: NDArray[np.float32], plain: NDArray[np.float32], specular: NDArray[np.float32]
) -> Picture:
    shading = np.where(albedo > 0, diffuse / np.where(albedo > 0, albedo, 1), plain)
    return {"image": albedo * shading + specular, "albedo": albedo, "shading": shading, "specular": specular}


def _ids(stage: Stage, front: NDArray[np.int32]) -> Picture:
    objects = np.array([*(instance.object for instance in stage.instances), -1], np.int32)
    parts = np.array([*(instance.part for instance in stage.instances), -1], np.int32)
    return {"object": objects[front], "part": parts[front]}


def lens(stage: Stage, width: int, height: int) -> NDArray[np.float64]:
    """Rows: eye; right, down, corner, so that x·right + y·down + corner looks at (x, y) in 0..1; forward."""
    right, up, forward = stage.camera.basis()
    tangent = np.tan(np.radians(stage.camera.fov_degrees) / 2)
    across, down = right * tangent * width / height, -up * tangent
    return np.stack([np.asarray(stage.camera.eye, float), 2 * across, 2 * down, forward - across - down, forward])
