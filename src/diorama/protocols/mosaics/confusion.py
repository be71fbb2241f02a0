"""The Attribution Confusion Matrix: is evidence for a class on its cells of a mosaic, evidence against it elsewhere?

asks               {Do} {methods} put the evidence for a class where that class is?
precision          ↑ share of the positive evidence that lies on cells of the target class (also called Focus); chance
                   is the share of these cells
accuracy           ↑ share of all evidence that is on the right side: positive on the target's cells, negative
                   elsewhere
recall             ↑ share of the evidence on the target's cells that is positive
f1                 ↑ harmonic mean of precision and recall
specificity        ↑ share of the evidence on other cells that is negative
npv                ↑ share of the negative evidence that lies on other cells
balanced_accuracy  ↑ mean of recall and specificity
mcc                ↑ correlation of the evidence's sign with the target's cells (Matthews): 1 perfect, 0 unrelated
tp                 ↑ share of all evidence that is positive and on the target's cells
fp                 ↓ share of all evidence that is positive and on other cells
tn                 ↑ share of all evidence that is negative and on other cells
fn                 ↓ share of all evidence that is negative and on the target's cells
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.core.bench import Bench
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import Bounds, ImageByImage, World
from diorama.core.frame import Frame
from diorama.core.rows import AS_ZERO
from diorama.metrics.confusion import LACKS, RATES, evidence, rates
from diorama.protocols.mosaics.evidence import (
    OnMosaics,
    ask_together,
    evidence_map,
    evidence_panel,
    grid_of,
    mosaic_panel,
    target_cells,
)

#: Rates that are meaningless without negative evidence: recall is 1, precision equals accuracy, the rest is constant.
WITHHELD = ("recall", "f1", "specificity", "npv", "balanced_accuracy", "mcc")
_WITHHELD = (
    "recall, f1, specificity, npv, balanced accuracy and mcc are withheld: the method gives no negative evidence"
)
_EMPTY = "the map is zero everywhere"
SHARES = ("tp", "fp", "tn", "fn")


@dataclass(frozen=True, slots=True)
class Confusion(OnMosaics):
    """TP, FP, TN, FN evidence (shares of all evidence) and the rates of `metrics.confusion`; channels are summed first.

    undefined  how a rate whose denominator is zero is treated: drop leaves the case out of the mean, like the authors'
               tables, zero counts it as 0, like Quantus and GridPG; the number of such cases is shown either way

    Precision is Focus. For answers without negative evidence (a mask, or a heat map that is not signed) all rates that need
    it are withheld, as in the paper. The released code's sums of FP and FN are right only if there are as many target cells
    as others; here for any number.
    """

    metrics: ClassVar[tuple[str, ...]] = (*RATES, *SHARES)
    ranges: ClassVar[dict[str, Bounds]] = {"mcc": (-1.0, 1.0)}

    undefined: Literal["drop", "zero"] = "drop"

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        policy = {"drop": "left out of the mean", "zero": "counted as 0"}[self.undefined]
        return {"target": "the mosaic's target class", "undefined cases": f"{policy}, and counted"}

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Have the block's mosaics explained together.

        Methods that explain one image at a time are called case by case, so that a slow one writes rows as it goes.
        """
        if not isinstance(bench.asked.object, ImageByImage):
            ask_together(bench, [case.scene for case in cases])

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """Every rate of one mosaic, and its four shares of evidence."""
        frame = bench.frame(case.scene)
        heat, signed = evidence_map(bench.answer(frame.scene, _target(frame)))
        masses = evidence(heat, target_cells(frame), grid_of(frame))
        for name, value in rates(masses).items():
            if name in WITHHELD and not signed:
                yield Score(name, None, status="undefined", reason=_WITHHELD)
            else:
                yield self._score(name, float(value), f"{name}: {LACKS[name]}" if masses.any() else _EMPTY)
        for name, share in zip(SHARES, masses / (masses.sum() or np.nan), strict=True):
            yield self._score(name, float(share), _EMPTY)

    def _score(self, name: str, value: float, lacks: str) -> Score:
        if np.isfinite(value):
            return Score(name, value)
        if self.undefined == "zero":
            return Score(name, 0.0, reason=AS_ZERO + lacks)
        return Score(name, None, status="undefined", reason=lacks)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """Figure 1 of the paper: the mosaic and the evidence, purple for the target and orange against it."""
        frame = bench.frame(case.scene)
        heat, _ = evidence_map(bench.answer(frame.scene, _target(frame)))
        named = bench.world.object.class_name(_target(frame))
        return [
            mosaic_panel(f"mosaic; purple frames: {named}", frame),
            evidence_panel(f"purple: for {named}, orange: against", heat, frame),
        ]


def _target(frame: Frame) -> int:
    return int(frame.truth["label"])
