"""The light sampler of before and today's at equal error, in one run: candle's objects, tabletop's shadows.

Errors are root mean squares and 99th percentiles against a reference of many paths, in levels of an 8-bit sRGB image. That
of candle is by either sampler to the half, and its objects stand before an even gray, so that their edges count. That of
tabletop has a 32nd of the paths, each of which sends 8 rays to lamp and sky in the shadows, where it is judged. Times are
CPU seconds of one process, while others of the bench are at work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
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
_PHOTOGRAPH = 128  # images that the photographs of candle's sets are taken for; their light is the same at every width
_BEHIND = 0.3  # linear brightness of the backdrop
#: Steps through the published numbering of candle in which every set, lamp and object comes up.
_JUDGED, _TIMED = range(0, 10 * 407, 407), range(0, 60 * 67, 67)


class Shot(NamedTuple):
    """A stage to be rendered: size, bounces, the window that is traced, and the pixels that are judged."""

    stage: Stage
    size: tuple[int, int]
    bounces: int
    window: tuple[int, int, int, int]
    judged: Callable[[dict[str, Any]], np.ndarray]
    shadows: int = 1


def candle_shots() -> list[Shot]:
    """Ten scenes of the data set."""
    world, shots = Candle(width=_WIDTH), []
    for index in _JUDGED:
        params = world.numbered(index % 4050).params
        light = panorama(params["scene"], None, _PHOTOGRAPH)
        stage = candle_stage.stage_of(params, light, world.lamp, False, False)
        window = candle_stage._window(params, False, _WIDTH, world.height)
        shots.append(Shot(stage, (_WIDTH, world.height), 1, window, lambda found: found["coverage"] > 0))
    return shots


def tabletop_shots() -> list[Shot]:
    """Scenes of one and of three objects as by default; pixels darker than a third of the brightest shading are shadows."""
    worlds = Tabletop(), Tabletop(objects=3, surface="textured")
    scenes = [(world, world.sample(rng("sampler bench", k))) for world in worlds for k in range(2)]

    def shadow(found: dict[str, Any]) -> np.ndarray:
        shading = found["shading"].mean(-1)
        return np.asarray((found["coverage"] == 1) & (shading < np.quantile(shading, 0.95) / 3))

    return [
        Shot(
            stage_of(scene.params, None, None, "y"),
            (world.size, world.size),
            world.bounces,
            (0, 0, world.size, world.size),
            shadow,
            SHADOWS,
        )
        for world, scene in scenes
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


def compare(
    name: str, shots: Sequence[Shot], truths: Sequence[Any], usual: int, counts: Sequence[int]
) -> dict[str, float]:
    """The old sampler at its usual number of paths; today's by default (the first) and at equal error."""
    for warm in (_old, _new):
        warm(shots[0], 8)
    found = {n: errors(shots, truths, n, _new) for n in counts}
    seconds, error, tail = errors(shots, truths, usual, _old)
    default = counts[0]
    equal = min((n for n in counts if found[n][1] <= error), default=max(counts))
    ours = {"by_default": default, "at_equal_error": equal}
    return {
        f"{name}_old_samples": usual,
        f"{name}_old_cpu_s": seconds,
        f"{name}_old_error": error,
        f"{name}_old_error_99th": tail,
        **{
            f"{name}_new_{what}_{when}": value
            for when, n in ours.items()
            for what, value in zip(("samples", "cpu_s", "error", "error_99th"), (n, *found[n]), strict=True)
        },
        f"{name}_times_faster_at_equal_error": seconds / found[equal][0],
        f"{name}_error_by_default_old_over_new": error / found[default][1],
        f"{name}_time_by_default_new_over_old": found[default][0] / seconds,
    }


def candle_truth(index: int, reference: int) -> dict[str, Any]:
    """A reference of `candle_shots`, half of it by either sampler."""
    shot = candle_shots()[index]
    a, b = _new(shot, reference // 2, 1), _old(shot, reference // 2, 2)
    return {name: (a[name] + b[name]) / 2 for name in ("image", "coverage")}


def tabletop_truth(index: int, reference: int) -> dict[str, Any]:
    """A reference of `tabletop_shots`, by today's sampler."""
    shot = tabletop_shots()[index]
    found = _new(shot._replace(shadows=8), max(reference // 32, 64), 1)
    return {name: found[name] for name in ("image", "coverage", "shading")}


def candle_errors(truths: Sequence[Any]) -> dict[str, float]:
    """Of both samplers on candle's objects."""
    return compare("sampler_candle", candle_shots(), truths, 128, (Candle().samples, 32, 64))


def tabletop_errors(truths: Sequence[Any]) -> dict[str, float]:
    """Of both samplers in tabletop's shadows."""
    return compare("sampler_tabletop_shadow", tabletop_shots(), truths, 32, (Tabletop().samples, 8))


def candle_seconds(indices: Sequence[int]) -> list[float]:
    """CPU seconds that images of candle take at 320×240; the photographs of the sets are not counted."""
    world, seconds = Candle(), []
    scenes = [world.numbered(index).params for index in indices]
    for params in (scenes[0], *scenes):
        light = panorama(params["scene"], None, _PHOTOGRAPH)
        begin = time.process_time()
        candle_stage.picture_of(params, light, (world.width, world.height), world.samples, (world.lamp, False, False))
        seconds.append(time.process_time() - begin)
    return seconds[1:]


def candle_set(seconds: Sequence[float]) -> dict[str, float]:
    """What an image of candle's 4,050 takes, and all of them."""
    mean = float(np.mean(seconds))
    return {
        "candle_images_timed": len(seconds),
        "candle_320px_cpu_s_per_image": mean,
        "candle_320px_cpu_s_largest": max(seconds),
        "candle_4050_images_minutes_on_two_cores": 4050 * mean / 2 / 60,
    }


def figures(reference: int = 4096) -> dict[str, float]:
    """Both comparisons, and the time of candle's data set; said on stderr as they come."""
    for name in ("indoor", "outdoor", "playground"):
        panorama(name, None, _PHOTOGRAPH)  # taken once, not by two processes
    found: dict[str, float] = {}

    def add(more: dict[str, float]) -> None:
        found.update(more)
        print(more, file=sys.stderr, flush=True)

    with get_context("spawn").Pool(6) as pool:
        tops = [pool.apply_async(tabletop_truth, (k, reference)) for k in range(4)]
        timed = [pool.apply_async(candle_seconds, (_TIMED[k::4],)) for k in range(4)]
        candles = [pool.apply_async(candle_truth, (k, reference)) for k in range(len(_JUDGED))]
        top = pool.apply_async(tabletop_errors, ([truth.get() for truth in tops],))
        add(candle_set([value for part in timed for value in part.get()]))
        candle = pool.apply_async(candle_errors, ([truth.get() for truth in candles],))
        add(top.get())
        add(candle.get())
    return found
