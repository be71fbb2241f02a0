"""SD: does the order of part importances follow how much the logit drops when each part is removed? (FunnyBirds)

asks  How well {do} {methods} know which parts the network uses?
sd    ↑ whether parts are ranked by how much the network's logit really drops when each is removed: 1 the same order,
      0.5 unrelated, 0 reversed
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.core.answers import Heatmap
from diorama.core.bench import Bench
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import World
from diorama.core.scene import Scene, rng
from diorama.protocols.parts.importance import (
    OnDilatedParts,
    blended,
    heatmap_with,
    important_parts,
    part_importance,
)
from diorama.protocols.parts.part_tables import correlation, label_of, single_drops, with_deletions
from diorama.protocols.parts.pictures import panels


@dataclass(frozen=True, slots=True)
class SingleDeletion(OnDilatedParts):
    """½ + ½·ρ, ρ = Spearman over the parts between f_y(x) − f_y(x without p) and PI(p); y is the true class.

    Where all drops or all importances are equal ρ does not exist: `undefined`, and left out of the mean as published.
    """

    metrics: ClassVar[tuple[str, ...]] = ("sd",)

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        return {"target": "true class", "part masks dilated by": self.dilated(world.size)}

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Pass the block's birds, whole and with each part removed, through the model together, then explain them."""
        scenes = [case.scene for case in cases]
        bench.logits([one for scene in scenes for one in with_deletions(bench, scene)])
        bench.ask([(scene, label_of(bench, scene)) for scene in scenes])

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The rank correlation of one image."""
        scene = case.scene
        importance = part_importance(bench.answer(scene, label_of(bench, scene)), self.elements(bench, scene))
        yield Score("sd", correlation(single_drops(bench, scene), importance))

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Heatmap:
        """A heat map whose part importances are the true drops."""
        return heatmap_with(single_drops(bench, scene), self.elements(bench, scene))

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Heatmap:
        """The true drops and random importances, both of length one, blended by the dose."""
        drops = single_drops(bench, scene)
        noise = rng("single_deletion", scene.key).standard_normal(len(drops))
        return heatmap_with(blended(drops, noise, dose), self.elements(bench, scene))

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """The frame, its parts, the heat map, importances beside drops, and the frame with the parts that matter."""
        scene = case.scene
        answer, elements = bench.answer(scene, label_of(bench, scene)), self.elements(bench, scene)
        important = important_parts(answer, elements, np.array([0.02]), False)[0]
        return panels(bench, scene, answer, elements, single_drops(bench, scene), important)
