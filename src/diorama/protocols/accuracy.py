"""Accuracy: how often the model's largest logit is the true class; what every explanation of it rests on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.core.bench import Bench
from diorama.core.contracts import Case, Score, World, scene_at
from diorama.core.scene import Scene
from diorama.protocols._part_tables import label_of


@dataclass(frozen=True, slots=True)
class Accuracy:
    """1 where argmax f(x) = y, else 0. Judges the model; takes no method."""

    cite: ClassVar[tuple[str, ...]] = ("hesse2023",)
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = ""
    model: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("label",)
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    def case(self, world: World, seed: int, index: int) -> Case:
        """One scene of the world."""
        name, scene = scene_at(world, seed, index)
        return Case(name, {"scene": scene.to_json()})

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Pass the whole block through the model together."""
        bench.logits([Scene.from_json(case.payload["scene"]) for case in cases])

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """Right or wrong."""
        scene = Scene.from_json(case.payload["scene"])
        predicted = int(bench.logits([scene])[0].argmax())
        yield Score("accuracy", float(predicted == label_of(bench, scene)))
