"""Modularity and explicitness: does a latent serve one factor, and can factors be read off? (Ridgeway & Mozer 2018)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.modularity import explicitness, modularity
from diorama.metrics.planted import Defect
from diorama.protocols import _codes as shared


@dataclass(frozen=True, slots=True)
class Modularity:
    """Modularity is the mean over latents of 1 − Σ_{i ≠ best} I_i² / (I_best² (F − 1)), with I from codes in
    `bins`.

    An untrained network scores high. Explicitness is the mean one-vs-rest area under the ROC curve of a linear
    probe; chance is 0.5.
    """

    cite: ClassVar[tuple[str, ...]] = ("ridgeway2018", "locatello2019")
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "represent"
    needs: ClassVar[tuple[str, ...]] = ("factors",)
    metrics: ClassVar[tuple[str, ...]] = ("modularity", "explicitness", "modularity_null")
    doses: ClassVar[tuple[float, ...]] = shared.DOSES
    dose_name: ClassVar[str] = shared.DOSE_NAME

    frames: int = shared.FRAMES
    rule: Rule = "varies"
    bins: int = 20
    defect: Defect = "noise"
    nulls: int = 1

    case, frames_of, score = shared.draw_case, shared.frames_of, shared.score_draw
    fold = staticmethod(shared.other_draws)
    oracle, dosed = shared.oracle_codes, shared.dosed_codes
    settings, pictures = shared.draw_settings, shared.matrix_panels

    def __post_init__(self) -> None:
        shared.check_frames("modularity", self.frames, self.nulls)

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """Both scores of a draw."""
        found = modularity(codes, factors, self.rule, self.bins)
        values = {**found.values, **explicitness(codes, factors, rng, self.rule).values}
        return Measured(values, found.matrix, found.per_factor, found.active)
