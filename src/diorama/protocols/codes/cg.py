"""CG: does moving a factor's latents change that factor and only it? As defined, and as released (Reddy et al. 2022).

asks              When a factor's latents are moved, does that factor change, and only it, in {methods}?
cg                ↑ how much moving a factor's own latents changes the factor, minus how much moving all others does
cg_own            ↑ change of the factor when its own latents are moved
cg_other          ↓ change of the factor when all other latents are moved
cg_eq3            ↑ the paper's definition: absolute difference of the two means
cg_eq4            ↑ the paper's estimate: mean absolute difference, never smaller, which rewards wrong assignments too
cg_null           · cg with random sets of latents
factors_told      · number of factors that the classifier recognises well enough to judge
accuracy          · accuracy of the classifier on real frames
accuracy_decoded  · accuracy of the classifier on decoded frames
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.answers import Code
from diorama.core.asking import screens
from diorama.core.bench import Bench
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import Bounds, Control, Decoding
from diorama.core.errors import InputError, Undefined
from diorama.core.guard import Note
from diorama.core.scene import Scene, rng
from diorama.metrics.cg import ENOUGH, cg, farthest, random_sets
from diorama.metrics.codes import Measured, active, sample
from diorama.metrics.irs import robustness
from diorama.metrics.uc import released, top
from diorama.protocols.codes import judging as shared
from diorama.protocols.codes.draws import Draw, codes_of, factors_of

#: The bundled classifier of each world's factors, used where no model is given.
JUDGES = {
    **dict.fromkeys(("candle", "candle_recorded"), "candle_factors"),
    **dict.fromkeys(("sprites", "dsprites"), "sprites_factors"),
}


@dataclass(frozen=True, slots=True)
class Cg(shared.Draws):
    """Latents of a factor (chosen by IRS, ρ of them) are moved to their value farthest from the frame's, then all
    others; own and other are the changes of the model's probability of the true value on the decoded images.

    variant  corrected or published (see the text)
    rho      ρ, number of latents that belong to a factor; the paper has 1 and 2
    frames   number of frames in a draw; None for 500, or fewer for a world that is slow to render

    `corrected`: cg is the mean of own − other over the factors that the model recognises on real frames with an accuracy
    of at least 0.95 (the others have no CG; if all have none, the case is undefined), latents with a standard deviation
    below 10 % of the largest are not moved, `cg_null` is the same with random sets. `published`, like the released code:
    cg is `cg_eq4` over all factors, with the released slice for the sets, sigmoids for probabilities, and logits of
    pixels for images.

    The paper has two formulas that differ, and both are given: `cg_eq3`, its definition, is the mean over factors of
    |mean of own − mean of other|, means over frames; `cg_eq4`, its estimate and the released code, is the mean over
    factors and frames of |own − other|, never smaller. Both reward wrong assignments, as the doses show, which give a
    share of factors another factor's latents. The encoder needs `decode`, the model `heads`, the number of its logits
    for each factor.
    """

    cite = ("reddy2022", "an2023")
    model = True
    example = "diorama run -w sprites -M sprites_moments -m beta_vae -p {}"
    metrics: ClassVar[tuple[str, ...]] = (
        *("cg", "cg_own", "cg_other", "cg_eq3", "cg_eq4", "cg_null", "factors_told", "accuracy", "accuracy_decoded"),
    )
    doses = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    dose_name = "share of factors that are given another factor's latents; codes are the true factors"
    ceiling = "the classifier errs on a few real frames"
    usual: ClassVar[int] = 500

    variant: Literal["corrected", "published"] = "corrected"
    rho: int = 1
    frames: int | None = None

    def __post_init__(self) -> None:
        shared.Draws.__post_init__(self)
        if self.rho < 1:
            raise InputError(f"cg: rho={self.rho}: each factor has at least one latent")

    @property
    def range(self) -> tuple[float, float]:
        """Signed, or absolute as published."""
        return (-1.0, 1.0) if self.variant == "corrected" else (0.0, 1.0)

    @property
    def ranges(self) -> dict[str, Bounds]:
        """Differences of probabilities can be negative; the other metrics are shares and a count."""
        differences = {"cg": self.range, "cg_null": self.range, "factors_told": (0.0, None)}
        return {name: differences.get(name, (0.0, 1.0)) for name in self.metrics}

    def usual_model(self, world: str) -> str:
        """The classifier of the world's factors."""
        return JUDGES.get(world, "")

    def settings(self, world: Any) -> dict[str, str]:
        """What is printed with every number."""
        return {
            "cg": "mean of own − other" if self.variant == "corrected" else "Eq. 4 of the paper, mean of |own − other|",
            "frames": f"{self.size(world)} in a draw",
            "latents per factor": f"{self.rho}, by IRS"
            + ("" if self.variant == "corrected" else " and the released slice"),
            "probability": "softmax per factor" if self.variant == "corrected" else "sigmoid, of pixel logits",
            "baseline": "farthest value of each latent in the draw",
        }

    def dosed(self, bench: Bench, scene: Scene | None, target: int | None, dose: float) -> Code:
        """The true factors; the dose decides how many factors are given another one's latents."""
        return self.oracle(bench, scene, target)

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """CG of a draw with its parts, its null, and the classifier's accuracies."""
        draw = self.frames_of(bench.world.object, case)
        codes, factors = codes_of(bench, draw), factors_of(bench, draw)
        judge = Judge(bench, self.variant == "published")
        labels = factors.astype(int)
        accuracy = judge.accuracy(draw, labels)
        chosen, alive = self._sets(codes, factors, bench)
        measured = self._measured(judge, codes, labels, chosen, alive, accuracy)
        if np.isnan(measured.value):
            raise Undefined(f"no factor is recognised with an accuracy of {ENOUGH}: {_listed(bench, accuracy)}")
        if self.variant == "corrected" and (accuracy < ENOUGH).any():
            note = f"factors count from an accuracy of {ENOUGH}: {_listed(bench, accuracy)}"
            warnings.warn(note, Note, stacklevel=2)
        generator = rng(case.payload["seed"], "sets", case.key)
        draws = [random_sets(chosen, alive, generator) for _ in range(self.nulls)]
        null = [self._measured(judge, codes, labels, sets, alive, accuracy).value for sets in draws]
        decoded = [p.argmax(axis=1) == g for p, g in zip(judge(codes), labels.T, strict=True)]
        values = {
            **measured.values,
            "cg_null": float(np.mean(null)),
            "factors_told": float((accuracy >= ENOUGH).sum()),
        }
        values |= {"accuracy": float(accuracy.mean()), "accuracy_decoded": float(np.mean(decoded))}
        yield from (Score(name, values[name]) for name in self.metrics)

    def _sets(self, codes: np.ndarray, factors: np.ndarray, bench: Bench) -> tuple[np.ndarray, np.ndarray]:
        """Which latents belong to which factor (M, F), and which are active (M,)."""
        published = self.variant == "published"
        part = sample(codes, factors, "varies" if published else "spread", 20 if published else None)
        if part.empty or part.labels.shape[1] < factors.shape[1]:
            raise Undefined("a factor has a single value in this draw, or no latent is active")
        if self.rho > part.codes.shape[1]:
            raise Undefined(f"rho={self.rho}, but only {part.codes.shape[1]} latents are active")
        matrix = np.stack([r.mean(axis=0) for r in robustness(part.codes, part.labels)], axis=1)
        chosen = np.zeros((codes.shape[1], factors.shape[1]), bool)
        chosen[part.active] = (released if published else top)(matrix, self.rho)
        wrong = round(bench.asked.points[bench.point].get("dose", 0.0) * factors.shape[1])
        order = [(i + 1) % factors.shape[1] if i < wrong else i for i in range_of(factors)]
        return chosen[:, order], active(codes, "varies") if published else part.active

    def _measured(self, judge: "Judge", codes: Any, labels: Any, chosen: Any, alive: Any, accuracy: Any) -> Measured:
        if self.variant == "corrected":
            return cg(judge, codes, labels, chosen, alive, accuracy)
        measured = cg(judge, codes, labels, chosen)
        values = {**measured.values, "cg": measured.values["cg_eq4"]}
        return Measured(values, measured.matrix, measured.per_factor, measured.active)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """Counterfactuals of one frame: decoded, then with each factor's own latents moved."""
        draw = self.frames_of(bench.world.object, case)
        codes, factors = codes_of(bench, draw), factors_of(bench, draw)
        chosen, _ = self._sets(codes, factors, bench)
        moved = [np.where(chosen[:, i], farthest(codes)[0], codes[0]) for i in range_of(factors)]
        images = Judge(bench, False).decoded(np.stack([codes[0], *moved]))
        captions = ["decoded", *(f"{name} moved" for name in bench.world.object.levels)]
        frame = Panel("frame", bench.frame(draw[0][1]).srgb())
        return [frame, *(Panel(c, image) for c, image in zip(captions, images, strict=True))]


def range_of(factors: np.ndarray) -> range:
    """The indices of the factors."""
    return range(factors.shape[1])


def _listed(bench: Bench, accuracy: np.ndarray) -> str:
    return ", ".join(f"{name} {a:.2f}" for name, a in zip(bench.world.object.levels, accuracy, strict=True))


class Judge:
    """Decodes codes and passes the images through the cell's model: the probabilities of every factor's values."""

    def __init__(self, bench: Bench, published: bool) -> None:
        assert bench.model is not None
        self.bench, self.model, self.published = bench, bench.model.object, published
        heads = self.model.heads
        wanted = tuple(len(levels) for levels in bench.world.object.levels.values())
        if heads is None or tuple(heads) != wanted:
            raise InputError(f"{bench.model.name} should have heads {wanted}, one per factor, not {heads}")
        if not isinstance(bench.asked.object, Decoding | Control):
            raise Undefined("the encoder has no decoder")

    def __call__(self, codes: np.ndarray) -> list[np.ndarray]:
        """The probabilities (n, values) of each factor."""
        images = self.decoded(codes)
        if self.published:  # the released code judges the decoder's output before its sigmoid
            clipped = np.clip(images, 1e-6, 1 - 1e-6)
            images = np.log(clipped / (1 - clipped))
        return self.probabilities(images)

    def decoded(self, codes: np.ndarray) -> np.ndarray:
        """Images of codes: decoded by the method, or, for a control, by staging the scene that the codes describe."""
        method = self.bench.asked.object
        if isinstance(method, Decoding):
            return np.asarray(method.decode(codes), np.float32)
        return np.stack([frame.srgb() for frame in self.bench.world.object.render(self._scenes(codes))])

    def _scenes(self, codes: np.ndarray) -> list[Scene]:
        world = self.bench.world.object
        levels = world.levels
        places = [
            np.rint(np.clip(z, 0, 1) * (len(v) - 1)).astype(int) for z, v in zip(codes.T, levels.values(), strict=True)
        ]
        start = self.bench.protocol.frames_of(world, self.bench.case)[0][1]
        rows = zip(*([v[i] for i in place] for v, place in zip(levels.values(), places, strict=True)), strict=True)
        return [world.do(start, **dict(zip(levels, row, strict=True))) for row in rows]

    def probabilities(self, images: np.ndarray) -> list[np.ndarray]:
        """Softmax over each factor's logits, or the released sigmoids."""
        size = self.bench.chunk
        logits = np.concatenate(
            [self.model.logits(np.ascontiguousarray(images[i : i + size])) for i in range(0, len(images), size)]
        ).astype(np.float64)
        parts = np.split(logits, np.cumsum(self.model.heads)[:-1], axis=1)
        if self.published:
            return [np.exp(-np.logaddexp(0, -part)) for part in parts]  # 1 / (1 + exp(−x)) without overflow
        shifted = [np.exp(part - part.max(axis=1, keepdims=True)) for part in parts]
        return [part / part.sum(axis=1, keepdims=True) for part in shifted]

    def accuracy(self, draw: Draw, labels: np.ndarray) -> np.ndarray:
        """The accuracy (F,) of the judge for each factor on the draw's own frames."""
        bench, predicted = self.bench, []
        for part in bench.passes([scene for _, scene in draw], "a draw"):
            probabilities = self.probabilities(screens(bench.frames(part), len(part)))
            predicted.append(np.stack([p.argmax(axis=1) for p in probabilities], axis=1))
        return (np.concatenate(predicted) == labels).mean(axis=0)
