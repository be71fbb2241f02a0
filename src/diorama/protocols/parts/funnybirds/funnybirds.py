"""FunnyBirds: completeness, correctness and contrastivity of an explanation, from what removing parts does to the model.

Hesse, Schaub-Meyer, Roth: FunnyBirds (ICCV 2023). Removing parts and background objects shows what the model really uses;
the interface functions PI and P (`importance.py`) give what an explanation claims. y is the true class, ŷ the predicted one,
P(t) the parts that are important by an explanation at threshold t, for each of 80 thresholds.

asks     How well {do} {methods} know what the network uses?
mx       ↑ mean of the three dimensions: completeness, correctness and contrastivity
com      ↑ completeness: are all parts that the network needs important, and no others? com = ((csdc + pc + dc)/3 +
         d)/2
cor      ↑ correctness: are parts ranked by how much the logit drops when each is removed? cor = sd
con      ↑ contrastivity: does the explanation change with the class it is asked about? con = ts
csdc     ↑ share of a sufficient set of parts for the class that is in P(t)
pc       ↑ the prediction ŷ stays when only the parts in P(t) are kept
dc       ↑ the prediction ŷ changes when the parts in P(t) are removed
d        ↑ share of the parts and objects without effect that P(t) leaves out
sd       ↑ rank correlation of importance with the drop of f_y, from 0 (reversed) by 0.5 (unrelated) to 1
ts       ↑ whether importance follows the target class; 0.5 is chance
a        · accuracy of the network
bi       · share of background objects that have no effect on the network
bi_eq2   · the same by Eq. 2 of the supplement, which has no absolute value
objects  · number of background objects that were removed
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

import diorama.metrics.funnybirds as formulas  # not through the package, whose names are of all metrics
from diorama.core.answers import Answer, Heatmap
from diorama.core.bench import Bench
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import World
from diorama.core.errors import Excluded, Undefined
from diorama.core.rows import Row
from diorama.core.scene import Scene, rng
from diorama.core.summary import Condensed
from diorama.metrics.funnybirds import THRESHOLDS
from diorama.protocols.parts.funnybirds.published import paper_row
from diorama.protocols.parts.funnybirds.summary import condense
from diorama.protocols.parts.importance import (
    Elements,
    OnDilatedParts,
    blended,
    heatmap_with,
    important_parts,
    part_importance,
    says_nothing,
)
from diorama.protocols.parts.part_tables import PartTable, correlation, part_table, table_scenes
from diorama.protocols.parts.pictures import panels


@dataclass(frozen=True, slots=True)
class Funnybirds(OnDilatedParts):
    """All scores of FunnyBirds.

    variant  corrected, which we recommend, or published, the paper's scores by its released code (see the text)

    Paper and released code differ for binary maps (LIME): the paper gives them no part importance and counts sd and ts as
    0; the released code sums the map inside dilated parts as if it were an attribution (sd of .71 for LIME). `published`
    follows the paper.

    What the released code does, and what `corrected` does instead:
    - Threshold of P: t times the *signed* sum of the map; if that is negative, every part is important, even hidden ones.
      Corrected: t times the positive evidence, Σ max(PI, 0) over parts and background objects plus max(rest, 0), where rest
      is the sum of the map outside them all; a hidden part is never important.
    - One t for all cases, chosen on the same cases, the first maximum. Corrected: t is chosen on the other half.
    - An undefined score (a binary map has no PI) counts as 0 in the composites. Corrected: they are undefined then.
    - csdc finds no sufficient sets for the last class, so it scores 0. Corrected: the true sets that are visible; an image
      that shows none of them whole is excluded.
    - sd and d count elements that are hidden in the image. Corrected: visible ones only. Both leave out a correlation that
      does not exist.
    - bi is a mean over objects, even hidden ones. Corrected: the mean over images of the share of visible objects.
      `bi_eq2` is Eq. 2 of the supplement, which has no absolute value.
    - ts scores 0 for ties, so also for methods that take no target. Corrected: a tie counts ½, a method without a target is
      undefined; an image in which all parts shared with one of the two classes are hidden is excluded.
    - A map that is zero everywhere gets scores. Corrected: they are undefined.
    In both, csdc counts only images that are classified correctly, and the target is y for csdc, d, sd; ŷ for pc, dc.

    The released code dilates masks by 5 pixels at any size (all its images are of 256 pixels): at 128 pixels, where the
    default is 3 pixels wide, dilation=10 does the same.
    """

    metrics: ClassVar[tuple[str, ...]] = ("sd", "ts", "csdc", "pc", "dc", "d", "a", "bi", "bi_eq2", "objects")
    derived: ClassVar[tuple[str, ...]] = ("mx", "com", "cor", "con")

    variant: Literal["corrected", "published"] = "corrected"

    @property
    def _published(self) -> bool:
        return self.variant == "published"

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        chosen = "these cases, as released" if self._published else "the other half of the cases"
        return {"part masks dilated by": self.dilated(world.size), "threshold chosen on": chosen}

    def paper(self, model: str, method: str) -> dict[str, float] | None:
        """The row of the paper's Table 2 that corresponds, for the full-size network of that family."""
        return paper_row(model, method)

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Pass the block's birds with every removal through the model in batches, then explain all targets in batches."""
        scenes = [case.scene for case in cases]
        bench.logits([one for scene in scenes for one in table_scenes(bench, scene)])
        bench.ask([(scene, target) for scene in scenes for target in _targets(bench, scene)])

    def summarise(self, rows: Sequence[Row]) -> Condensed:
        """Thresholds and composites from the rows of a cell."""
        return condense(rows, self._published)

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """Every score of one image; csdc, pc, dc and d at all thresholds."""
        scene = case.scene
        table, elements = part_table(bench, scene), self._elements(bench, scene)
        yield Score("a", float(table.predicted == table.label))
        yield from self._independence(table, elements)
        at_y, at_predicted = bench.answer(scene, table.label), bench.answer(scene, table.predicted)
        yield _score("csdc", lambda: self._csdc(bench, table, elements, at_y))
        yield _score("pc", lambda: formulas.preservation(table.subsets, self._sets(at_predicted, table, elements)))
        yield _score("dc", lambda: formulas.deletion(table.subsets, self._sets(at_predicted, table, elements)))
        yield _score("d", lambda: self._distraction(table, elements, at_y))
        yield _score("sd", lambda: self._sd(table, elements, at_y))
        yield _score("ts", lambda: self._ts(bench, scene, table, elements))

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Heatmap:
        """A heat map with the part importances of `_true_importance`."""
        elements = self._elements(bench, scene)
        return heatmap_with(_true_importance(bench, scene, target, elements), elements)

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Heatmap:
        """The true importances and random ones of parts and objects, both of length one, blended by the dose."""
        elements = self._elements(bench, scene)
        true = _true_importance(bench, scene, target, elements)
        noise = rng("funnybirds", scene.key, target).standard_normal(elements.count) * elements.visible
        return heatmap_with(blended(true, noise, dose), elements)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """The frame, its parts, the heat map, importances beside measured effects, and the frame reduced to P(t)."""
        scene = case.scene
        table, elements = part_table(bench, scene), self._elements(bench, scene)
        answer = bench.answer(scene, table.label)
        important = important_parts(answer, elements, np.array([0.02]), self._published)[0, : table.parts]
        return panels(bench, scene, answer, elements, table.drops(table.label), important)

    def _elements(self, bench: Bench, scene: Scene) -> Elements:
        return self.elements(bench, scene, part_table(bench, scene).objects)

    def _sets(self, answer: Answer, table: PartTable, elements: Elements) -> np.ndarray:
        """P(t) as bit sets, one per threshold."""
        return formulas.as_sets(self._important(answer, elements)[:, : table.parts])

    def _important(self, answer: Answer, elements: Elements) -> np.ndarray:
        self._refuse_empty(answer)
        return important_parts(answer, elements, THRESHOLDS, self._published)

    def _refuse_empty(self, answer: Answer) -> None:
        if not self._published and says_nothing(answer):
            raise Undefined("the explanation is zero everywhere")

    def _independence(self, table: PartTable, elements: Elements) -> Iterator[Score]:
        counted = elements.visible[table.parts :] | self._published
        yield Score("objects", float(counted.sum()))
        if not counted.any():
            why = "there is no background object to remove"
            yield from (Score(m, None, status="excluded", reason=why) for m in ("bi", "bi_eq2"))
            return
        whole, without = table.subsets[-1, table.label], table.removals[counted, table.label]
        yield Score("bi", float(1 - formulas.relevant(whole, without).mean()))
        yield Score("bi_eq2", float(formulas.independent_eq2(whole, without).mean()))

    def _csdc(self, bench: Bench, table: PartTable, elements: Elements, answer: Answer) -> np.ndarray:
        classes = _classes(bench)
        if table.predicted != table.label:
            raise Excluded("csdc: the model predicts another class")
        minimal = formulas.minimal_sets(classes, table.label)
        if self._published:
            minimal = [] if table.label == len(classes) - 1 else minimal
        else:
            hidden = int(formulas.as_sets(~elements.visible[: table.parts]))
            minimal = [s for s in minimal if not s & hidden]
            if not minimal:
                raise Excluded("csdc: no sufficient set of parts is completely visible")
        return formulas.csdc(self._sets(answer, table, elements), minimal)

    def _distraction(self, table: PartTable, elements: Elements, answer: Answer) -> np.ndarray:
        whole = table.subsets[-1, table.label]
        without = np.concatenate([table.without(table.label), table.removals[:, table.label]])
        irrelevant = ~formulas.relevant(whole, without) & (elements.visible | self._published)
        if not irrelevant.any():
            raise Excluded("d: every part and object matters to the model")
        return formulas.distraction(self._important(answer, elements), irrelevant)

    def _sd(self, table: PartTable, elements: Elements, answer: Answer) -> float:
        self._refuse_empty(answer)
        counted = elements.visible[: table.parts] | self._published
        importance = part_importance(answer, elements, self._published)[: table.parts][counted]
        return correlation(table.drops(table.label)[counted], importance)

    def _ts(self, bench: Bench, scene: Scene, table: PartTable, elements: Elements) -> float:
        targets = formulas.target_pair(_classes(bench), table.label)
        if targets is None:
            raise Undefined("ts: no two classes share two different parts each with this one")
        pair, shared = targets
        if not self._published and not bench.asked.object.targeted:
            raise Undefined("ts: the method takes no target")
        if not formulas.premise(table.subsets, pair, shared):
            raise Excluded("ts: removing the shared parts does not lower the two classes as it should")
        hidden = int(formulas.as_sets(~elements.visible[: table.parts]))
        if not self._published and any(s & ~hidden == 0 for s in shared):
            raise Excluded("ts: the shared parts are hidden")
        answers = [bench.answer(scene, c) for c in pair]
        if not self._published and all(map(says_nothing, answers)):
            raise Undefined("ts: the explanation is zero everywhere for both classes")
        first, second = (part_importance(a, elements, self._published)[: table.parts] for a in answers)
        return formulas.target_sensitivity(first, second, shared, 0.0 if self._published else 0.5)


def _score(metric: str, compute: Callable[[], float | np.ndarray]) -> Score:
    """A score, or the reason why there is none."""
    try:
        value = compute()
    except Undefined as why:
        return Score(metric, None, status="undefined", reason=str(why))
    except Excluded as why:
        return Score(metric, None, status="excluded", reason=str(why))
    return Score(metric, value.tolist(), "t") if isinstance(value, np.ndarray) else Score(metric, value)


def _classes(bench: Bench) -> list[dict[str, int]]:
    """The part variants of every class, in the order of the parts."""
    world = bench.world.object
    if not world.classes:
        raise Undefined(f"{bench.world.name} does not say which parts make a class")
    return [{part: bird[part] for part in world.part_names} for bird in world.classes]


def _targets(bench: Bench, scene: Scene) -> list[int]:
    """The classes that explanations are needed for: y, ŷ if it is another, and TS's pair if its premise holds."""
    table = part_table(bench, scene)
    classes = [table.label, table.predicted]
    if bench.world.object.classes:
        pair = formulas.target_pair(_classes(bench), table.label)
        classes += pair[0] if pair and formulas.premise(table.subsets, *pair) else ()
    return list(dict.fromkeys(classes))


def _true_importance(bench: Bench, scene: Scene, target: int | None, elements: Elements) -> np.ndarray:
    """The importances of a perfect explanation: 0 for background objects, the measured effects for the parts.

    For y these are the drops of f_y, shifted by one constant so that the relevant parts and those of a sufficient set are
    positive, which keeps their order. For TS's classes they are the effect of removing O1 relative to removing O2.
    """
    table = part_table(bench, scene)
    target = table.label if target is None else target
    drops, importance = table.drops(target), np.zeros(elements.count)
    targets = formulas.target_pair(_classes(bench), table.label) if bench.world.object.classes else None
    if target != table.label and targets and target in targets[0]:
        drops = _contrast(table, target, targets[1])
    elif target == table.label and bench.world.object.classes:
        drops = _shifted(table, formulas.minimal_sets(_classes(bench), target), elements.visible[: table.parts])
    importance[: table.parts] = drops
    return importance * elements.visible


def _contrast(table: PartTable, target: int, shared: tuple[int, int]) -> np.ndarray:
    """Half the gap between f(x without O2) and f(x without O1), spread over O1; minus that over O2."""
    full = len(table.subsets) - 1
    gap = (table.subsets[full ^ shared[1], target] - table.subsets[full ^ shared[0], target]) / 2
    member = np.array([[s >> i & 1 for i in range(table.parts)] for s in shared], float)
    return gap * (member[0] / member[0].sum() - member[1] / member[1].sum())


def _shifted(table: PartTable, minimal: list[int], visible: np.ndarray) -> np.ndarray:
    """The drops of f_y in their order, positive for the relevant parts and the best visible sufficient set.

    If that set has an irrelevant part, d rewards leaving it out of P and csdc rewards including it: the importances are then
    made nearly equal, so that no threshold separates it from the others.
    """
    drops = table.drops(table.label)
    members = [np.array([bool(s >> i & 1) for i in range(table.parts)]) for s in minimal]
    sufficient = max((drops[m].min() for m in members if not (m & ~visible).any()), default=np.inf)
    matters = visible & formulas.relevant(table.subsets[-1, table.label], table.without(table.label))
    least = drops[matters].min(initial=np.inf)
    cut = min(sufficient, least)
    above = drops - cut if np.isfinite(cut) else drops
    room = (1000 if sufficient < least else 0.1) * above[visible & (above > 0)].sum() + 1e-6 * np.abs(drops).max()
    return above + np.where(above >= 0, room, -room)
