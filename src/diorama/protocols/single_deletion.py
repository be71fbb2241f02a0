"""SD: does the order of part importances follow how much the logit drops when each part is removed? (FunnyBirds)"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.stats import spearmanr

from diorama.core.answers import Heatmap
from diorama.core.bench import Bench
from diorama.core.contracts import Case, Panel, Score, World, scene_at
from diorama.core.errors import Undefined
from diorama.core.pictures import coloured_parts, diverging
from diorama.core.scene import Scene, rng
from diorama.protocols._parts import dilated_masks, dilation_at, heatmap_with, part_importance


@dataclass(frozen=True, slots=True)
class SingleDeletion:
    """½ + ½·ρ, ρ = Spearman over the parts between f_y(x) − f_y(x without p) and PI(p); y is the true class.

    `dilation` is the width of the max filter on part masks in pixels at 256 (published 5); at other sizes the nearest odd
    width in proportion is used (3 at 128). Where all drops or all importances are equal ρ does not exist: `undefined`,
    and left out of the mean as published.
    """

    cite: ClassVar[tuple[str, ...]] = ("hesse2023",)
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "explain"
    model: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("label", "parts")
    metrics: ClassVar[tuple[str, ...]] = ("sd",)
    doses: ClassVar[tuple[float, ...]] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
    dose_name: ClassVar[str] = "share of random importance blended into the true one"

    dilation: int = 5

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        size = getattr(world, "size", None)
        here = f"{dilation_at(size, self.dilation)} pixels at {size}, " if size else ""
        return {"target": "true class", "part masks dilated by": f"{here}{self.dilation} pixels at 256"}

    def case(self, world: World, seed: int, index: int) -> Case:
        """One scene of the world."""
        name, scene = scene_at(world, seed, index)
        return Case(name, {"scene": scene.to_json()})

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Pass the block's birds, whole and with each part removed, through the model together, then explain them."""
        scenes = [Scene.from_json(case.payload["scene"]) for case in cases]
        bench.logits([one for scene in scenes for one in _with_deletions(bench, scene)])
        bench.ask([(scene, _label(bench, scene)) for scene in scenes])

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The rank correlation of one image."""
        scene = Scene.from_json(case.payload["scene"])
        drops = _drops(bench, scene)
        importance = part_importance(bench.answer(scene, _label(bench, scene)), self._masks(bench, scene))
        if np.ptp(drops) == 0:
            raise Undefined("removing any part changes the logit by the same amount")
        if np.ptp(importance) == 0:
            raise Undefined("the answer gives all parts the same importance")
        yield Score("sd", 0.5 + 0.5 * float(spearmanr(drops, importance).statistic))

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Heatmap:
        """A heat map whose part importances are the true drops."""
        return self._painted(bench, scene, _drops(bench, scene))

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Heatmap:
        """The true drops and random importances, both of length one, blended by the dose."""
        drops = _drops(bench, scene)
        noise = rng("single_deletion", scene.key).standard_normal(len(drops))
        true = drops / max(np.linalg.norm(drops), 1e-12)
        return self._painted(bench, scene, (1 - dose) * true + dose * noise / np.linalg.norm(noise))

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """The frame, its parts, the heat map, and the frame without the part each side calls most important."""
        scene = Scene.from_json(case.payload["scene"])
        frame, answer = bench.frame(scene), bench.answer(scene, _label(bench, scene))
        drops, importance = _drops(bench, scene), part_importance(answer, self._masks(bench, scene))
        panels = [Panel("image", frame.srgb()), Panel("parts", coloured_parts(frame.truth["parts"]))]
        if isinstance(answer, Heatmap):
            panels.append(Panel("heat map", diverging(answer.values, frame.srgb())))
        for said, values in (("by the answer", importance), ("in truth", drops)):
            part = _names(bench)[int(np.argmax(values))]
            without = bench.world.object.do(scene, **{part: None})
            panels.append(Panel(f"no {part}: most important {said}", bench.frame(without).srgb()))
        return panels

    def _painted(self, bench: Bench, scene: Scene, importance: np.ndarray) -> Heatmap:
        frame = bench.frame(scene)
        return heatmap_with(importance, frame, _ids(bench), dilation_at(frame.image.shape[0], self.dilation))

    def _masks(self, bench: Bench, scene: Scene) -> Any:
        frame = bench.frame(scene)
        return dilated_masks(frame, _ids(bench), dilation_at(frame.image.shape[0], self.dilation))


def _names(bench: Bench) -> tuple[str, ...]:
    return bench.world.object.part_names


def _ids(bench: Bench) -> tuple[tuple[int, ...], ...]:
    return tuple(bench.world.object.part_ids[name] for name in _names(bench))


def _label(bench: Bench, scene: Scene) -> int:
    return int(bench.frame(scene).truth["label"])


def _with_deletions(bench: Bench, scene: Scene) -> list[Scene]:
    return [scene, *(bench.world.object.do(scene, **{part: None}) for part in _names(bench))]


def _drops(bench: Bench, scene: Scene) -> np.ndarray:
    """f_y(x) − f_y(x without p) for every part p."""
    logit = bench.logits(_with_deletions(bench, scene))[:, _label(bench, scene)]
    return logit[0] - logit[1:]
