"""A contributor: a new protocol in one class, tried on live objects, then tested by the contract suite.
=====================================================================================================

python examples/contributor.py
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

import diorama
from diorama import Case, Heatmap, Score, Undefined
from diorama.core.contracts import Protocol


class OnTheBird(Protocol):
    """The share of absolute attribution that lies on the bird and not on the ground around it."""

    track = "explain"
    model = True
    needs = ("label", "parts")
    metrics: ClassVar[tuple[str, ...]] = ("share",)
    doses = (0.0, 0.25, 0.5, 0.75, 1.0)
    dose_name = "share of the attribution that is moved to the ground"

    def score(self, bench, case: Case) -> Iterator[Score]:
        """The share of one image."""
        frame = bench.frame(case.scene)
        answer = bench.answer(case.scene, frame.truth["label"])
        size = np.abs(answer.values).reshape(*frame.image.shape[:2], -1).sum(axis=2)
        if not size.any():
            raise Undefined("the map is zero everywhere")
        yield Score("share", size[_bird(frame)].sum() / size.sum())

    def oracle(self, bench, scene, target) -> Heatmap:
        """All attribution lies on the bird, evenly."""
        return self.dosed(bench, scene, target, 0.0)

    def dosed(self, bench, scene, target, dose: float) -> Heatmap:
        """The share `dose` of the attribution lies on the ground."""
        bird = _bird(bench.frame(scene))
        return Heatmap(np.where(bird, (1 - dose) / bird.sum(), dose / max((~bird).sum(), 1)), signed=False)


def _bird(frame) -> np.ndarray:
    """The pixels of the bird; part ids from ten on are objects of the background."""
    return (frame.truth["parts"] > 0) & (frame.truth["parts"] < 10)


if __name__ == "__main__":
    print(
        diorama.evaluate(
            ["saliency", "grad_cam"], model="birds_cnn", on="birds", by=OnTheBird(), cases=8, controls=True
        )
    )
    passed = diorama.check_component(diorama.build("protocol", f"{__file__}:OnTheBird"))  # as `diorama check` does
    print("it keeps the contract" if passed else "it does not keep the contract")
