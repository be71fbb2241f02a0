"""InfoMEC: modularity, explicitness, compactness by information (Hsu et al. 2023)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.metrics import infomec as metric
from diorama.metrics.codes import Measured, Rule
from diorama.metrics.planted import Defect
from diorama.protocols import _codes as shared


@dataclass(frozen=True, slots=True)
class Infomec:
    """Normalised mutual information by nearest neighbours; latents whose range is below 1/20 of the largest are
    pruned. InfoM: does a latent carry one factor; InfoC: is a factor carried by one latent; InfoE: can it be read
    off linearly.
    """

    cite: ClassVar[tuple[str, ...]] = ("hsu2023",)
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "represent"
    needs: ClassVar[tuple[str, ...]] = ("factors",)
    metrics: ClassVar[tuple[str, ...]] = ("info_m", "info_e", "info_c", "info_m_null")
    doses: ClassVar[tuple[float, ...]] = shared.DOSES
    dose_name: ClassVar[str] = shared.DOSE_NAME

    frames: int = shared.FRAMES
    rule: Rule = "range"
    defect: Defect = "noise"
    nulls: int = 1

    case, frames_of, score = shared.draw_case, shared.frames_of, shared.score_draw
    fold = staticmethod(shared.other_draws)
    oracle, dosed = shared.oracle_codes, shared.dosed_codes
    settings, pictures = shared.draw_settings, shared.matrix_panels

    def __post_init__(self) -> None:
        shared.check_frames("infomec", self.frames, self.nulls)

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """InfoM, InfoE and InfoC of a draw."""
        return metric.infomec(codes, factors, self.rule)
