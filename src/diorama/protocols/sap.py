"""SAP: how much better the best latent predicts a factor than the second (Kumar et al. 2018)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.metrics import sap as metric
from diorama.metrics.codes import Measured, Rule
from diorama.metrics.planted import Defect
from diorama.protocols import _codes as shared


@dataclass(frozen=True, slots=True)
class Sap:
    """Accuracies of a linear support vector machine on one latent alone. Classes in the middle of a latent cannot
    be told by one threshold against the rest, so that even codes = factors stay below 1.
    """

    cite: ClassVar[tuple[str, ...]] = ("kumar2018", "locatello2019")
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "represent"
    needs: ClassVar[tuple[str, ...]] = ("factors",)
    metrics: ClassVar[tuple[str, ...]] = ("sap", "sap_null")
    doses: ClassVar[tuple[float, ...]] = shared.DOSES
    dose_name: ClassVar[str] = shared.DOSE_NAME
    ceiling: ClassVar[str] = "classes in the middle of a latent cannot be told by one threshold against the rest"

    frames: int = shared.FRAMES
    rule: Rule = "varies"
    defect: Defect = "noise"
    nulls: int = 1

    case, frames_of, score = shared.draw_case, shared.frames_of, shared.score_draw
    fold = staticmethod(shared.other_draws)
    oracle, dosed = shared.oracle_codes, shared.dosed_codes
    settings, pictures = shared.draw_settings, shared.matrix_panels

    def __post_init__(self) -> None:
        shared.check_frames("sap", self.frames, self.nulls)

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """SAP of a draw."""
        return metric.sap(codes, factors, rng, self.rule)
