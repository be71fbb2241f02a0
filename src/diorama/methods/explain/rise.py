"""RISE: the mean of random masks, each weighted by the target's logit on the masked image."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from diorama.core.answers import Answer, Heatmap
from diorama.core.bounds import Positive, Several, Within
from diorama.core.scene import rng
from diorama.methods.explain.passes import Fill, OncePerImage, OnHost, Output, backend_of, filling

#: The standard error is checked every so many masks.
LOOK = 200
#: The bounds of the standard error that a note may give, as a share of the map's standard deviation.
BOUNDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Rise(OncePerImage):
    """S = Σ_k f(x · m_k) · m_k / (N · p) over N random masks m_k: signed, (h, w), as FunnyBirds.

    masks     N; the papers have 4,000 to 8,000, FunnyBirds 6,000
    cells     number of cells along each side of a mask, which is enlarged bilinearly and shifted by a random part of a cell
    keep      p, the probability that a cell is shown; .1 as FunnyBirds
    output    f: the raw logit (as FunnyBirds), the probability, or the logit minus the mean over classes (centred)
    fill      what hidden pixels show: black (as FunnyBirds), the image's mean colour, or the image blurred
    contrast  subtract from every f its mean over the masks first: an f far from 0 adds a constant times the mean mask and
              its noise, which do not depend on the image
    stop      ends the sampling of a target once the standard error is at most this share of the map's standard deviation,
              checked every 200 masks; None takes all masks
    seed      seed of the random masks

    On staged birds the published settings reach little (mX .45 on birds_resnet); keep=.5, fill=blur, output=centred and
    contrast=True together reach .88 (docs/results/funnybirds/rise-and-lime.md).

    Masks are a function of the seed and the image's size, the same for all images (as FunnyBirds' mask file), and made
    batch by batch. The note beside a value bounds the standard error: its root mean square over the map's standard
    deviation, both over pixels.
    """

    cite = ("petsiuk2018",)
    quick: ClassVar[dict[str, int]] = {"masks": 60}

    masks: Several = 1000
    cells: Several = 8
    keep: Annotated[float, Within(0, 1, above=True)] = 0.1
    output: Output = "logit"
    fill: Fill = "black"
    contrast: bool = False
    stop: Positive | None = None
    seed: int = 0

    def explain_targets(self, model: Any, image: np.ndarray, targets: Sequence[int]) -> list[Answer]:
        """Heat maps (h, w) of one image (h, w, 3) for several targets, from one set of passes."""
        signed = self.contrast or self.output != "probability"
        return [e.answer(signed) for e in self.estimates(model, image, targets)]

    def standard_error(self, model: Any, image: np.ndarray, target: int) -> np.ndarray:
        """The standard error (h, w) of the map of one target."""
        return self.estimates(model, image, [target])[0].error

    def estimates(self, model: Any, image: np.ndarray, targets: Sequence[int]) -> "list[Estimate]":
        """The map of every target with its standard error; sampling stops for each target independently of the others."""
        backend = backend_of(model)
        going = [_Sums(target, self.keep, backend, self.contrast) for target in targets]
        finished: dict[int, Estimate] = {}
        factors = self._drawn(self.masks, image.shape[:2])
        original, instead, *factors = backend.put(image, filling(image, self.fill), *factors)
        checks = 0
        for piece in backend.batches(self.masks, image.shape):
            masks = _masks_of(backend, factors, piece)
            hidden = None if self.fill == "black" else backend.masked(instead, 1 - masks)
            values = backend.outputs(backend.masked(original, masks, hidden), self.output)
            squares = masks * masks
            for sums in going:
                sums.add(values[:, sums.target], masks, squares)
            if piece.stop == self.masks or (self.stop is not None and piece.stop // LOOK > checks):
                checks = piece.stop // LOOK
                current = _estimates(backend, going)
                ended = {t: e for t, e in current.items() if piece.stop == self.masks or e.share <= (self.stop or 0)}
                finished.update(ended)
                going = [sums for sums in going if sums.target not in finished]
            if not going:
                break
        return [finished[target] for target in targets]

    def some_masks(self, piece: range, size: tuple[int, int]) -> np.ndarray:
        """The masks with these indices, (n, h, w) float32 in [0, 1]."""
        return _masks_of(OnHost(None), self._drawn(piece.stop, size), piece)

    def _drawn(self, count: int, size: tuple[int, int]) -> list[np.ndarray]:
        """The factors of the first `count` masks: cells, their shifts down and right, the matrices that enlarge them."""
        fields = (self.generator("cells").random((count, self.cells, self.cells)) < self.keep).astype(np.float32)
        shifts = [
            self.generator(way).integers(0, _cell(self.cells, length), count)[:, None] + np.arange(length)
            for way, length in zip(("down", "right"), size, strict=True)
        ]
        return [fields, *shifts, *(_enlarging(self.cells, length) for length in size)]

    def generator(self, what: str) -> np.random.Generator:
        """The generator of the cells, or of the shifts down or right."""
        return rng(self.seed, "explain/rise", what)


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """A map and its standard error, both (h, w), from so many masks."""

    mean: np.ndarray
    error: np.ndarray
    masks: int

    @property
    def share(self) -> float:
        """The standard error as a share of the map's standard deviation, both over pixels; infinite for a flat map."""
        deviation = float(self.mean.std())
        return float(np.sqrt(np.mean(self.error**2))) / deviation if deviation > 0 else np.inf

    def answer(self, signed: bool) -> Heatmap:
        """The map, with a bound of its standard error as its note."""
        bound = next((f"at most {b:.0%}" for b in BOUNDS if self.share <= b), f"more than {BOUNDS[-1]:.0%}")
        return Heatmap(self.mean.astype(np.float32), signed, f"standard error {bound} of the map's standard deviation")


def _masks_of(backend: OnHost, drawn: Sequence[Any], piece: range) -> Any:
    """The masks (n, h, w) with these indices, from the output of `_drawn`."""
    fields, down, right, tall, wide = drawn
    some = slice(piece.start, piece.stop)
    return tall[backend.integers(down[some])] @ fields[some] @ wide[backend.integers(right[some])].swapaxes(1, 2)


def _estimates(backend: OnHost, all_sums: "Sequence[_Sums]") -> dict[int, Estimate]:
    """The maps of several targets so far, with their standard errors."""
    arrays = backend.get(*(array for sums in all_sums for array in sums.arrays()))
    pairs = zip(arrays[::2], arrays[1::2], all_sums, strict=True)
    return {sums.target: Estimate(mean, error, sums.count) for mean, error, sums in pairs}


class _Sums:
    """Σ f·m and Σ (f·m)² of one target; for `contrast` also the sums needed to subtract the mean of f afterwards."""

    def __init__(self, target: int, keep: float, backend: OnHost, contrast: bool) -> None:
        self.target, self.keep, self.backend, self.contrast, self.count = target, keep, backend, contrast, 0
        self.total: Any = 0.0
        self.square: Any = 0.0
        self.values: Any = 0.0
        self.masks: Any = 0.0
        self.squares: Any = 0.0
        self.mixed: Any = 0.0

    def add(self, values: Any, masks: Any, squares: Any) -> None:
        """Add some masks (n, h, w), their squares, and the outputs (n,) for the masked images."""
        weighted_sum = self.backend.weighted_sum
        self.total = self.total + weighted_sum(values, masks)
        self.square = self.square + weighted_sum(values**2, squares)
        self.count += len(values)
        if self.contrast:
            self.values = self.values + values.sum()
            self.masks = self.masks + self.backend.total(masks)
            self.squares = self.squares + self.backend.total(squares)
            self.mixed = self.mixed + weighted_sum(values, squares)

    def arrays(self) -> tuple[Any, Any]:
        """The map so far and its standard error, on the device that summed them."""
        level = self.values / self.count
        mean = (self.total - level * self.masks) / self.count
        square = self.square - 2 * level * self.mixed + level**2 * self.squares
        variance = square / self.count - mean**2  # of the population; rounding may take it below 0
        return mean / self.keep, self.backend.root(variance / (self.count - 1)) / self.keep


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
