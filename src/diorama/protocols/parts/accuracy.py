"""Accuracy: how often the model's largest logit is that of the true class.

asks      How often is the network right?
accuracy  ↑ share of images whose largest logit is the true class
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from diorama.core.bench import Bench
from diorama.core.cases import Case, Score
from diorama.core.contracts import Protocol
from diorama.core.guard import Note
from diorama.protocols.parts.part_tables import label_of


@dataclass(frozen=True, slots=True)
class Accuracy(Protocol):
    """1 where argmax f(x) = y, else 0. Judges the model; takes no method.

    A mosaic shows other classes beside its target: a good model may name any of them, so that its accuracy on mosaics is
    low, and rows say so. Measure it on the single images.
    """

    cite = ("hesse2023",)
    track = ""
    model = True
    example = "diorama run -w birds -M birds_cnn -p {}"
    needs = ("label",)
    metrics: ClassVar[tuple[str, ...]] = ("accuracy",)

    def prepare(self, bench: Bench, cases: Sequence[Case]) -> None:
        """Pass the whole block through the model together."""
        bench.logits([case.scene for case in cases])

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """Right or wrong."""
        scene = case.scene
        predicted = int(bench.logits([scene])[0].argmax())
        labels = (bench.frame(scene).truth.get("cells") or {}).get("labels", ())
        if len(set(labels)) > 1:
            note = f"the mosaic shows {len(set(labels))} classes, of which a good model may name any: use single images"
            warnings.warn(note, Note, stacklevel=2)
        yield Score("accuracy", float(predicted == label_of(bench, scene)))
