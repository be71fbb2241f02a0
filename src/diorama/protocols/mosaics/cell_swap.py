"""Cell swap: one target cell of a mosaic gets another class; how much of the explanation's change lies in that cell?

asks      When one cell of a mosaic changes, {do} {methods} change there and nowhere else?
locality  ↑ share of the map's change that lies in the swapped cell: 1 all of it, one over the number of cells by chance
turn      ↑ how much of the swapped cell's evidence turns from for the class to against it: 1 all of it
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.core.bench import Bench
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import Bounds, World
from diorama.core.errors import Undefined
from diorama.core.scene import Scene, rng
from diorama.metrics.confusion import cell_masses
from diorama.protocols.mosaics.evidence import (
    OnMosaics,
    ask_together,
    evidence_map,
    evidence_panel,
    grid_of,
    mosaic_panel,
)


@dataclass(frozen=True, slots=True)
class CellSwap(OnMosaics):
    """Two maps a, b of the same target, before and after `do(cell=…)`, each divided by Σ|·|.

    locality = Σ over the swapped cell of |a − b| / Σ |a − b|; 1 if nothing else changes, 1/cells by chance.
    turn = (net of a − net of b) / (mass of a + mass of b) in the cell; 1 if all its evidence turns from for to against.
    A network may rely on other cells once one has changed, so a locality below 1 need not be a fault of the method; compare
    methods on the same network.
    """

    changes = ("cell",)
    metrics: ClassVar[tuple[str, ...]] = ("locality", "turn")
    ranges: ClassVar[dict[str, Bounds]] = {"turn": (-1.0, 1.0)}

    def case(self, world: World, seed: int, index: int) -> Case:
        """One mosaic, and the same with one target cell replaced by a class that the mosaic shows elsewhere."""
        name, scene = world.scene_at(seed, index)
        labels, target = [cell["label"] for cell in scene.params["cells"]], scene.params["target"]
        random = rng(seed, "cell swap", scene.key)
        position = int(random.choice([i for i, label in enumerate(labels) if label == target]))
        other = int(random.choice([label for label in labels if label != target]))
        swapped = world.do(scene, cell=(position, other))
        return Case(name, {"scene": scene.to_json(), "swapped": swapped.to_json(), "cell": position})

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Have both mosaics of every case explained together."""
        ask_together(bench, [scene for case in cases for scene in _scenes(case)])

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The share of the change in the cell, and how its evidence turned."""
        before, after = (_unit_map(bench, scene) for scene in _scenes(case))
        grid, cell = grid_of(bench.frame(_scenes(case)[0])), case.payload["cell"]
        moved, _ = cell_masses(np.abs(before - after), grid)
        if moved.sum() == 0:
            raise Undefined("the explanation is the same before and after the swap")
        yield Score("locality", float(moved[cell] / moved.sum()))
        (up, down), (up_after, down_after) = ([mass[cell] for mass in cell_masses(m, grid)] for m in (before, after))
        mass = up + down + up_after + down_after
        if mass == 0:
            yield Score("turn", None, status="undefined", reason="turn: no evidence in the cell before or after")
        else:
            yield Score("turn", float((up - down - up_after + down_after) / mass))

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """Both mosaics with their evidence, and the change."""
        (first, second), (before, after) = _scenes(case), (_unit_map(bench, scene) for scene in _scenes(case))
        frames = bench.frames([first, second])
        named = bench.world.object.class_name(first.params["target"])
        return [
            mosaic_panel(f"mosaic; purple frames: {named}", frames[0]),
            evidence_panel(f"purple: for {named}, orange: against", before, frames[0]),
            mosaic_panel(f"cell {case.payload['cell']} swapped", frames[1]),
            evidence_panel("the same after the swap", after, frames[1]),
            evidence_panel("what moved: more (purple), less (orange)", after - before, frames[1]),
        ]


def _scenes(case: Case) -> tuple[Scene, Scene]:
    return case.scene, Scene.from_json(case.payload["swapped"])


def _unit_map(bench: Bench, scene: Scene) -> np.ndarray:
    heat, _ = evidence_map(bench.answer(scene, scene.params["target"]))
    total = np.abs(heat).sum()
    if total == 0:
        raise Undefined("the map is zero everywhere")
    return heat / total
