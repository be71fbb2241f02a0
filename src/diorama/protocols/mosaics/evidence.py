"""What protocols on mosaics share: signed evidence for every pixel, the true evidence with doses of noise, pictures."""

from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from diorama.core.answers import Answer, Heatmap, Mask
from diorama.core.bench import Bench
from diorama.core.capabilities import Labelled
from diorama.core.cases import Panel
from diorama.core.contracts import Protocol
from diorama.core.errors import AnswerError
from diorama.core.frame import Frame
from diorama.core.guard import attempt
from diorama.core.scene import Scene, rng
from diorama.io.pictures import PURPLE_ORANGE, diverging


class OnMosaics(Protocol):
    """A protocol on mosaics: evidence for the target belongs on its cells. Tables show the standard deviation too."""

    __slots__ = ()

    cite = ("ariasduart2023",)
    track = "explain"
    model = True
    needs = ("label", "cells", Labelled)
    shows_deviation = True
    doses = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
    example = 'diorama run -w "mosaic(source=birds(size=64))" -M birds_cnn -m grad_cam -p {}'
    dose_name = "share of pixels whose true evidence is replaced by a random sign"

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Heatmap:
        """1 on the target's cells, −1 elsewhere."""
        return noisy_truth(bench.frame(scene), 0.0)

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Heatmap:
        """The true evidence with random signs on a share of the pixels; a larger dose only adds pixels."""
        return noisy_truth(bench.frame(scene), dose)


@singledispatch
def evidence_map(answer: Answer) -> tuple[np.ndarray, bool]:
    """The evidence (h, w) float64, summed over channels, and whether the method can give negative evidence."""
    raise AnswerError(f"{type(answer).__name__} says nothing about single pixels: a heat map or a mask is needed")


@evidence_map.register
def _(answer: Heatmap) -> tuple[np.ndarray, bool]:
    heat = answer.values.astype(np.float64)
    heat = heat.sum(axis=2) if heat.ndim == 3 else heat
    if not answer.signed and heat.min() < 0:
        raise AnswerError("the heat map is declared to have no negative evidence, but has negative values")
    return heat, answer.signed


@evidence_map.register
def _(answer: Mask) -> tuple[np.ndarray, bool]:
    return answer.values.astype(np.float64), False


def ask_together(bench: Bench, scenes: Sequence[Scene]) -> None:
    """Have mosaics explained together, each for its target; one with a damaged photo does not stop the others."""
    whole = [scene for scene in scenes if attempt(lambda scene=scene: bench.frame(scene)).error is None]  # type: ignore[misc]
    bench.ask([(scene, scene.params["target"]) for scene in whole])


def target_cells(frame: Frame) -> np.ndarray:
    """Which cells show the target class, (cells,) bool."""
    return np.array(frame.truth["cells"]["labels"]) == frame.truth["label"]


def grid_of(frame: Frame) -> int:
    """Cells per side."""
    return round(len(frame.truth["cells"]["labels"]) ** 0.5)


def noisy_truth(frame: Frame, dose: float) -> Heatmap:
    """1 on the target's cells and −1 elsewhere, with random signs on a share of the pixels; a larger dose adds pixels."""
    true = np.where(target_cells(frame)[frame.truth["cells"]["index"]], 1.0, -1.0)
    random = rng("mosaic noise", frame.scene.key)
    noisy, signs = random.random(true.shape) < dose, random.choice([-1.0, 1.0], true.shape)
    return Heatmap(np.where(noisy, signs, true), signed=True)


def mosaic_panel(caption: str, frame: Frame) -> Panel:
    """The mosaic; target cells are framed in purple, where evidence for the target belongs, the others in orange."""
    return Panel(caption, _framed(frame.srgb(), frame))


def evidence_panel(caption: str, heat: np.ndarray, frame: Frame) -> Panel:
    """The evidence over a pale mosaic: purple for the target, orange against it."""
    return Panel(caption, _framed(diverging(heat, frame.srgb(), PURPLE_ORANGE), frame))


def _framed(image: np.ndarray, frame: Frame) -> np.ndarray:
    picture, index = np.array(image, np.float64), frame.truth["cells"]["index"]
    width = max(1, round(image.shape[0] / 64))
    for i, own in enumerate(target_cells(frame)):
        rows, columns = (np.flatnonzero((index == i).any(axis=axis)) for axis in (1, 0))
        cell = picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        for edge in (cell[:width], cell[-width:], cell[:, :width], cell[:, -width:]):
            edge[:] = PURPLE_ORANGE[0 if own else 1]
    return picture
