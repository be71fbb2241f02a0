"""LIME: a linear model of the target's probability, fitted to copies of the image with superpixels hidden."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.adapt.explaining import need
from diorama.core.answers import Answer, Heatmap, Mask
from diorama.core.bounds import Count, Positive, Several
from diorama.core.scene import rng
from diorama.methods.explain.passes import Fill, OncePerImage, OnHost, Output, all_outputs, backend_of, filling, pixels
from diorama.methods.explain.superpixels import quickshift


@dataclass(frozen=True, slots=True)
class Lime(OncePerImage):
    """Weighted ridge regression of the output on flags of the superpixels shown; the superpixels of largest weight.

    samples      altered copies of the image; 1,000 as published
    features     number of superpixels that are kept; 5 as FunnyBirds
    answer       mask, as FunnyBirds: a binary map of the superpixels of largest positive weight (fewer if fewer are
                 positive); signed, as the Attribution Confusion Matrix (`lime_acm`): the weights of those largest by
                 magnitude, 0 elsewhere
    output       what the linear model predicts: the target's probability (as published) or its logit
    hide         gray that hidden superpixels take, 0 (black) to 1
    width        kernel width: a sample weighs exp(−d²/2·width²), d its cosine distance to the whole image; .25 as
                 published
    ridge        weight of the penalty; 1 as published
    kernel_size  quickshift's kernel size in pixels; 4 as published
    max_dist     quickshift's longest link: larger makes fewer superpixels; 200 as published
    ratio        quickshift's weight of colour relative to place, 0 to 1; .2 as published
    fill         what hidden superpixels show: the gray `hide`, the image's mean colour, or the image blurred
    seed         seed of the random samples

    On staged birds fill=mean, answer=signed, features=1000, kernel_size=2 and max_dist=100 together are best (mX .88 on
    birds_resnet; docs/results/funnybirds/rise-and-lime.md).

    A sample shows each superpixel with probability ½, the first shows all. Segments and samples are functions of the
    seed and the pixels.
    """

    cite: ClassVar[tuple[str, ...]] = ("ribeiro2016",)
    quick: ClassVar[dict[str, int]] = {"samples": 60}

    samples: Several = 1000
    features: Count = 5
    answer: Literal["mask", "signed"] = "mask"
    output: Output = "probability"
    hide: float = 0.0
    fill: Fill = "black"
    width: Positive = 0.25
    ridge: Positive = 1.0
    kernel_size: float = 4.0
    max_dist: float = 200.0
    ratio: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        need("skimage", "lime", "lime")

    def explain_targets(self, model: Any, image: np.ndarray, targets: Sequence[int]) -> list[Answer]:
        """Masks or heat maps of one image (h, w, 3) for several targets, from one set of passes."""
        segments = self.segments(image)
        shown = self.shown_in(image, int(segments.max()) + 1)
        outputs = self.outputs_of(backend_of(model), image, segments, shown, targets)
        weights = local_weights(shown, outputs, self.width, self.ridge)
        return [self.answer_of(w, segments) for w in weights.T]

    def segments(self, image: np.ndarray) -> np.ndarray:
        """The superpixel (h, w) that every pixel belongs to, numbered from 0."""
        exact = image.astype(np.float64)  # as the lime package: single precision splits flat areas into many more
        return quickshift(exact, self.ratio, self.kernel_size, self.max_dist, self.seed)

    def shown_in(self, image: np.ndarray, count: int) -> np.ndarray:
        """Which superpixels every sample shows, (samples, count) of 0 and 1."""
        shown = rng(self.seed, "explain/lime", pixels(image)).integers(0, 2, (self.samples, count), np.uint8)
        shown[0] = 1
        return shown

    def outputs_of(
        self, backend: OnHost, image: np.ndarray, segments: np.ndarray, shown: np.ndarray, targets: Sequence[int]
    ) -> np.ndarray:
        """The model's output for every sample and target."""
        full = np.full(image.shape, self.hide, np.float32)
        instead = full if self.fill == "black" else filling(image, self.fill)
        deviation, hidden, visible, place = backend.put(image - instead, instead, shown.astype(np.float32), segments)
        place = backend.integers(place)
        added = hidden if instead.any() else None  # black adds nothing

        def altered(piece: range) -> Any:
            return backend.masked(deviation, visible[piece.start : piece.stop][:, place], added)

        outputs = all_outputs(backend, image.shape, self.samples, altered, self.output)
        return backend.get(outputs[:, list(targets)])[0]

    def answer_of(self, weights: np.ndarray, segments: np.ndarray) -> Answer:
        """The mask or heat map of the weights of superpixels."""
        if self.answer == "signed":
            largest = np.argsort(-np.abs(weights), kind="stable")[: self.features]
            signed_weights = np.zeros_like(weights)
            signed_weights[largest] = weights[largest]
            return Heatmap(signed_weights[segments].astype(np.float32), signed=True)
        best = np.argsort(-weights, kind="stable")[: self.features]
        return Mask(np.isin(segments, best[weights[best] > 0]))


def local_weights(shown: np.ndarray, values: np.ndarray, width: float, ridge: float) -> np.ndarray:
    """argmin_β,c Σ_k w_k (values_k − c − shown_k·β)² + ridge·|β|², (features, targets); c is not penalised.

    w_k = exp(−d_k² / 2·width²), d_k the cosine distance of shown_k (samples, features) to all ones.

    >>> shown = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
    >>> local_weights(shown, shown @ np.array([[2.0], [-1.0]]), 1e6, 1e-9).round(6).ravel().tolist()
    [2.0, -1.0]
    """
    distance = 1 - np.sqrt(shown.mean(axis=1))
    weight = np.exp(-0.5 * (distance / width) ** 2)
    share = weight / weight.sum()
    centred = shown - share @ shown
    weighted = centred.T * weight
    return np.linalg.solve(weighted @ centred + ridge * np.eye(shown.shape[1]), weighted @ (values - share @ values))
