"""The light sampler of before and today's at equal error, in one process: candle's objects, tabletop's shadows.

Errors are root mean squares and 99th percentiles against a reference of 4,096 paths per pixel, half of them by either
sampler, in levels of an 8-bit sRGB image; objects of candle stand before an even gray, so that their edges count. Times are
CPU seconds of this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks._old_sampler import render_old
from diorama.core.frame import linear_to_srgb
from diorama.core.scene import rng
from diorama.render import Stage, render
from diorama.worlds.candle import stage as candle_stage
from diorama.worlds.candle.candle import Candle
from diorama.worlds.candle.panoramas import panorama
from diorama.worlds.tabletop.stage import SHADOWS, stage_of
from diorama.worlds.tabletop.tabletop import Tabletop

_WIDTH = 160
_BEHIND = 0.3  # linear brightness of the backdrop
_COUNTS = (16, 24, 32, 48, 64, 96, 128)
#: One object of each kind, each scene and lamp at least once.
_CASES: tuple[tuple[str, str, str], ...] = (
    ("outdoor", "cube", "left"),
    ("indoor", "sphere", "middle"),
    ("playground", "cylinder", "right"),
    ("outdoor", "cone", "right"),
    ("indoor", "torus", "left"),
)


class Shot(NamedTuple):
    """A stage to be rendered: size, bounces, the window that is traced, and the pixels that are judged."""

    stage: Stage
    size: tuple[int, int]
    bounces: int
    window: tuple[int, int, int, int]
    judged: Callable[[dict[str, Any]], np.ndarray]
    shadows: int = 1


def candle_shots() -> list[Shot]:
    """The five solids, size 2.5, in the middle of the floor."""
    world, shots = Candle(width=_WIDTH), []
    for scene, solid, light in _CASES:
        changes = {
            "scene": scene,
            "object": solid,
            "light": light,
            "size": 2.5,
            "camera": [0, 0],
            "position": [0.6, -6],
        }
        params = world.do(world.numbered(0), **changes).params
        stage = candle_stage.stage_of(params, panorama(scene, None, _WIDTH), world.lamp, False, False)
        window = candle_stage._window(params, False, _WIDTH, world.height)
        shots.append(Shot(stage, (_WIDTH, world.height), 1, window, lambda found: found["coverage"] > 0))
    return shots


def tabletop_shots() -> list[Shot]:
    """Three scenes of `tabletop` as by default; pixels darker than a third of the brightest shading are its shadows."""
    world = Tabletop()
    scenes = [world.sample(rng("sampler bench", k)) for k in range(3)]
    whole = (0, 0, world.size, world.size)

    def shadow(found: dict[str, Any]) -> np.ndarray:
        shading = found["shading"].mean(-1)
        return np.asarray((found["coverage"] == 1) & (shading < np.quantile(shading, 0.95) / 3))

    return [
        Shot(stage_of(scene.params, None, None, "y"), (world.size, world.size), world.bounces, whole, shadow, SHADOWS)
        for scene in scenes
    ]


def _old(shot: Shot, samples: int, seed: int = 0) -> dict[str, Any]:
    return render_old(shot.stage, *shot.size, samples, shot.bounces, seed, shot.window)


def _new(shot: Shot, samples: int, seed: int = 0) -> dict[str, Any]:
    return render(shot.stage, *shot.size, samples, shot.bounces, seed, window=shot.window, shadows=shot.shadows)


def _shown(found: dict[str, Any]) -> np.ndarray:
    """The picture before the backdrop, in levels."""
    image = found["image"] + (1 - found["coverage"])[..., None] * _BEHIND
    return np.asarray(255 * np.clip(linear_to_srgb(image), 0, 1))


def errors(shots: Sequence[Shot], truths: Sequence[dict[str, Any]], samples: int, sampler: Callable[..., Any]) -> Any:
    """CPU seconds, error and its 99th percentile over all shots together."""
    squares, seconds = [], 0.0
    for shot, truth in zip(shots, truths, strict=True):
        begin = time.process_time()
        found = sampler(shot, samples)
        seconds += time.process_time() - begin
        off = _shown(found) - _shown(truth)
        squares.append((off**2)[shot.judged(truth)].ravel())
    every = np.concatenate(squares)
    return seconds, float(np.sqrt(every.mean())), float(np.sqrt(np.quantile(every, 0.99)))


def compare(name: str, shots: Sequence[Shot], usual: int, reference: int = 4096) -> dict[str, float]:
    """The old sampler at its usual number of paths, today's at the smallest with no larger error and at equal time."""
    truths = []
    for shot in shots:
        a, b = _new(shot, reference // 2, 1), _old(shot, reference // 2, 2)
        truths.append({**a, **{name: (a[name] + b[name]) / 2 for name in ("image", "coverage")}})
    for warm in (_old, _new):
        warm(shots[0], 8)
    counts = [n for n in _COUNTS if n <= 2 * usual]
    found = {n: errors(shots, truths, n, _new) for n in counts}
    seconds, error, tail = errors(shots, truths, usual, _old)
    equal = next((n for n in counts if found[n][1] <= error), counts[-1])
    timed = max((n for n in counts if found[n][0] <= seconds), default=counts[0])
    return {
        f"{name}_old_samples": usual,
        f"{name}_old_cpu_s": seconds,
        f"{name}_old_error": error,
        f"{name}_old_error_99th": tail,
        f"{name}_new_samples_at_equal_error": equal,
        f"{name}_new_cpu_s_at_equal_error": found[equal][0],
        f"{name}_new_error": found[equal][1],
        f"{name}_new_error_99th": found[equal][2],
        f"{name}_times_faster_at_equal_error": seconds / found[equal][0],
        f"{name}_error_at_equal_time_old_over_new": error / found[timed][1],
    }


def figures(reference: int = 4096) -> dict[str, float]:
    """Both comparisons."""
    return {
        **compare("sampler_candle", candle_shots(), 128, reference),
        **compare("sampler_tabletop_shadow", tabletop_shots(), 32, reference),
    }
