"""TCAV: for which share of images does a concept's direction in a layer raise the prediction? (Kim et al. 2018)

asks           {Do} {methods} point where showing the concept really moves the prediction?
tcav           · share of images whose prediction rises along the concept's direction: 0.5 is no effect, neither more
               nor less is better
agreement      ↑ share of images on which the direction's sign is that of the change measured by really showing the
               concept: 0.5 is chance
random         · tcav for directions that separate random images from random images
accuracy       ↑ held-out accuracy with which the direction separates the concept from others
auc            ↑ held-out area under the ROC curve of that separation
stability      ↑ cosine with the direction of the next run
cross_cosine   ↑ cosine of two directions from two halves of the images
strength       · mean derivative of the prediction along the unit direction
t_p            · p of the published t-test, which can be made as small as one likes by more runs
permutation_p  ↓ p from runs in which images were randomly relabelled as concept and others
permutation_q  ↓ permutation_p adjusted for all cells of the run
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.answers import Sensitivity
from diorama.core.bench import Bench
from diorama.core.bounds import Several
from diorama.core.cases import Case, Panel, Score
from diorama.core.catalogue import Component
from diorama.core.contracts import Bounds, Control, Protocol, World
from diorama.core.errors import InputError, Undefined, did_you_mean
from diorama.core.frame import Frame
from diorama.core.guard import attempt
from diorama.core.rows import Row
from diorama.core.scene import Scene, rng
from diorama.core.summary import Condensed, Summary, summarise
from diorama.metrics.cav import Cavs, Draw, fit_gram, split
from diorama.metrics.tcav import Sign, gram_cosines, permutation_p, scores_of, share, strength, t_test
from diorama.protocols.concepts.tcav.activations import Objective, layer_gradients, layer_name
from diorama.protocols.concepts.tcav.gram import ROLES, Material, activations_of, images, material_of, stack

#: The least images of a concept that its authors recommend.
ENOUGH = 20
#: Runs where the plan does not say how many.
RUNS = 30
COSINE = (-1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Tcav(Protocol):
    """A case is one CAV run: images of the concept against as many others, both drawn at random, a third of each held
    out.

    concept       folder of pictures, or world, that shows the concept
    do            change that makes a world's scenes show the concept, such as `do="beak=2"`; the truth is then known too
    negatives     folder or world of images without the concept; None for the test world, another concept for a relative CAV
    negatives_do  change of the negatives
    test_do       change of the test images, which are the world's
    layer         layer of the model; None for its last
    target        class, or output of a regression; None for each image's own class
    gradient      logit counts gradient·direction > 0 (as the paper); loss (cross-entropy, or the squared error of
                  `factor`) counts < 0
    factor        factor of the world that a regression should predict
    images        number of images of the concept in a run
    pool          number of other images that runs draw theirs from
    tests         number of test images
    permutations  number of relabellings for `permutation_p`
    min_images    fewer images of the concept or fewer negatives are refused; Kim et al. advise 20
    vectors       keeps the CAVs beside the rows

    Beside the score: that of random against random sets, held-out accuracy and AUC, the cosine with the next run's CAV
    (stability), the cosine of CAVs from two halves of the images (cross_cosine). Over the runs: `t_p`, the published
    t-test, whose p can be made as small as one likes by more runs; and `permutation_p`, from random relabellings of all
    images, on the strength (mean derivative along the unit direction), which does not saturate. `permutation_q` is the
    latter adjusted for all cells of a run (Benjamini and Hochberg 1995).
    """

    cite = ("kim2018tcav", "benjamini1995")
    track = "concept"
    model = True
    example = "diorama run -w birds -M birds_cnn -m linear_svm -p \"tcav(concept=birds, do='beak=2')\""
    metrics: ClassVar[tuple[str, ...]] = (
        "tcav", "agreement", "random", "accuracy", "auc", "stability", "cross_cosine", "strength"
    )  # fmt: skip
    ranges: ClassVar[dict[str, Bounds]] = {"stability": COSINE, "cross_cosine": COSINE, "strength": (None, None)}

    concept: Component[World]
    do: str = ""
    negatives: Component[World] | None = None
    negatives_do: str = ""
    test_do: str = ""
    layer: str | None = None
    target: int | None = None
    gradient: Literal["logit", "loss"] = "logit"
    factor: str | None = None
    images: Several = 50
    pool: Several = 200
    tests: Several = 64
    permutations: int = 199
    min_images: Several = ENOUGH
    vectors: bool = False

    def __post_init__(self) -> None:
        if self.factor and self.gradient != "loss":
            raise InputError(f"tcav: factor={self.factor!r} is the truth of a loss: write gradient=loss too")

    @property
    def derived(self) -> tuple[str, ...]:
        """The metrics over all runs; agreement with the truth is the first where `do` makes the truth known."""
        return "agreement" if self.do else "tcav", "t_p", "permutation_p", "permutation_q"

    @property
    def no_oracle(self) -> str:
        """A reason unless there is `do`: the effect of a set of pictures is unknown, that of `do` can be measured."""
        return "" if self.do else "without `do` nobody knows what the concept does"

    @property
    def tried_on(self) -> tuple[str, ...]:
        """The worlds on which a check can try the protocol."""
        return (self.concept.label,) if self.do else ()

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        sign = "gradient of the logit, counted where > 0"
        loss = f"gradient of {'the squared error of ' + self.factor if self.factor else 'the cross-entropy'}, where < 0"
        others = f"{self.negatives.label if self.negatives else 'the test world'} {self.negatives_do}".strip()
        return {
            "concept": self._concept,
            "others": others,
            "layer": self.layer or "the model's last",
            "sensitivity": sign if self.gradient == "logit" else loss,
            "images": f"{self.images} of the concept, {self.pool} others, {self.tests} to test on",
        }

    @property
    def _concept(self) -> str:
        return f"{self.concept.label} {self.do}".strip()

    def refuses(self, world: Any, model: Any, method: Any) -> str:
        """Why these images and this model cannot be used, or an empty string."""
        outcome = attempt(lambda: self._check(world, model))
        return "" if outcome.error is None else f"tcav: {outcome.error}"

    def _check(self, world: Any, model: Any) -> None:
        layer_name(model, self.layer)
        if self.factor and self.factor not in world.factors:
            raise InputError(
                f"the world has no factor {self.factor!r}; {did_you_mean(self.factor, list(world.factors))}"
            )
        for name, component in (("concept", self.concept), ("negatives", self.negatives)):
            source = component.object if component else world
            count = self.images if source.length is None else min(self.images, source.length)
            if count < self.min_images:
                has = f"{name} {component.label if component else 'of the test world'} has {count} images"
                fewer = f"fewer than the {self.min_images} that a CAV needs"
                raise InputError(f"{has}, {fewer}: add some, or write min_images={count}")

    def count(self, world: World, asked: int | None) -> int:
        """The number of runs asked for: a case is a run, not an image."""
        return asked or RUNS

    def scenes(self, world: World, case: Case) -> list[Scene]:
        """A run has no scenes of its own."""
        return []

    def case(self, world: World, seed: int, index: int) -> Case:
        """One run."""
        return Case(f"run-{index:03d}", {"seed": seed, "run": index})

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The scores of one run."""
        if isinstance(bench.asked.object, Control):
            (answer,) = bench.asked.object.answers(bench, None, None)
            values = answer.values  # type: ignore[attr-defined]
            yield Score("tcav", float(share(values, 1)))
            yield self._agreement(bench, values)
            for metric in self.metrics[2:]:
                yield Score(metric, None, status="undefined", reason="a control has no CAV")
            return
        material, sign = self._material(bench, case), self._sign
        if not material.cross.any() and material.gram.any():  # constant activations are named when CAVs are fitted
            raise Undefined("the gradient is zero on every test image: the layer does not change the prediction")
        run = self._run(bench, case, material)
        derivatives = sign * scores_of(run.coefficients, material.cross)
        shares = share(derivatives, 1)
        yield Score("tcav", float(shares[0]))
        yield self._agreement(bench, derivatives[0])
        yield Score("random", float(shares[1]))
        yield Score("accuracy", float(run.accuracy[0]))
        yield Score("auc", float(run.auc[0]))
        cosines = gram_cosines(run.coefficients, material.gram)
        yield Score("stability", float(cosines[0, 2]))
        yield Score("cross_cosine", float(cosines[3, 4]))
        yield Score("strength", [float(v) for v in self._relabelled(bench, case, material)], at="relabelling")

    def _run(self, bench: Bench, case: Case, material: Material) -> Cavs:
        """CAVs of: the concept, random against random, the next run, and two halves that share no image."""
        seed, run = case.payload["seed"], case.payload["run"]
        draws = [
            material.draw(seed, run),
            material.random(seed, run),
            material.draw(seed, run + 1),
            *material.halves(seed, run),
        ]
        return self._fit(bench, material, draws, rng(seed, "tcav", "split", run))

    def _relabelled(self, bench: Bench, case: Case, material: Material) -> np.ndarray:
        """The strength of this run, then after each relabelling of all images; all runs share the relabellings."""
        seed, run = case.payload["seed"], case.payload["run"]
        generator = rng(seed, "tcav", "null", run)
        a, b = (split(side, 0.33, generator)[0] for side in material.draw(seed, run))
        orders = [rng(seed, "tcav", "relabel", i).permutation(len(material.gram)) for i in range(self.permutations)]
        draws = [(order[a], order[b]) for order in [np.arange(len(material.gram)), *orders]]
        fitted = self._fit(bench, material, draws, generator, held_out=0.0)
        return strength(fitted.coefficients, material.gram, material.cross, self._sign)

    def _fit(
        self,
        bench: Bench,
        material: Material,
        draws: Sequence[Draw],
        generator: np.random.Generator,
        held_out: float = 0.33,
    ) -> Cavs:
        method = bench.asked.object
        try:
            return fit_gram(lambda k, y, _, s: method.solve(k, y, s), material.gram, draws, generator, None, held_out)
        except ValueError as error:
            raise Undefined(str(error)) from error

    @property
    def _sign(self) -> Sign:
        return 1 if self.gradient == "logit" else -1

    def _material(self, bench: Bench, case: Case) -> Material:
        assert bench.model is not None
        material = self._remembered(bench, "material", lambda: self._make(bench, case.payload["seed"]))
        return material.about(bench.asked.object.centred)

    def _remembered(self, bench: Bench, what: str, compute: Callable[[], Any]) -> Any:
        """A value that is computed once for all runs and methods."""
        values = (getattr(self, field.name) for field in fields(self))
        own = [value.digest if isinstance(value, Component) else value for value in values]
        return bench.keep("run", ("tcav", what, bench.case.payload["seed"], *own), compute)

    def _make(self, bench: Bench, seed: int) -> Material:
        """Pass every image through the model, once."""
        assert bench.model is not None
        model, worlds = bench.model.object, self._worlds(bench)
        layer, counts = layer_name(model, self.layer), (self.images, self.pool, self.tests)
        changes = (self.do, self.negatives_do, self.test_do)
        concept, others, test = map(images, worlds, ROLES, [seed] * 3, counts, changes)
        rows = activations_of(bench, [concept, others], layer)

        def gradient(frames: Sequence[Frame]) -> np.ndarray:
            pixels = stack(frames)
            return layer_gradients(model, pixels, self._targets(model, frames, pixels), layer, self._objective())

        return material_of(bench, len(concept.scenes), rows, test, gradient, self.vectors)

    def _worlds(self, bench: Bench) -> list[Component[World]]:
        """The worlds of concept, others and test images, in the size of the test images unless another is given."""
        side = bench.world.object.size
        others = self.negatives.with_default(size=side) if self.negatives else bench.world
        return [self.concept.with_default(size=side), others, bench.world]

    def _objective(self) -> Objective:
        """The function whose gradient is taken, one number per image."""
        if self.gradient == "logit":
            return lambda out, goal: out.gather(1, goal.long()[:, None])[:, 0]
        if self.factor:
            column = self.target or 0
            return lambda out, goal: (out[:, column] - goal) ** 2
        from torch.nn.functional import cross_entropy

        return lambda out, goal: cross_entropy(out, goal.long(), reduction="none")

    def _targets(self, model: Any, frames: Sequence[Frame], pixels: np.ndarray) -> np.ndarray:
        """The class, or true value, of each image: `target`, the image's label, or the predicted class."""
        if self.factor:
            return np.array([_number(frame, self.factor) for frame in frames], np.float32)
        if self.target is not None:
            return np.full(len(frames), self.target)
        if all("label" in frame.truth for frame in frames):
            return np.array([int(frame.truth["label"]) for frame in frames])
        return np.asarray(model.logits(pixels)).argmax(axis=1)

    def _agreement(self, bench: Bench, derivatives: np.ndarray) -> Score:
        """The share of test images whose prediction the concept moves as its direction says, among those it moves."""
        outcome = attempt(lambda: self._effects(bench))
        if isinstance(outcome.error, Undefined):
            return Score("agreement", None, status="undefined", reason=str(outcome.error))
        if outcome.error:
            raise outcome.error
        moved = outcome.value != 0
        if not moved.any():
            return Score("agreement", None, status="undefined", reason="the concept changes no prediction")
        return Score("agreement", float(((derivatives > 0) == (outcome.value > 0))[moved].mean()))

    def oracle(self, bench: Bench, scene: Scene | None, target: int | None) -> Sensitivity:
        """How much the prediction really rises when each test image has the concept instead of the negatives' change."""
        return Sensitivity(self._effects(bench))

    def _effects(self, bench: Bench) -> np.ndarray:
        assert bench.model is not None
        if not self.do or self.concept.name != bench.world.name:
            raise Undefined("what a concept really does is known where `do` puts it into the test world's own scenes")
        return self._remembered(bench, "effects", lambda: self._measured_effects(bench))

    def _measured_effects(self, bench: Bench) -> np.ndarray:
        """sign · (objective with `do` − objective with `negatives_do`) of every test image."""
        assert bench.model is not None
        import torch

        model, seed, effects = bench.model.object, bench.case.payload["seed"], []
        done = [f"{self.test_do}, {change}".strip(", ") for change in (self.do, self.negatives_do)]
        sets = [images(bench.world, "test", seed, self.tests, change) for change in (self.test_do, *done)]
        for (count, plain), *sides in zip(*(one.chunks(bench) for one in sets), strict=True):
            goal = torch.from_numpy(self._targets(model, plain, stack(plain)))
            out = [torch.from_numpy(np.asarray(model.logits(stack(frames)), np.float64)) for _, frames in sides]
            with_it, without = (self._objective()(one, goal).numpy()[:count] for one in out)
            effects.append(self._sign * (with_it - without))
        return np.concatenate(effects)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """An image of the concept, a negative, and a test image."""
        changes, seed = (self.do, self.negatives_do, self.test_do), case.payload["seed"]
        roles = zip(("the concept", "a negative", "a test image"), self._worlds(bench), ROLES, changes, strict=True)
        examples = [(name, images(world, role, seed, 1, change)) for name, world, role, change in roles]
        return [Panel(name, bench.on(one.world).frame(one.scenes[0]).srgb()) for name, one in examples]

    def arrays(self, bench: Bench, case: Case) -> dict[str, np.ndarray]:
        """The run's CAV in the form that `load_cavs` reads, kept beside the rows if `vectors` is set."""
        if not self.vectors or isinstance(bench.asked.object, Control):
            return {}
        material = self._material(bench, case)
        run = self._run(bench, case, material)
        assert material.rows is not None
        direction = run.coefficients[:1].astype(np.float32) @ material.rows
        meta = {"concept": self._concept, "layer": self.layer, **case.payload}
        return {
            "directions": direction,
            "intercepts": run.intercepts[:1] - direction @ material.origin,
            "accuracy": run.accuracy[:1],
            "auc": run.auc[:1],
            "meta": np.array(json.dumps(meta)),
        }

    def summarise(self, rows: Sequence[Row]) -> Condensed:
        """The two tests over the runs that have a value."""
        tests = {"t_p": t_test(_column(rows, "tcav"), _column(rows, "random")), "permutation_p": float("nan")}
        null = _column(rows, "strength")
        if len(null) and self.permutations:
            observed, *others = null.mean(axis=0)
            tests["permutation_p"] = permutation_p(observed, np.array(others))
        derived = {name: _summary(p, len(null)) for name, p in tests.items()}
        single = [replace(r, value=r.value[0], at="") if isinstance(r.value, list) else r for r in rows]
        scores = summarise((row for row in rows if row.metric == "tcav"), self.range)
        return Condensed(single, {}, {"tcav": scores, **derived}, {})


def _number(frame: Frame, factor: str) -> float:
    value = frame.truth["factors"][factor]
    if not isinstance(value, int | float):
        raise InputError(f"tcav: factor {factor!r} is {value!r}, which is no number that a model could be off by")
    return float(value)


def _column(rows: Sequence[Row], metric: str) -> np.ndarray:
    return np.array([row.value for row in rows if row.metric == metric and row.status == "ok"], float)


def _summary(p: float, runs: int) -> Summary:
    return Summary(None, None, None, 0, runs, 0, 0) if np.isnan(p) else Summary(p, None, None, runs, 0, 0, 0)
