"""The model's logits for every part subset and every background removal of a scene: one table for all protocols."""

from dataclasses import dataclass

import numpy as np

from diorama.core.bench import Bench
from diorama.core.errors import AnswerError, Undefined
from diorama.core.scene import Scene
from diorama.metrics.funnybirds import rank_agreement

#: More parts than this have too many subsets to pass through a model.
MOST_PARTS = 8


@dataclass(frozen=True, slots=True, eq=False)
class PartTable:
    """`subsets` (2^parts, classes) by the set of parts that is kept, the whole bird last; `removals` (objects, classes)."""

    label: int
    subsets: np.ndarray
    removals: np.ndarray
    objects: tuple[int, ...]

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.subsets).bit_length() - 1

    @property
    def predicted(self) -> int:
        """The class that the model predicts for the whole image."""
        return int(self.subsets[-1].argmax())

    def without(self, target: int) -> np.ndarray:
        """The target's logit without each part."""
        full = len(self.subsets) - 1
        return self.subsets[[full ^ (1 << i) for i in range(full.bit_length())], target]

    def drops(self, target: int) -> np.ndarray:
        """f(x) − f(x without p) for every part p."""
        return self.subsets[-1, target] - self.without(target)


def part_table(bench: Bench, scene: Scene) -> PartTable:
    """The table of a scene, computed once for all methods, variants and protocols."""
    return bench.keep("unit", ("part table", scene.key), lambda: _part_table(bench, scene))


def _part_table(bench: Bench, scene: Scene) -> PartTable:
    removals = removal_scenes(bench, scene)
    logits = bench.logits(table_scenes(bench, scene))
    subsets = len(logits) - len(removals)
    return PartTable(label_of(bench, scene), logits[:subsets], logits[subsets:], tuple(removals))


def table_scenes(bench: Bench, scene: Scene) -> list[Scene]:
    """Every scene of the table: all part subsets in the order of their bit sets, then without each background object."""
    # kept, because computing the keys of so many scenes takes long
    return bench.keep("unit", ("table scenes", scene.key), lambda: _table_scenes(bench, scene))


def _table_scenes(bench: Bench, scene: Scene) -> list[Scene]:
    world, names = bench.world.object, bench.world.object.part_names
    if len(names) > MOST_PARTS:
        raise Undefined(f"{len(names)} parts have {2 ** len(names)} subsets; at most {MOST_PARTS} parts are possible")
    subsets = []
    for subset in range(2 ** len(names)):
        removed = {part: None for i, part in enumerate(names) if not subset >> i & 1}
        subsets.append(world.do(scene, **removed) if removed else scene)
    return [*subsets, *removal_scenes(bench, scene).values()]


def removal_scenes(bench: Bench, scene: Scene) -> dict[int, Scene]:
    """The scene without each background object, by the object's index; empty if the world has none."""
    return dict(bench.world.object.removals(scene))


def with_deletions(bench: Bench, scene: Scene) -> list[Scene]:
    """The scene, then the scene without each part."""
    return [scene, *(bench.world.object.do(scene, **{part: None}) for part in bench.world.object.part_names)]


def single_drops(bench: Bench, scene: Scene, target: int | None = None) -> np.ndarray:
    """f(x) − f(x without p) for every part p, without the other subsets; the target defaults to the true class."""
    logit = bench.logits(with_deletions(bench, scene))[:, label_of(bench, scene) if target is None else target]
    return logit[0] - logit[1:]


def correlation(drops: np.ndarray, importance: np.ndarray) -> float:
    """SD: ½ + ½·ρ; undefined where all drops or all importances are equal."""
    if len(drops) < 2:
        raise Undefined("sd: fewer than two parts can be seen")
    if np.ptp(drops) == 0:
        raise Undefined("removing any part changes the logit by the same amount")
    if np.ptp(importance) == 0:
        raise Undefined("the answer gives all parts the same importance")
    return rank_agreement(drops, importance)


def label_of(bench: Bench, scene: Scene) -> int:
    """The true class."""
    label = int(bench.frame(scene).truth["label"])
    if bench.model and label >= (classes := bench.model.object.classes):
        raise AnswerError(f"the image is of class {label}, and the model has classes 0 to {classes - 1}")
    return label
