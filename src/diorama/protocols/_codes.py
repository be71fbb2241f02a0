"""What protocols that judge codes share: a case is a draw of frames, scored at once; its controls; its picture.

Functions whose first argument is `self` become methods by assignment in the body of a protocol: `score = score_draw`. The
protocol itself has `measure(codes, factors, rng) -> Measured` and the parameters `frames`, `defect` and `nulls`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from diorama.core.answers import Code
from diorama.core.bench import Bench
from diorama.core.contracts import Case, Panel, Score, World, scene_at
from diorama.core.encoding import codes_of, factors_of
from diorama.core.errors import InputError
from diorama.core.folds import two_fold
from diorama.core.scene import Scene, rng
from diorama.metrics import chance
from diorama.metrics.codes import Measured
from diorama.metrics.planted import planted, unit

#: Frames in a draw, as in the large study of Locatello et al. 2019.
FRAMES = 10_000
#: Frames of a draw that a picture is made from.
PICTURED = 500
DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
DOSE_NAME = "dose of the protocol's defect in codes that are the true factors"


def check_frames(name: str, frames: int, nulls: int) -> None:
    """Refuse draws that are too small to be scored."""
    if frames < 10:
        raise InputError(f"{name}: frames={frames} is no sample; the literature uses {FRAMES}")
    if nulls < 1:
        raise InputError(f"{name}: nulls={nulls}: at least one permutation is needed for the null")


def draw_case(self: Any, world: World, seed: int, index: int) -> Case:
    """The index-th draw of frames; payload: how to make it again."""
    if not hasattr(world, "levels"):
        raise InputError(f"{type(self).__name__.lower()} needs a world with levels of factors, like sprites")
    return Case(f"draw-{index:03d}", {"seed": seed, "draw": index})


def frames_of(self: Any, world: Any, case: Case) -> list[tuple[str, Scene]]:
    """Names and scenes of a draw: consecutive scenes of the world, all of them if it has no more than `frames`."""
    first, recorded = case.payload["draw"], hasattr(world, "__len__")
    count = min(self.frames, len(world)) if recorded else self.frames
    places = (first * count + j for j in range(count))
    if recorded:
        return [world.scene(i % len(world)) for i in places]
    return [scene_at(world, case.payload["seed"], i) for i in places]


def other_draws(index: int, count: int) -> list[int]:
    """What an encoder is fitted on: the draws of the other parity; with a single draw that one, its factors unseen."""
    return two_fold(index, count) or [index]


def measured(self: Any, bench: Bench, case: Case) -> tuple[np.ndarray, np.ndarray, Measured]:
    """Codes and factors of a draw, and what the protocol's metric finds in them."""
    draw = frames_of(self, bench.world.object, case)
    codes, factors = codes_of(bench, draw), factors_of(bench, draw)
    return codes, factors, self.measure(codes, factors, rng(case.payload["seed"], "measure", case.key))


def score_draw(self: Any, bench: Bench, case: Case) -> Iterator[Score]:
    """Every value of the metric, and the mean of the first over permuted rows."""
    codes, factors, found = measured(self, bench, case)
    for name, value in found.values.items():
        yield _score(name, value, _reason(found, factors))
    generator = rng(case.payload["seed"], "null", case.key)

    def again(z: np.ndarray, g: np.ndarray) -> float:
        return self.measure(z, g, generator).value

    null = chance.null(again, codes, factors, generator, self.nulls)
    yield _score(f"{next(iter(found.values))}_null", null.mean, "no permutation has a value")


def _score(name: str, value: float, reason: str) -> Score:
    return Score(name, None, status="undefined", reason=reason) if np.isnan(value) else Score(name, value)


def _reason(found: Measured, factors: np.ndarray) -> str:
    varying = int((np.ptp(factors, axis=0) > 0).sum())
    return f"{int(found.active.sum())} of {len(found.active)} latents are active, {varying} factors vary"


def oracle_codes(self: Any, bench: Bench, scene: Scene, target: int | None) -> Code:
    """The factors of the whole draw, each scaled to 0 … 1."""
    return Code(unit(factors_of(bench, frames_of(self, bench.world.object, bench.case))))


def dosed_codes(self: Any, bench: Bench, scene: Scene, target: int | None, dose: float) -> Code:
    """The factors of the whole draw, spoilt by the protocol's defect."""
    factors = factors_of(bench, frames_of(self, bench.world.object, bench.case))
    generator = rng(bench.case.payload["seed"], "dose", bench.case.key, self.defect)
    return Code(planted(factors, self.defect, dose, generator))


def draw_settings(self: Any, world: Any) -> dict[str, str]:
    """What is printed with every number."""
    shown = {
        "frames": f"{self.frames} in a draw",
        "factors": ", ".join(world.levels),
        "null": f"{self.nulls} permutations",
    }
    rule = {"active latents": self.rule} if hasattr(self, "rule") else {}
    return {**shown, **rule, "dose": self.defect}


def matrix_panels(self: Any, bench: Bench, case: Case) -> list[Panel]:
    """Two frames of the draw, and the matrix that the score is read from on its first frames: latents × factors."""
    draw = frames_of(self, bench.world.object, case)[:PICTURED]
    codes, factors = codes_of(bench, draw)[:PICTURED], factors_of(bench, draw)
    matrix = self.measure(codes, factors, rng(case.payload["seed"], "picture", case.key)).matrix
    frames = [Panel("a frame", frame.srgb()) for frame in bench.frames([scene for _, scene in draw[:2]])]
    return [*frames, Panel(f"latents × factors, {len(draw)} frames", _heat(matrix))]


def _heat(matrix: np.ndarray, side: int = 144) -> np.ndarray:
    """Black to orange from 0 to the largest entry; gray where there is none."""
    top = np.nanmax(np.abs(matrix)) if np.isfinite(matrix).any() else 1.0
    shade = np.nan_to_num(np.abs(matrix) / max(top, 1e-12))[:, :, None] * np.array([1.0, 0.75, 0.3])
    cells = np.where(np.isnan(matrix)[:, :, None], 0.5, shade)
    rows, columns = (np.arange(side) * n // side for n in matrix.shape)
    return cells[rows][:, columns].astype(np.float32)
