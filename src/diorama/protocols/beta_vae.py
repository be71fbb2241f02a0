"""The β-VAE score: which factor was held is read off mean differences of codes (Higgins et al. 2017)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.metrics import beta_vae as metric
from diorama.metrics.codes import Measured, Rule
from diorama.metrics.planted import Defect
from diorama.protocols import _codes as shared


@dataclass(frozen=True, slots=True)
class BetaVae:
    """Accuracy of logistic regression on mean |z − z'| over 64 pairs that agree in one factor, drawn from the
    frames of the draw: each is encoded once. Rotated codes can reach 1: the score does not ask for one latent per
    factor.
    """

    cite: ClassVar[tuple[str, ...]] = ("higgins2017", "locatello2019")
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "represent"
    needs: ClassVar[tuple[str, ...]] = ("factors",)
    metrics: ClassVar[tuple[str, ...]] = ("beta_vae", "beta_vae_null")
    doses: ClassVar[tuple[float, ...]] = shared.DOSES
    dose_name: ClassVar[str] = shared.DOSE_NAME

    frames: int = shared.FRAMES
    rule: Rule = "varies"
    defect: Defect = "noise"
    nulls: int = 1

    case, frames_of, score = shared.draw_case, shared.frames_of, shared.score_draw
    fold = staticmethod(shared.other_draws)
    oracle, dosed = shared.oracle_codes, shared.dosed_codes
    settings, pictures = shared.draw_settings, shared.matrix_panels

    def __post_init__(self) -> None:
        shared.check_frames("beta_vae", self.frames, self.nulls)

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """The score of a draw."""
        return metric.beta_vae_score(codes, factors, rng, self.rule)
