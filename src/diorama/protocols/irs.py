"""IRS: how little a latent moves while one factor is held (Suter et al. 2019)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from diorama.metrics import irs as metric
from diorama.metrics.codes import Measured, Rule
from diorama.metrics.planted import Defect
from diorama.protocols import _codes as shared


@dataclass(frozen=True, slots=True)
class Irs:
    """R_li = 1 − mean over values of factor i of the 0.99 quantile of |z_l − group mean| / max |z_l − mean|; IRS is
    the mean over latents of max_i R_li, weighted by their reach. `irs_chosen` is the mean over factors of max_l
    R_li, what UC chooses latents by. Codes without any relation to the factors score well above 0: read it beside
    `irs_null`. A latent that hardly moves wins every factor unless rule="spread" prunes it.
    """

    cite: ClassVar[tuple[str, ...]] = ("suter2019", "locatello2019")
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "higher"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "represent"
    needs: ClassVar[tuple[str, ...]] = ("factors",)
    metrics: ClassVar[tuple[str, ...]] = ("irs", "irs_chosen", "irs_null")
    doses: ClassVar[tuple[float, ...]] = shared.DOSES
    dose_name: ClassVar[str] = shared.DOSE_NAME

    frames: int = shared.FRAMES
    rule: Rule = "varies"
    bins: int = 20
    quantile: float = 0.99
    defect: Defect = "noise"
    nulls: int = 3

    case, frames_of, score = shared.draw_case, shared.frames_of, shared.score_draw
    fold = staticmethod(shared.other_draws)
    oracle, dosed = shared.oracle_codes, shared.dosed_codes
    settings, pictures = shared.draw_settings, shared.matrix_panels

    def __post_init__(self) -> None:
        shared.check_frames("irs", self.frames, self.nulls)

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """IRS of a draw."""
        return metric.irs(codes, factors, self.rule, self.bins, self.quantile)
