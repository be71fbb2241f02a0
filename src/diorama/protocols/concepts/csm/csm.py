"""CSM: is a decomposer's reflectance sensitive to changes of paint and its shading to those of light? (Gupta et al. 2022)

A concept is a set of images in which one thing changes: the paint (Δa) or the light (Δi). A CAV separates the activations
of a set from others; a branch's sensitivity to the concept is the share of test images whose loss falls along the CAV.
CSM_S = R_Δa / S_Δa, CSM_R = S_Δi / R_Δi; ideally R_Δa = S_Δi = 1 and the other two are 0.

Limits: at the output layer the loss gradient is the residual, so the score is the sign of the error's product with the CAV
and contains no Jacobian. Positives of one scene against unrelated negatives separate scenes rather than concepts, which
`cos_concepts` and `cos_scenes` beside every score show. Rescaling the answer can change every sign.

asks          {Do} {methods} respond to changes of paint in the reflectance and to changes of light in the shading?
csm_r         ↑ sensitivity of shading to changes of light over that of reflectance: above 1 the reflectance is less
              sensitive
csm_s         ↑ sensitivity of reflectance to changes of paint over that of shading: above 1 the shading is less
              sensitive
log_csm_r     ↑ logarithm of csm_r: above 0 the reflectance is less sensitive to changes of light
log_csm_s     ↑ logarithm of csm_s: above 0 the shading is less sensitive to changes of paint
r_a           ↑ share of test images on which reflectance is sensitive to paint
s_a           ↓ share of test images on which shading is sensitive to paint
r_i           ↓ share of test images on which reflectance is sensitive to light
s_i           ↑ share of test images on which shading is sensitive to light
p_r           · p of the test that the reflectance's directions are better than random ones
p_s           · p of the test that the shading's directions are better than random ones
passed_r      · share of the reflectance's directions that pass that test
passed_s      · share of the shading's directions that pass that test
accuracy_r    ↑ held-out accuracy of the reflectance's directions
accuracy_s    ↑ held-out accuracy of the shading's directions
stability_r   ↑ cosine of the reflectance's directions of two runs
stability_s   ↑ cosine of the shading's directions of two runs
cos_concepts  · cosine of directions of different concepts in one scene; high: they separate scenes, not concepts
cos_scenes    · cosine of directions of one concept in different scenes
tests         · number of test images
runs_r        · sensitivity of the reflectance along each fitted direction
runs_s        · sensitivity of the shading along each fitted direction
draws_r       · bootstrap draws of the reflectance's sensitivity
draws_s       · bootstrap draws of the shading's sensitivity
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.bench import Bench
from diorama.core.bounds import Several
from diorama.core.cases import Case, Panel, Score
from diorama.core.catalogue import Component
from diorama.core.contracts import Bounds, Saved, World
from diorama.core.controls import DOSES
from diorama.core.errors import InputError, Undefined, did_you_mean
from diorama.core.frame import Frame
from diorama.core.rows import Row
from diorama.core.scene import Scene, rng
from diorama.core.summary import Condensed
from diorama.metrics.cav import gram
from diorama.metrics.cav_trainers import TRAINERS, Options
from diorama.metrics.csm import resampled
from diorama.metrics.tcav import permutation_p, sign_tests, t_test
from diorama.protocols.concepts.concept_sets import (
    BRANCHES,
    OnSets,
    change_of,
    not_in_set,
    other_scene,
    partner,
    set_members,
)
from diorama.protocols.concepts.csm.gram import FEW, Fitted, Space, Table, chance_scores
from diorama.protocols.concepts.csm.summary import FLOORED, MARKS, condense
from diorama.protocols.concepts.csm.tables import OUTPUT, Probe, Reader, Transform, without_layer
from diorama.protocols.layers import judging

#: Bootstrap draws of images × CAVs that are kept with every set.
DRAWS = 200
#: The overall values of the paper's Table 1, by the network of ours that is trained like the paper's (BigTime, USI3D,
#: CGIntrinsics).
PAPER = {
    "decompose/iid_timelapse": {"csm_r": 0.878, "csm_s": 1.524},
    "decompose/iid_translation": {"csm_r": 0.552, "csm_s": 2.139},
    "decompose/iid_supervised": {"csm_r": 1.544, "csm_s": 0.909},
}
#: Relabellings of a set and its partner for the permutation test of the corrected variant.
SHUFFLES = 99


@dataclass(frozen=True, slots=True)
class Csm(OnSets):
    """Sensitivities of both branches to one concept set; CSM_R and CSM_S from all sets of a cell.

    variant       published or corrected (see the text)
    test          world of the images whose sensitivity is measured; the paper has the complex scenes of ARAP
    negatives     world of the random images that a CAV separates a set from; `published` only
    layer         `output`, or a layer of the network
    trainer       trainer of CAVs, a method of the concept track; None for hinge_sgd (published) or linear_svm (corrected)
    runs          number of CAVs of a set; the paper has 100
    tests         number of images of `test`; None for all
    randoms       number of images of `negatives`; None for all
    p             level of the t-test that selects sensitivities in `published`; the paper has .01
    significance  each, as the paper's text: every CAV is tested; set, as the author's later code: all CAVs of a set at
                  once
    floor         value of a set without any CAV that passes; None leaves the set out, the author's code used .01
    aggregate     how sets are combined: ratio_of_averages as in the paper, or mean_of_ratios
    transform     transform of the answers at `output` before they are used: linear (none), srgb or log

    `published`: CAVs of a set against random negatives, answers on their own scale, sensitivities that pass averaged,
    then divided. With significance=each, the paper does not say how one iteration is tested; here its signs on the test
    images are tested against those of random CAVs, all images and CAVs pooled (single random CAVs often pass it too).
    Selecting the significant ones favours extreme scores.

    `corrected`: answers scaled to the truth, CAVs of a set against the other set of the same scene, no set left out, and
    the mean of ln((k + ½)/(n + 1)) ratios, which has no zero denominators. Intervals are over sets, test images and CAVs.
    """

    variant: Literal["published", "corrected"] = "corrected"
    test: Component[World] = "test_scenes"  # type: ignore[assignment]
    negatives: Component[World] = "random_scenes"  # type: ignore[assignment]
    layer: str = OUTPUT
    trainer: str | None = None
    runs: Several = 100
    tests: int | None = None
    randoms: int | None = None
    p: float = 0.01
    significance: Literal["each", "set"] = "each"
    floor: float | None = None
    aggregate: Literal["ratio_of_averages", "mean_of_ratios"] = "ratio_of_averages"
    transform: Transform = "linear"

    cite = ("gupta2022", "kim2018tcav")
    direction = "higher"
    renamed: ClassVar[dict[str, str]] = {"encoding": "transform"}
    no_oracle: ClassVar[str] = (
        "the truth has no residual, so that no sensitivity is defined; doses are not followed either"
    )
    metrics: ClassVar[tuple[str, ...]] = (
        *("r_a", "s_a", "r_i", "s_i", "p_r", "p_s", "passed_r", "passed_s"),
        *("accuracy_r", "accuracy_s", "stability_r", "stability_s"),
        *("cos_concepts", "cos_scenes", "tests", "runs_r", "runs_s", "draws_r", "draws_s"),
    )
    unlisted = ("runs_r", "runs_s", "draws_r", "draws_s")
    doses = DOSES[1:]  # without a leak there is no residual

    def __post_init__(self) -> None:
        if self.trainer is not None and self.trainer not in TRAINERS:
            raise InputError(f"csm: no CAV trainer {self.trainer!r}; {did_you_mean(self.trainer, list(TRAINERS))}")

    @property
    def range(self) -> tuple[float, float]:
        """A ratio, or its logarithm."""
        return (0.0, 1e6) if self._published else (-12.0, 12.0)

    @property
    def ranges(self) -> dict[str, Bounds]:
        """The ranges of a set's own metrics: shares, and the cosines of CAVs."""
        cosines = ("stability_r", "stability_s", "cos_concepts", "cos_scenes")
        return {m: (-1.0, 1.0) if m in cosines else (0.0, None if m == "tests" else 1.0) for m in self.metrics}

    @property
    def derived(self) -> tuple[str, ...]:
        """The ratios, which are computed from all sets together."""
        return ("csm_r", "csm_s") if self._published else ("log_csm_r", "log_csm_s")

    @property
    def _published(self) -> bool:
        return self.variant == "published"

    @property
    def _trainer(self) -> str:
        return self.trainer or ("hinge_sgd" if self._published else "linear_svm")

    def paper(self, model: str, method: str) -> dict[str, float] | None:
        """What the paper reports for the full-size network of the same family."""
        return PAPER.get(method) if self._published else None

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        options = Options()
        sgd = f"hinge, α {options.alpha}, at most {options.max_iter} epochs, tolerance {options.tol}"
        special = {"hinge_sgd": sgd, "ridge": f"λ {options.ridge}", "mean_difference": "closed form"}
        penalty = special.get(self._trainer, f"C {options.c}")
        filtered = f"counted as {self.floor}" if self.floor else "left out"
        each = f"t-test of every CAV at p = {self.p}, the mean of those that pass; sets without any {filtered}"
        once = f"one t-test of a set's CAVs at p = {self.p}; other sets {filtered}"
        means = {"ratio_of_averages": "ratio of the averages over sets", "mean_of_ratios": "mean of the sets' ratios"}
        others = f"{self.negatives.label}, as many as the set has" if self._published else "the scene's other set"
        return {
            "encoding": f"{self.transform} at {OUTPUT}"
            if self.layer == OUTPUT
            else f"the network's own at {self.layer}",
            "scale": "none: answers as they are" if self._published else "one per test image and branch, least squares",
            "window": "the whole image",
            "mask": "test images without residual off their mask; activations whole; gray where the answer is gray",
            "CAV": f"{self._trainer} ({penalty}), {self.runs} runs, a third held out, against {others}",
            "test images": f"{self.test.label}; those without residual are left out",
            "significance": {"each": each, "set": once}[self.significance] if self._published else "none is left out",
            "mean": means[self.aggregate] if self._published else "mean over sets of ln((k + ½)/(n + 1)) ratios",
            "interval": "bootstrap-t over sets, test images and CAVs; none below 3 sets",
        }

    def refuses(self, world: Any, model: Any, method: Any) -> str:
        """Why a method cannot be judged, or an empty string: it lacks the layer, or it has a grid (one set cannot
        choose a point of it).
        """
        if method.grid:
            names = ", ".join(method.grid[0])
            return f"csm: give {type(method).__name__} its parameters ({names}): no grid point can be chosen"
        return without_layer(method, self.layer)

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """Both branches' sensitivity to one set."""
        spaces = self.spaces(bench, case)
        sensitivities = {branch: self._branch_sensitivity(bench, branch, space) for branch, space in spaces.items()}
        for change, mark in MARKS.items():
            for branch, of_branch in sensitivities.items():
                name = f"{branch[0]}_{mark}"
                yield self._sensitivity(name, of_branch) if change == change_of(case) else not_in_set(name, case)
        for branch, of_branch in sensitivities.items():
            yield from _described(branch[0], of_branch, case)
        yield from self._diagnosed(case, spaces, {b: of_branch.fitted for b, of_branch in sensitivities.items()})
        yield Score("tests", float(min(len(space.cross) for space in spaces.values())))

    @property
    def probe(self) -> Probe:
        """The layer and transform at which the method's activations and errors are taken."""
        return Probe(self.layer, self.transform, aligned=not self._published)

    def spaces(self, bench: Bench, case: Case) -> dict[str, Space]:
        """The Gram space of each branch: the set, the scene's other set, both sets of another scene, negatives."""
        reader = Reader(bench, self.probe, [one.probe for one in bench.fellows if isinstance(one, Csm)])
        gradients = reader.gradients(self.test, self.tests)
        for branch, rows in gradients.items():
            if not len(rows):
                raise Undefined(f"the {branch} of all test images is the truth: there is no residual to take a sign of")
        none = {branch: rows[:0] for branch, rows in gradients.items()}
        negatives = reader.features(self.negatives, self.randoms) if self._published else none
        sets = self._sets(bench, case)
        tables = {b: self._table(bench, b, gradients[b], negatives[b]) for b in gradients}
        return {branch: self._space(bench, reader, branch, table, sets) for branch, table in tables.items()}

    def _space(self, bench: Bench, reader: Reader, branch: str, table: Table, sets: dict[str, Scene]) -> Space:
        """The Gram space of some sets; products of two of them serve every case that has both."""
        read = {name: partial(_of_branch, reader, scene, branch) for name, scene in sets.items()}
        named = {name: scene.key for name, scene in sets.items()}

        def keep(pair: tuple[str, str], compute: Callable[[], np.ndarray]) -> np.ndarray:
            of = tuple(named.get(name, name) for name in pair)
            probe = self.probe if "gradients" in pair else self.probe.unscaled
            against = len(table.negatives) if "negatives" in pair else None
            return bench.keep("run", ("csm of two", *self._shared(bench, branch), probe, against, *of), compute)

        return Space.of(table, read, keep)

    def _table(self, bench: Bench, branch: str, gradients: np.ndarray, negatives: np.ndarray) -> Table:
        """What all cases share, for one branch."""
        if gradients.shape[1] != negatives.shape[1]:
            both = f"{self.test.label} and {self.negatives.label}"
            raise InputError(f"csm: {both} give images of two sizes; write size=…")
        key = ("csm products", *self._shared(bench, branch), self.probe, len(negatives))
        products = bench.keep("run", key, lambda: (gram(negatives), gram(gradients, negatives)))
        return Table(gradients, negatives, *products)

    def _shared(self, bench: Bench, branch: str) -> tuple[Any, ...]:
        """The part of a memory key that names the test images and negatives; saved answers are those of a case."""
        images = (self.test.digest, self.tests, self.negatives.digest, self.randoms, bench.case.payload["seed"])
        saved = bench.case.key if isinstance(bench.asked.object, Saved) else ""
        return bench.asked.digest, bench.point, saved, branch, *images

    def _sets(self, bench: Bench, case: Case) -> dict[str, Scene]:
        world, other = bench.world.object, other_scene(bench.world.object, case)
        sets = {"set": case.scene, "partner": partner(world, case), "other scene": other.scene if other else None}
        if not self._published:
            if sets["partner"] is None:
                raise Undefined("the world has no set of the other change of this scene: take change=both")
            sets["other scene's partner"] = partner(world, other) if other else None
        return {name: scene for name, scene in sets.items() if scene is not None}

    def _branch_sensitivity(self, bench: Bench, branch: str, space: Space) -> "BranchSensitivity":
        """The CAVs of a set, the p-value of their scores against those of random CAVs, and which CAVs count."""
        case, trained = bench.case, (self._trainer, len(space.places["set"]), self.runs)
        random = rng(case.payload["seed"], "csm", case.key, branch)
        if self._published:
            fitted = space.fit(self._trainer, ("set", "negatives"), self.runs, random)
            key = ("csm chance", *self._shared(bench, branch), self.probe, *trained)
            chance = bench.keep("run", key, lambda: chance_scores(space.table, *trained))
            p = t_test(fitted.scores, chance)
            tested = sign_tests(fitted.scores, chance, len(space.cross)) if self.significance == "each" else p
            return BranchSensitivity(fitted, p, np.broadcast_to(tested < self.p, self.runs))
        fitted = space.fit(self._trainer, ("set", "partner"), self.runs, random)
        chance = space.fit_chance(self._trainer, ("set", "partner"), SHUFFLES, random).scores
        return BranchSensitivity(fitted, permutation_p(float(fitted.scores[0]), chance), np.ones(self.runs, bool))

    def _sensitivity(self, name: str, of_branch: "BranchSensitivity") -> Score:
        if of_branch.passed.any():
            return Score(name, float(of_branch.counted.negative.mean()))
        why = f"not significant at p = {self.p} (see p_{name[0]} and passed_{name[0]})"
        if self.floor is not None:
            return Score(name, self.floor, reason=f"{FLOORED}{why}")
        return Score(name, None, status="undefined", reason=why)

    def _diagnosed(self, case: Case, spaces: dict[str, Space], fitted: dict[str, Fitted]) -> Iterator[Score]:
        """The mean over branches of cosines with CAVs of the other concept and of another scene."""
        pairs = {"cos_concepts": ("partner", "negatives"), "cos_scenes": ("other scene", "negatives")}
        if not self._published:
            pairs["cos_scenes"] = ("other scene", "other scene's partner")
        for metric, names in pairs.items():
            if metric == "cos_concepts" and not self._published:
                why = "the relative CAVs of the two concepts are opposite by construction"
                yield Score(metric, None, status="excluded", reason=why)
            elif any(name not in space.places for name in names for space in spaces.values()):
                yield Score(metric, None, status="excluded", reason=f"the world has no {names[0]} for this set")
            else:
                random = rng(case.payload["seed"], "csm", case.key, metric)
                others = {b: space.fit(self._trainer, names, FEW, random) for b, space in spaces.items()}
                yield Score(metric, float(np.mean([fitted[b].cosines(others[b]).mean() for b in BRANCHES])))

    def summarise(self, rows: Sequence[Row]) -> Condensed:
        """CSM_R and CSM_S with intervals."""
        return condense(rows, None if not self._published else self.aggregate)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """The first, middle and last image of the set with the method's layers."""
        members, panels = set_members(bench, case), []
        for i in (0, len(members) // 2, len(members) - 1):
            panels += judging.comparison(_bare(bench, members[i]), bench.layers(members[i]))
        return panels


def _of_branch(reader: Reader, scene: Scene, branch: str) -> np.ndarray:
    return reader.members(scene)[branch]


def _bare(bench: Bench, scene: Scene) -> Frame:
    return replace(bench.frame(scene), truth={"mask": bench.frame(scene).mask})


@dataclass(frozen=True, slots=True, eq=False)
class BranchSensitivity:
    """The CAVs of a set in a branch, the p-value of all their scores together, and which of them count."""

    fitted: Fitted
    p: float
    passed: np.ndarray

    @property
    def counted(self) -> Fitted:
        """The CAVs that count; all of them where none does, because the draws of the interval need some."""
        return self.fitted.only(self.passed) if self.passed.any() else self.fitted


def _described(mark: str, of_branch: BranchSensitivity, case: Case) -> Iterator[Score]:
    """p, accuracy and stability of a branch's CAVs, the score of every run, and bootstrap draws of its sensitivity.

    The bootstrap draws test images alike for all sets and both branches of a cell, because they share these images.
    """
    p, fitted = of_branch.p, of_branch.fitted
    yield Score(f"p_{mark}", p) if p == p else Score(f"p_{mark}", None, status="undefined", reason="all scores agree")
    yield Score(f"passed_{mark}", float(of_branch.passed.mean()))
    yield Score(f"accuracy_{mark}", float(fitted.accuracy.mean()))
    yield Score(f"stability_{mark}", fitted.stability())
    negative, seed = of_branch.counted.negative, case.payload["seed"]
    images, cavs = negative.shape
    resamples = [
        rng(seed, "csm", "draws", *key).multinomial(n, np.full(n, 1 / n), DRAWS).astype(float)
        for n, key in ((images, (images,)), (cavs, (case.key, mark)))
    ]
    yield Score(f"runs_{mark}", fitted.scores.round(5).tolist(), "run")
    yield Score(f"draws_{mark}", resampled(negative, *resamples).round(5).tolist(), "draw")
