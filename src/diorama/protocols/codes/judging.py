"""What protocols that judge codes share: cases, each a draw of frames that is scored as a whole; controls; pictures.

A protocol extends `OfDraws` with `cite`, `metrics`, the parameters `frames`, `defect` and `nulls`, and its formula:
`measure(codes, factors, rng)`.
"""

import builtins
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import diorama.metrics.chance as chance  # not through the package, whose names are of all metrics
from diorama.core.answers import Code
from diorama.core.bench import Bench
from diorama.core.capabilities import Levelled
from diorama.core.cases import Case, Matrix, Panel, Score
from diorama.core.contracts import USUAL_DRAWS, Protocol, World
from diorama.core.errors import InputError
from diorama.core.folds import two_fold
from diorama.core.guard import Note
from diorama.core.scene import Scene, rng
from diorama.metrics.codes import Measured, continuous
from diorama.metrics.planted import Defect, planted, unit
from diorama.protocols.codes.draws import codes_of, factors_of

#: Frames in a draw, as in the large study of Locatello et al. 2019.
FRAMES = 10_000
#: Frames of a draw that a picture is made from.
PICTURED = 500


@dataclass(frozen=True, slots=True)
class Draws(Protocol):
    """A protocol whose case is a draw of frames: its cases and the true answer.

    frames  number of frames in a draw; None for 10,000 as in Locatello et al. 2019, or fewer for a world that is slow to
            render
    nulls   number of permutations of rows for the score of unrelated codes
    """

    track = "represent"
    needs = ("factors", Levelled)
    example = "diorama run -w sprites -m beta_vae -p {}"
    #: Which latents count as active; "" where the protocol has its own way.
    rule = ""
    #: Frames of a draw unless `frames` says otherwise.
    usual: ClassVar[int] = FRAMES

    frames: int | None = None
    nulls: int = 1

    def __post_init__(self) -> None:
        if self.frames is not None and self.frames < 10:
            raise InputError(f"{self._name}: frames={self.frames} is no sample; the literature uses {FRAMES}")
        if self.nulls < 1:
            raise InputError(f"{self._name}: nulls={self.nulls}: at least one permutation is needed for the null")

    @property
    def _name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def count(self, world: World, asked: int | None) -> int:
        """As many draws as are asked for; of a finite world no more than it has frames for."""
        wanted = asked or USUAL_DRAWS
        return wanted if world.length is None else min(wanted, max(world.length // self.size(world), 1))

    def size(self, world: World) -> int:
        """Frames of a draw, if the world has as many."""
        slow = world.drawn if isinstance(world, Levelled) else None
        return self.frames or min(self.usual, slow or self.usual)

    def case(self, world: World, seed: int, index: int) -> Case:
        """The index-th draw of frames; the payload identifies it."""
        return Case(f"draw-{index:03d}", {"seed": seed, "draw": index})

    def frames_of(self, world: World, case: Case) -> list[tuple[str, Scene]]:
        """Names and scenes of a draw: consecutive scenes of the world, all of them if it has no more than `frames`."""
        first, length = case.payload["draw"], world.length
        count = self.size(world) if length is None else min(self.size(world), length)
        places = (first * count + j for j in builtins.range(count))
        return [world.scene_at(case.payload["seed"], i if length is None else i % length) for i in places]

    def scenes(self, world: World, case: Case) -> list[Scene]:
        """The scenes of a draw."""
        return [scene for _, scene in self.frames_of(world, case)]

    def fold(self, index: int, count: int) -> list[int]:
        """The draws that an encoder is fitted on: those of the other parity; for a single draw itself, without factors."""
        return two_fold(index, count) or [index]

    def seen(self, bench: Bench, case: Case) -> dict[str, np.ndarray]:
        """The codes of a draw, and its factors."""
        draw = self.frames_of(bench.world.object, case)
        return {"answer": codes_of(bench, draw), "factors": factors_of(bench, draw)}

    def oracle(self, bench: Bench, scene: Scene | None, target: int | None) -> Code:
        """The factors of the whole draw, each scaled to 0 … 1."""
        return Code(unit(factors_of(bench, self.frames_of(bench.world.object, bench.case))))


@dataclass(frozen=True, slots=True)
class OfDraws(Draws):
    """A protocol that measures a draw: its score with a null, its doses and its picture.

    rule    which latents take part: all; varies, those that are not constant; spread, with a standard deviation above
            10 % of the largest; range, with a range above 1/20 of the largest; scale, with a standard deviation of at
            least .05
    defect  defect that the dose control plants in true codes: noise, rotation, a common confounder, or dead latents
    """

    doses = (0.0, 0.25, 0.5, 0.75, 1.0)
    dose_name = "dose of the protocol's defect in codes that are the true factors"

    defect: Defect = "noise"

    @abstractmethod
    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """The metric of a draw."""

    def first(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> float:
        """The first value alone, for the null; overridden where that is cheaper than `measure`."""
        return self.measure(codes, factors, rng).value

    def remarks(self, world: Any, factors: np.ndarray) -> list[str]:
        """Notes that are written beside a draw's rows."""
        cut = [name for name, column in zip(world.levels, factors.T, strict=True) if continuous(column)]
        return [f"{name}: too many values to be classes, cut into 20 bins of equal width" for name in cut]

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """Every value of the metric, and the mean of the first over permuted rows."""
        draw = self.frames_of(bench.world.object, case)
        codes, factors = codes_of(bench, draw), factors_of(bench, draw)
        for remark in self.remarks(bench.world.object, factors):
            warnings.warn(remark, Note, stacklevel=2)
        measured = self.measure(codes, factors, rng(case.payload["seed"], "measure", case.key))
        for name, value in measured.values.items():
            yield _score(name, value, _reason(measured, factors))
        generator = rng(case.payload["seed"], "null", case.key)

        def again(z: np.ndarray, g: np.ndarray) -> float:
            return self.first(z, g, generator)

        null = chance.null(again, codes, factors, generator, self.nulls)
        yield _score(f"{next(iter(measured.values))}_null", null.mean, "no permutation has a value")

    def dosed(self, bench: Bench, scene: Scene | None, target: int | None, dose: float) -> Code:
        """The factors of the whole draw with a dose of the protocol's defect."""
        factors = factors_of(bench, self.frames_of(bench.world.object, bench.case))
        generator = rng(bench.case.payload["seed"], "dose", bench.case.key, self.defect)
        return Code(planted(factors, self.defect, dose, generator))

    def settings(self, world: Any) -> dict[str, str]:
        """What is printed with every number."""
        stated = {
            "frames": f"{self.size(world)} in a draw",
            "factors": ", ".join(world.levels),
            "null": f"{self.nulls} permutations",
        }
        rule = {"active latents": self.rule} if self.rule else {}
        return {**stated, **rule, "dose": self.defect}

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """Two frames of the draw, and the matrix (latents × factors) behind the score, for the draw's first frames."""
        draw = self.frames_of(bench.world.object, case)[:PICTURED]
        codes, factors = codes_of(bench, draw)[:PICTURED], factors_of(bench, draw)
        matrix = self.measure(codes, factors, rng(case.payload["seed"], "picture", case.key)).matrix
        frames = [Panel("a frame", frame.srgb()) for frame in bench.frames([scene for _, scene in draw[:2]])]
        named = Matrix([f"z{i}" for i in builtins.range(len(matrix))], list(bench.world.object.levels), matrix)
        return [*frames, Panel(f"latents × factors, {len(draw)} frames", _heat(matrix), named)]


def _score(name: str, value: float, reason: str) -> Score:
    return Score(name, None, status="undefined", reason=reason) if np.isnan(value) else Score(name, value)


def _reason(found: Measured, factors: np.ndarray) -> str:
    varying = int((np.ptp(factors, axis=0) > 0).sum())
    return f"{int(found.active.sum())} of {len(found.active)} latents are active, {varying} factors vary"


def _heat(matrix: np.ndarray, side: int = 144) -> np.ndarray:
    """Black to orange from 0 to the largest entry; gray where there is none."""
    top = np.nanmax(np.abs(matrix)) if np.isfinite(matrix).any() else 1.0
    shade = np.nan_to_num(np.abs(matrix) / max(top, 1e-12))[:, :, None] * np.array([1.0, 0.75, 0.3])
    cells = np.where(np.isnan(matrix)[:, :, None], 0.5, shade)
    rows, columns = (np.arange(side) * n // side for n in matrix.shape)
    return cells[rows][:, columns].astype(np.float32)
