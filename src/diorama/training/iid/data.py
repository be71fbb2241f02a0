"""Layers of staged table tops, rendered once; the decomposition networks train on products of them.

Every base scene is rendered `views` times, each time with other paint under another lamp. Reflectance i and shading j of
one base scene make an image R_i·S_j + C_j, so a few renders give many images with exact truth. A lamp's tint multiplies
shading, as in `tabletop`. Scene i is a function of (seed, purpose, i): an interrupted rendering goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diorama.core.progress import Progress
from diorama.core.scene import Scene, rng
from diorama.methods.decompose.iid.passes import exposed
from diorama.render.colour import black_body
from diorama.training.blocks import filled
from diorama.worlds.tabletop.tabletop import LIGHTS, Tabletop

#: The paint of the views: flat and textured in turn.
_SURFACES: tuple[Literal["rgb", "textured"], ...] = ("rgb", "textured")


@dataclass(frozen=True, slots=True)
class LayerOrder:
    """Which layers to stage: `scenes` base scenes (one and three objects in turn), `views` of each."""

    purpose: str
    scenes: int
    views: int = 6
    size: int = 64
    samples: int = 16
    seed: int = 0

    @property
    def count(self) -> int:
        """How many base scenes there are."""
        return self.scenes

    @property
    def what(self) -> str:
        """What they are for, for the progress line."""
        return f"scenes to {self.purpose}"

    def identity(self) -> dict[str, Any]:
        """What must be the same for the rows of a folder to be reused."""
        return asdict(self)

    def arrays(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """R, S, C and mask of every view of a base scene, in one array."""
        return {"layers": (np.float16, (min(self.views, LIGHTS), self.size, self.size, 6))}

    def row(self, index: int) -> Mapping[str, Any]:
        """The layers of a base scene."""
        stacked = []
        for frame in Tabletop(self.size, self.samples).render(scenes_of(self, index)):
            gray = [frame.truth[name].mean(axis=2, keepdims=True) for name in ("shading", "specular")]
            stacked.append(np.concatenate([frame.truth["reflectance"], *gray, frame.mask[:, :, None]], axis=2))
        return {"layers": np.stack(stacked)}


@dataclass(frozen=True, slots=True)
class LayerArrays:
    """Reflectance (n, k, h, w, 3), gray shading and highlights (n, k, h, w) under white light, mask (n, h, w)."""

    reflectance: np.ndarray
    shading: np.ndarray
    specular: np.ndarray
    mask: np.ndarray

    def __len__(self) -> int:
        return len(self.mask)

    @property
    def views(self) -> int:
        """Paints, and lamps, of a base scene."""
        return self.shading.shape[1]

    def at(self, size: int) -> LayerArrays:
        """The layers at a smaller side that divides their own, by area."""
        step = self.mask.shape[1] // size
        if step == 1:
            return self
        r, s, c, mask = (_reduced(x, step) for x in (self.reflectance, self.shading, self.specular, self.mask))
        return LayerArrays(r, s, c, mask >= 0.5)


@dataclass(frozen=True, slots=True)
class Batch:
    """Float32: image, reflectance and shading with the lamp's tint (n, h, w, 3); weight (n, h, w), 0 where cut out."""

    image: np.ndarray
    reflectance: np.ndarray
    shading: np.ndarray
    weight: np.ndarray


def _reduced(layer: np.ndarray, step: int) -> np.ndarray:
    """(n, k, h, w, …) or (n, h, w) with step×step pixels as one."""
    axis = 1 if layer.ndim == 3 else 2
    h, w = layer.shape[axis : axis + 2]
    parts = layer.reshape(*layer.shape[:axis], h // step, step, w // step, step, *layer.shape[axis + 2 :])
    return parts.mean(axis=(axis + 1, axis + 3), dtype=np.float32).astype(np.float16)


def layered(order: LayerOrder, folder: Path, progress: Progress) -> LayerArrays:
    """The layers of an order; scenes that `folder` does not have yet are rendered."""
    layers = np.array(filled(order, folder, progress, processes=1)["layers"])
    r, s, c, mask = np.split(layers, (3, 4, 5), axis=-1)
    return LayerArrays(r, s[..., 0], c[..., 0], mask[:, 0, ..., 0] > 0)


def scenes_of(order: LayerOrder, index: int) -> list[Scene]:
    """The views of a base scene: one geometry; paint, table and lamp differ."""
    generator = rng(order.seed, order.purpose, index)
    worlds = [Tabletop(order.size, objects=1 + 2 * (index % 2), surface=surface) for surface in _SURFACES]
    base = worlds[0].sample(generator)
    lamps = generator.permutation(LIGHTS)[: order.views]
    return [_view(worlds[k % 2], base, int(lamp), generator, k) for k, lamp in enumerate(lamps)]


def _view(world: Tabletop, base: Scene, lamp: int, generator: np.random.Generator, k: int) -> Scene:
    painted = world.sample(generator).params["objects"]
    things = [{**thing, "paint": other["paint"]} for thing, other in zip(base.params["objects"], painted, strict=True)]
    table = 0.85 if k % 3 else generator.uniform(0.1, 0.9)
    radius, fill = generator.choice([0.2, 0.5, 0.8]), generator.choice([0.05, 0.15, 0.3])
    repainted = Scene(base.world, {**base.params, "objects": things})
    return world.do(repainted, light=lamp, table=float(table), radius=float(radius), fill=float(fill))


def pairs(data: LayerArrays, generator: np.random.Generator, count: int, tinted: bool = True) -> Batch:
    """`count` images, each a random base scene, paint and lamp; `tinted=False` for white lamps only."""
    scene, paint, lamp = (generator.integers(n, size=count) for n in (len(data), data.views, data.views))
    return _composed(data, generator, scene, paint[:, None], lamp[:, None], tinted)


def sequences(data: LayerArrays, generator: np.random.Generator, count: int) -> Batch:
    """`count` sequences, each a base scene in one paint under all its lamps, one after the other."""
    scene, paint = generator.integers(len(data), size=count), generator.integers(data.views, size=(count, 1))
    lamps = np.tile(np.arange(data.views), (count, 1))
    return _composed(data, generator, scene, np.tile(paint, (1, data.views)), lamps)


def held_out(data: LayerArrays) -> Batch:
    """Every base scene three times: its first paint and first lamp, other paint, other lamp (A0I0, A1I0, A0I1)."""
    scene = np.arange(len(data))
    paint, lamp = np.tile([0, 1, 0], (len(data), 1)), np.tile([0, 0, 1], (len(data), 1))
    return _composed(data, None, scene, paint, lamp)


def _composed(
    data: LayerArrays,
    generator: np.random.Generator | None,
    scene: np.ndarray,
    paint: np.ndarray,
    lamp: np.ndarray,
    tinted: bool = True,
) -> Batch:
    """Images of scene (n,) with paint and lamp (n, m), as n·m; with a generator a quarter are cut out, on black."""
    row = scene[:, None]
    r = data.reflectance[row, paint].astype(np.float32)
    s, c = (layer[row, lamp].astype(np.float32)[..., None] for layer in (data.shading, data.specular))
    weight = np.ones(s.shape[:4], np.float32)
    if generator is not None:
        if tinted:
            tint = _tints(generator, paint.shape)
            s, c = s * tint, c * tint
        r = np.stack([part @ mix for part, mix in zip(r, _mixes(generator, len(r)), strict=True)])
        cut = (generator.random(len(scene)) < 0.25)[:, None, None, None]
        weight = np.where(cut & ~data.mask[row], 0, weight)
        r, s, c, weight = _mirrored((r, s, c, weight), generator.random(len(scene)) < 0.5)
    s = np.broadcast_to(s, r.shape)
    r, s, c, weight = (np.ascontiguousarray(a.reshape(-1, *a.shape[2:])) for a in (r, s, c, weight))
    return Batch(exposed((r * s + c) * (weight > 0)[..., None]), r, s, weight)


def _tints(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Tints of lamps of 2,500 to 6,500 K, half of them exactly white: (…, 1, 1, 3)."""
    kelvin = generator.integers(25, 66, size=shape) * 100.0
    tint = np.array([black_body(float(k)) for k in kelvin.ravel()], np.float32).reshape(*shape, 3)
    return np.where(generator.random((*shape, 1)) < 0.5, 1, tint)[..., None, None, :].astype(np.float32)


def _mixes(generator: np.random.Generator, count: int) -> np.ndarray:
    """Matrices (n, 3, 3) that permute the channels of paint and desaturate some of it; gray stays as it is."""
    swapped = np.stack([np.eye(3)[generator.permutation(3)] for _ in range(count)])
    gray = (generator.random(count) * (generator.random(count) < 0.4))[:, None, None]
    return ((1 - gray) * swapped + gray / 3).astype(np.float32)


def _mirrored(arrays: tuple[np.ndarray, ...], which: np.ndarray) -> list[np.ndarray]:
    """The chosen rows of (n, m, h, w, …) arrays, left and right swapped."""
    return [np.where(which.reshape(-1, *[1] * (a.ndim - 1)), a[:, :, :, ::-1], a) for a in arrays]
