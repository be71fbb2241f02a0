"""Continuity: do part importances stay as they are when the camera or the lamp moves a little?

The supplement of FunnyBirds (Hesse et al. 2023, C.2) suggests it for worlds that can be staged again: the bird and its parts
are the same, so their importances should hardly change.

asks        {Do} {methods} stay the same when only the camera or the lamp moves a little?
continuity  ↑ agreement of the parts' importances before and after: 1 unchanged, 0 opposite
effect      · the same agreement of the effects measured by removing parts: how little the network itself changed
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from diorama.core.answers import Heatmap
from diorama.core.bench import Bench
from diorama.core.bounds import Within
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import Saved, World
from diorama.core.errors import Excluded, Undefined
from diorama.core.scene import Scene, rng
from diorama.io.pictures import diverging
from diorama.protocols.parts.importance import OnDilatedParts, blended, heatmap_with, part_importance
from diorama.protocols.parts.part_tables import label_of, single_drops, with_deletions
from diorama.protocols.parts.pictures import bars


@dataclass(frozen=True, slots=True)
class Continuity(OnDilatedParts):
    """1 − ½ Σ_p |q_p − q'_p| with q = PI / Σ|PI| over the parts visible in both images; 1: unchanged, 0: opposite.

    change  what moves: camera or light
    size    angle of the movement in radians, in a random direction of pitch and roll

    y is the true class. `effect` is the same number for the measured effects of removing each part: how much the model
    itself changed, which a truthful explanation follows.
    """

    metrics: ClassVar[tuple[str, ...]] = ("continuity", "effect")
    dose_name = "share of random importance, another for each view, blended into the true one"

    change: Literal["camera", "light"] = "camera"
    size: Annotated[float, Within(0, math.pi, above=True)] = 0.05

    @property
    def changes(self) -> tuple[str, ...]:
        """The factor that the world must be able to change."""
        return (self.change,)

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        return {"moved": f"{self.change} by {self.size:g} rad ({math.degrees(self.size):.1f}°)"}

    def case(self, world: World, seed: int, index: int) -> Case:
        """One scene, and the same with the camera or lamp moved."""
        name, scene = world.scene_at(seed, index)
        angle, view = rng(seed, "continuity", index).uniform(0, 2 * math.pi), scene.params[self.change]
        moved = {
            "pitch": view["pitch"] + self.size * math.cos(angle),
            "roll": view["roll"] + self.size * math.sin(angle),
        }
        return Case(name, {"scene": scene.to_json(), "moved": world.do(scene, **{self.change: moved}).to_json()})

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Pass both views of the whole block through the model together, then explain them."""
        scenes = [scene for case in cases for scene in _views(case)]
        bench.logits([one for scene in scenes for one in with_deletions(bench, scene)])
        bench.ask([(scene, label_of(bench, scene)) for scene in scenes])

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The agreement of the two views."""
        if isinstance(bench.asked.object, Saved):
            raise Undefined("saved maps are of the unchanged view only")
        scenes = _views(case)
        both = np.logical_and(*(self.elements(bench, scene).visible for scene in scenes))
        if both.sum() < 2:
            raise Excluded("fewer than two parts are seen in both views")
        yield Score("continuity", agreement(*(self._importance(bench, scene)[both] for scene in scenes)))
        yield Score("effect", agreement(*(single_drops(bench, scene)[both] for scene in scenes)))

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Heatmap:
        """A heat map of the effects measured in the first view, for both views."""
        return heatmap_with(single_drops(bench, _views(bench.case)[0]), self.elements(bench, scene))

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Heatmap:
        """The first view's effects and random importances that differ between the views, both of length one, blended."""
        drops = single_drops(bench, _views(bench.case)[0])
        noise = rng("continuity", scene.key).standard_normal(len(drops))
        return heatmap_with(blended(drops, noise, dose), self.elements(bench, scene))

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """Both views, both explanations, and the importances side by side."""
        scenes, shown_panels = _views(case), []
        for scene, name in zip(scenes, ("image", f"{self.change} moved"), strict=True):
            image, answer = bench.frame(scene).srgb(), bench.answer(scene, label_of(bench, scene))
            shown_panels.append(Panel(name, image))
            if isinstance(answer, Heatmap):
                shown_panels.append(Panel("explanation", diverging(answer.values, image)))
        first, second = (self._importance(bench, scene) for scene in scenes)
        names = bench.world.object.part_names
        return [*shown_panels, Panel("importance before (orange), after (blue)", bars(names, first, second))]

    def _importance(self, bench: Bench, scene: Scene) -> np.ndarray:
        return part_importance(bench.answer(scene, label_of(bench, scene)), self.elements(bench, scene))


def agreement(a: np.ndarray, b: np.ndarray) -> float:
    """1 − ½ Σ |a/Σ|a| − b/Σ|b||: 1 where the shares are the same, 0 where they are opposite.

    >>> agreement(np.array([1.0, 1.0]), np.array([2.0, 2.0])), agreement(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    (1.0, 0.0)
    """
    if not (a.any() and b.any()):
        raise Undefined("a view has no importance on any part")
    return float(max(0.0, 1 - 0.5 * np.abs(a / np.abs(a).sum() - b / np.abs(b).sum()).sum()))


def _views(case: Case) -> list[Scene]:
    return [Scene.from_json(case.payload[name]) for name in ("scene", "moved")]
