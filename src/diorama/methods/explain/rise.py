"""RISE: the mean of random masks, each weighted by the target's logit on the masked image."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Heatmap
from diorama.core.errors import InputError
from diorama.core.scene import rng
from diorama.methods.explain.passes import Fill, OncePerImage, Output, batches, filling, outputs

#: Masks between two looks at the standard error.
LOOK = 200
#: The bounds that a note may give, as a share of the map's spread.
BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Rise(OncePerImage):
    """S = Σ_k f(x · m_k) · m_k / (N · p) over N random masks m_k: signed, (h, w), as FunnyBirds.

    masks     N; the papers have 4,000 to 8,000, FunnyBirds 6,000
    cells     a mask is a field of so many squares in a row and a column, enlarged bilinearly and shifted by a random part
              of a cell
    keep      p, the probability that a square is shown; .1 as FunnyBirds
    output    f: the raw logit (as FunnyBirds), the probability, or the logit minus the mean over classes (centred)
    fill      what hidden pixels show: black (as FunnyBirds), the image's mean colour, or the image blurred
    contrast  subtract from every f its mean over the masks before masks are weighed: far from 0, f adds a constant times
              the mean mask, and its noise, which says nothing about the image
    stop      ends the sampling of a target once the standard error has this share of the map's standard deviation,
              looked at every 200 masks; None takes all masks
    seed      other masks

    Masks are a function of the seed and the image's size, the same for all images (as
    FunnyBirds' mask file), and made batch by batch. The note beside a value bounds the standard error: its root mean
    square over the map's standard deviation, both over pixels.
    """

    cite = ("petsiuk2018",)

    masks: int = 1000
    cells: int = 8
    keep: float = 0.1
    output: Output = "logit"
    fill: Fill = "black"
    contrast: bool = False
    stop: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.masks < 2 or self.cells < 2 or not 0 < self.keep <= 1:
            given = f"masks={self.masks}, cells={self.cells}, keep={self.keep}"
            raise InputError(f"rise: {given}: at least 2 masks and 2 cells, and keep in (0, 1]")
        if self.stop is not None and self.stop <= 0:
            raise InputError(f"rise: stop={self.stop}: a positive share of the map's spread, e.g. 0.1")

    def explain_targets(self, model: Any, image: np.ndarray, targets: Sequence[int]) -> list[Answer]:
        """Heat maps (h, w) of one image (h, w, 3) for several targets, from one set of passes."""
        signed = self.contrast or self.output != "probability"
        return [e.answer(signed) for e in self.estimates(model, image, targets)]

    def standard_error(self, model: Any, image: np.ndarray, target: int) -> np.ndarray:
        """The standard error (h, w) of the map of one target."""
        return self.estimates(model, image, [target])[0].error

    def estimates(self, model: Any, image: np.ndarray, targets: Sequence[int]) -> "list[Estimate]":
        """The map of every target with its standard error; when sampling stops for a target does not depend on the
        other targets.
        """
        going, found = [_Sums(target, self.keep, self.contrast) for target in targets], dict[int, Estimate]()
        looked, instead = 0, filling(image, self.fill)
        for piece in batches(self.masks, image.shape):
            masks = self.some_masks(piece, image.shape[:2])
            shown = image * masks[:, :, :, None]
            if self.fill != "black":
                shown += instead * (1 - masks[:, :, :, None])
            values = outputs(model, shown, self.output)
            squares = masks * masks
            for sums in going:
                sums.add(values[:, sums.target], masks, squares)
            if piece.stop == self.masks or (self.stop is not None and piece.stop // LOOK > looked):
                looked = piece.stop // LOOK
                ended = [
                    sums for sums in going if piece.stop == self.masks or sums.estimate().share <= (self.stop or 0)
                ]
                found.update({sums.target: sums.estimate() for sums in ended})
                going = [sums for sums in going if sums.target not in found]
            if not going:
                break
        return [found[target] for target in targets]

    def some_masks(self, piece: range, size: tuple[int, int]) -> np.ndarray:
        """The masks of those numbers, (n, h, w) float32 in [0, 1]."""
        fields = (self._draw("cells").random((piece.stop, self.cells, self.cells)) < self.keep)[piece.start :]
        down, right = (
            self._draw(way).integers(0, _cell(self.cells, length), piece.stop)[piece.start :, None] + np.arange(length)
            for way, length in zip(("down", "right"), size, strict=True)
        )
        tall, wide = _enlarging(self.cells, size[0])[down], _enlarging(self.cells, size[1])[right]  # (n, h or w, grid)
        return tall @ fields.astype(np.float32) @ wide.transpose(0, 2, 1)

    def _draw(self, what: str) -> np.random.Generator:
        return rng(self.seed, "explain/rise", what)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A map and its standard error, both (h, w), from so many masks."""

    mean: np.ndarray
    error: np.ndarray
    masks: int

    @property
    def share(self) -> float:
        """The standard error as a share of the map's spread: rms(error) / std(map) over pixels; infinite for a flat map."""
        spread = float(self.mean.std())
        return float(np.sqrt(np.mean(self.error**2))) / spread if spread > 0 else np.inf

    def answer(self, signed: bool) -> Heatmap:
        """The map, with a bound of its standard error as its note."""
        bound = next((f"at most {b:.0%}" for b in BOUNDS if self.share <= b), f"more than {BOUNDS[-1]:.0%}")
        return Heatmap(self.mean.astype(np.float32), signed, f"standard error {bound} of the map's spread")


class _Sums:
    """Σ f·m and Σ (f·m)² of one target; for `contrast` also what is needed to take the mean of f away afterwards."""

    def __init__(self, target: int, keep: float, contrast: bool) -> None:
        self.target, self.keep, self.contrast, self.count = target, keep, contrast, 0
        self.total: Any = 0.0
        self.square: Any = 0.0
        self.values = 0.0
        self.masks: Any = 0.0
        self.squares: Any = 0.0
        self.mixed: Any = 0.0

    def add(self, values: np.ndarray, masks: np.ndarray, squares: np.ndarray) -> None:
        """Count some masks (n, h, w), their squares, and the outputs (n,) on the images they leave."""
        self.total = self.total + np.tensordot(values.astype(np.float32), masks, 1).astype(np.float64)
        self.square = self.square + np.tensordot((values**2).astype(np.float32), squares, 1).astype(np.float64)
        self.count += len(values)
        if self.contrast:
            self.values += float(values.sum())
            self.masks = self.masks + masks.sum(axis=0, dtype=np.float64)
            self.squares = self.squares + squares.sum(axis=0, dtype=np.float64)
            self.mixed = self.mixed + np.tensordot(values.astype(np.float32), squares, 1).astype(np.float64)

    def estimate(self) -> Estimate:
        """The map so far."""
        level = self.values / self.count
        mean = (self.total - level * self.masks) / self.count
        square = self.square - 2 * level * self.mixed + level**2 * self.squares
        variance = np.maximum(square / self.count - mean**2, 0) * self.count / (self.count - 1)
        return Estimate(mean / self.keep, np.sqrt(variance / self.count) / self.keep, self.count)


def _cell(grid: int, length: int) -> int:
    return -(-length // grid)


@lru_cache(maxsize=8)
def _enlarging(grid: int, length: int) -> np.ndarray:
    """The matrix ((grid + 1) · cell, grid) that enlarges one axis bilinearly; beyond the outer cells it mirrors."""
    size = (grid + 1) * _cell(grid, length)
    at = (np.arange(size) + 0.5) * grid / size - 0.5
    at = np.where(at < 0, -at, at)
    at = np.where(at > grid - 1, 2 * (grid - 1) - at, at)
    return np.maximum(0, 1 - np.abs(at[:, None] - np.arange(grid))).astype(np.float32)
