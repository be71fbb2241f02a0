"""The capture study: the errors of the pipeline's R, S and C. `python -m studies.intrinsic.capture`

Grosse et al. could not measure these errors, because they had no truth (their section 3.3 lists the sources of error). Here
their pipeline gets rendered photographs, and one source of error is made larger at a time.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from diorama.capture.virtual import Capture, Photographs, develop, errors, noisy, photograph, twins
from diorama.core.scene import Scene, rng
from diorama.worlds.tabletop.tabletop import Tabletop
from studies.page_kit import table

NOISE = (0.001, 0.003, 0.01, 0.03)
MOVED = (0.25, 0.5, 0.75, 1.0)
TABLES = (0.0, 0.25, 0.5, 0.85)
FLAT = ([0.6, 0.3, 0.15], [0.2, 0.5, 0.3], [0.25, 0.3, 0.6])
STRAY = 0.05  # radiance of the room's walls: no room is completely dark, and R is unknown where no light falls


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: mean errors over the scenes, as shares, and the error in pixels of the estimated shift."""

    study: str
    level: str
    variant: str
    R: float
    S: float
    C: float
    off: float | None = None


Result = tuple[str, str, str, dict[str, float], float | None]


def study(size: int = 64, samples: int = 64, scenes: int = 3, seed: int = 0) -> list[Condition]:
    """The mean errors of all conditions over `scenes` scenes of three textured objects in a dim room."""
    world = Tabletop(size=size, samples=samples, objects=3, surface="textured", fill=STRAY)
    results = [result for i in range(scenes) for result in _one_scene(world, world.sample(rng(seed, "scene", i)), seed)]
    return [_mean_row(key, results) for key in dict.fromkeys(result[:3] for result in results)]


def _mean_row(key: tuple[str, str, str], results: Iterable[Result]) -> Condition:
    mine = [result for result in results if result[:3] == key]
    mean = {layer: float(np.mean([result[3][layer] for result in mine])) for layer in "RSC"}
    off = [result[4] for result in mine if result[4] is not None]
    return Condition(*key, mean["R"], mean["S"], mean["C"], float(np.mean(off)) if off else None)


def _one_scene(world: Tabletop, scene: Scene, seed: int) -> Iterator[Result]:
    still = photograph(world, scene)
    flat = photograph(world, world.do(scene, albedo=dict(enumerate(FLAT))))
    yield from _by_lights("floor", "flat paint", flat)
    yield from _by_lights("floor", "textured", still)
    for sigma in NOISE:
        yield from _by_lights("noise", f"σ = {sigma:g}", noisy(still, sigma, seed))
    for far in (0.0, *MOVED):
        moved = (0.8 * far, -0.6 * far)  # oblique, so that both axes are wrong
        taken = replace(still, uniform=twins(world, scene, moved=moved)) if far else still
        yield _result("misalignment", f"{far:g} px", "as taken", develop(taken, aligned=False), taken)
        capture = develop(taken)
        off = float(np.hypot(*np.subtract(capture.shift, moved)))
        yield "misalignment", f"{far:g} px", "aligned", errors(capture, taken), off
    bouncing = replace(world, bounces=3)
    for gray in TABLES:
        taken = photograph(bouncing, world.do(scene, table=gray))
        yield from _by_lights("interreflection", f"table {gray:g}", taken)


def _by_lights(study_name: str, level: str, taken: Photographs) -> Iterator[Result]:
    for lights, variant in ((1, "R from one light"), (2, "R from two lights")):
        yield _result(study_name, level, variant, develop(taken, False, lights), taken)


def _result(study_name: str, level: str, variant: str, capture: Capture, taken: Photographs) -> Result:
    return study_name, level, variant, errors(capture, taken), None


def markdown(rows: Iterable[Condition]) -> str:
    """The rows as a Markdown table, errors in per cent.

    >>> print(markdown([Condition("noise", "σ = 0.01", "R from one light", 0.1, 0.02, 0.005)]))
    | study | level | variant | R % | S % | C % | shift off by, px |
    | :--- | :--- | :--- | ---: | ---: | ---: | ---: |
    | noise | σ = 0.01 | R from one light | 10.00 | 2.00 | 0.50 |  |
    """
    lines = []
    for row in rows:
        figures = [f"{100 * value:.2f}" for value in (row.R, row.S, row.C)]
        lines.append([row.study, row.level, row.variant, *figures, "" if row.off is None else f"{row.off:.3f}"])
    return table(["study", "level", "variant", "R %", "S %", "C %", "shift off by, px"], lines, text=3)


def main() -> int:
    """Print the study."""
    parser = argparse.ArgumentParser(prog="python -m studies.intrinsic.capture", description=__doc__)
    for name, value in (("size", 64), ("samples", 64), ("scenes", 3), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    print(markdown(study(options.size, options.samples, options.scenes, options.seed)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
