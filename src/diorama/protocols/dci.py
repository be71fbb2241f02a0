"""DCI: disentanglement, completeness, informativeness by feature importances (Eastwood & Williams 2018)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.metrics import dci as metric
from diorama.metrics.codes import Measured, Rule
from diorama.metrics.planted import Defect
from diorama.protocols import _codes as shared


@dataclass(frozen=True, slots=True)
class Dci:
    """D: every latent important for one factor only; C: every factor by one latent only; I: accuracy on held-out
    codes. The values depend on `estimator`, which is part of every number: extra trees by default, gradient
    boosting as in disentanglement_lib.
    """

    cite: ClassVar[tuple[str, ...]] = ("eastwood2018", "locatello2019")
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "represent"
    needs: ClassVar[tuple[str, ...]] = ("factors",)
    metrics: ClassVar[tuple[str, ...]] = ("dci_d", "dci_c", "dci_i", "dci_d_null")
    doses: ClassVar[tuple[float, ...]] = shared.DOSES
    dose_name: ClassVar[str] = shared.DOSE_NAME

    frames: int = shared.FRAMES
    rule: Rule = "varies"
    estimator: metric.Estimator = "extra_trees"
    defect: Defect = "noise"
    nulls: int = 1

    case, frames_of, score = shared.draw_case, shared.frames_of, shared.score_draw
    fold = staticmethod(shared.other_draws)
    oracle, dosed = shared.oracle_codes, shared.dosed_codes
    settings, pictures = shared.draw_settings, shared.matrix_panels

    def __post_init__(self) -> None:
        shared.check_frames("dci", self.frames, self.nulls)

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """D, C and I of a draw."""
        return metric.dci(codes, factors, rng, self.rule, self.estimator)
