"""WHDR: how often reflectance contradicts human judgements of which of two points is darker (Bell et al. 2014).

asks            How often {do} {methods} contradict people about which of two points is darker?
whdr            ↓ weighted share of human judgements that the reflectance contradicts: 0 none
truth_constant  · whdr of a constant reflectance
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.bounds import NotNegative
from diorama.core.cases import Case, Score
from diorama.core.contracts import World
from diorama.core.errors import Undefined
from diorama.core.frame import Frame, channel_mean
from diorama.core.scene import Scene, rng
from diorama.metrics.whdr import Judgements, constant_whdr, judgements, lightness, ordinal, whdr
from diorama.protocols.layers.judging import OnLayers

#: Pairs that are drawn where a world has true reflectance instead of judgements.
PAIRS = 200


@dataclass(frozen=True, slots=True)
class Whdr(OnLayers):
    """The weight of contradicted judgements over the weight of all; the mean over images is not weighted.

    preset  bell (bell2014) judges linear reflectance; li (li2018, CGIntrinsics and its followers) reflectance to the
            power of 1/2.2, where the same δ acts like .233
    delta   δ: by which share two reflectances must differ to count as different; .1 as published

    Judgements are the world's `factors["judgements"]` (the file of IIW or SAW); where a world has dense reflectance
    instead, 200 random pairs are judged by that truth. `truth_constant` is what constant reflectance scores: the weight
    share of the inequalities.
    """

    cite = ("bell2014", "li2018")
    metrics: ClassVar[tuple[str, ...]] = ("whdr", "truth_constant")
    dose_name = "share of the judged pixels whose reflectance is replaced by noise"

    preset: Literal["bell", "bell2014", "li", "li2018"] = "bell"
    delta: NotNegative = 0.1

    @property
    def _gamma(self) -> bool:
        return self.preset.startswith("li")

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        return {
            "encoding": "reflectance^(1/2.2), channel mean" if self._gamma else "linear, channel mean",
            "scale": "none: only ratios count",
            "window": f"single pixels, δ = {self.delta:g}",
            "mask": "opaque points" if "factors" in world.truth else "the world's",
            "judgements": "human"
            if "factors" in world.truth
            else f"{PAIRS} random pairs judged by the true reflectance",
            "mean": "arithmetic over images, weighted within",
            "tuning": "leave one out",
        }

    def case(self, world: World, seed: int, index: int) -> Case:
        """One image of the world."""
        name, scene = world.scene_at(seed, index)
        return Case(name, {"scene": scene.to_json(), "seed": seed})

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The disagreement on one image."""
        scene = case.scene
        judged = self._judged(bench.frame(scene), case)
        yield Score("whdr", whdr(self._encoded(bench.layers(scene).reflectance), judged, self.delta))
        if bench.point == 0:
            yield Score("truth_constant", constant_whdr(judged))

    def _encoded(self, reflectance: np.ndarray) -> np.ndarray:
        return np.maximum(reflectance, 0) ** (1 / 2.2) if self._gamma else reflectance

    def _judged(self, frame: Frame, case: Case) -> Judgements:
        human: Any = (frame.truth.get("factors") or {}).get("judgements")
        if human is not None:
            judged = judgements(human["intrinsic_points"], human["intrinsic_comparisons"])
        elif frame.truth.get("reflectance") is not None:
            judged = self._drawn(frame, case)
        else:
            raise Undefined("the world has neither judgements nor true reflectance")
        if not len(judged.weight):
            raise Undefined("no judgement of this image counts")
        return judged

    def _drawn(self, frame: Frame, case: Case) -> Judgements:
        """Random pairs of masked pixels, judged by the truth in the preset's encoding."""
        inside = np.argwhere(frame.mask)[:, ::-1]
        pairs = inside[rng(case.payload["seed"], "whdr", case.key).integers(len(inside), size=(2, PAIRS))]
        first, second = (pairs + 0.5) / frame.mask.shape[::-1]
        truth = self._encoded(frame.truth["reflectance"])
        darker = ordinal(lightness(truth, first), lightness(truth, second), self.delta)
        return Judgements(first, second, darker, np.ones(PAIRS))

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Layers:
        """The true reflectance, where the world has one."""
        frame = bench.frame(scene)
        if frame.truth.get("reflectance") is None:
            raise Undefined("human judgements contradict each other: there is no reflectance that satisfies all")
        return Layers(frame.truth["reflectance"], np.ones((*frame.mask.shape, 1), np.float32))

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Layers:
        """The truth with a share of its pixels replaced; a larger dose replaces those of a smaller one too."""
        true = self.oracle(bench, scene, target)
        chance, noise = rng("whdr", scene.key).random((2, *true.shading.shape), np.float32)
        return Layers(np.where(chance < dose, noise, channel_mean(true.reflectance)[:, :, None]), true.shading)
