"""UC: do factors live in latents of their own? As defined, and as released with its slip (CANDLE; Reddy et al. 2022).

asks      {Do} factors live in latents of their own in {methods}?
uc        ↑ 1 minus the overlap of the latents that belong to two factors, a mean over pairs: 1 none is shared
uc_image  ↑ the same with latents chosen for every image, averaged
uc_null   · uc for codes that are unrelated to the factors
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from diorama.core.errors import InputError, Undefined
from diorama.metrics.codes import Measured, active
from diorama.metrics.planted import Defect
from diorama.metrics.uc import uc, uc_published
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Uc(shared.OfDraws):
    """1 − the mean overlap |Q_i ∩ Q_j| / |Q_i ∪ Q_j| of the ρ latents that IRS chooses for each factor.

    variant   corrected or published (see the text)
    rho       ρ, number of latents that belong to a factor; the paper has 1 and 2
    quantile  quantile of the distances that IRS takes as their maximum; .99 as released

    `corrected`: the ρ largest among active latents (standard deviation above 10 % of the largest), one choice for
    all frames (`uc`) or every frame's own, averaged (`uc_image`, the expectation of Eq. 1). `published`: the
    released slice, which takes the largest and then latents at fixed places, the same for all factors: at ρ = 2 and
    10 latents UC cannot exceed 2/3. On trained networks UC varies by tenths between draws: report its interval.

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("reddy2022", "suter2019")

    variant: Literal["corrected", "published"] = "corrected"
    rho: int = 1
    quantile: float = 0.99
    defect: Defect = "confounder"
    nulls: int = 3

    def __post_init__(self) -> None:
        shared.Draws.__post_init__(self)
        if self.rho < 1:
            raise InputError(f"uc: rho={self.rho}: each factor has at least one latent")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The released code has no value per image."""
        return ("uc", "uc_image", "uc_null") if self.variant == "corrected" else ("uc", "uc_null")

    def settings(self, world: object) -> dict[str, str]:
        """What is printed with every number."""
        rule = "spread" if self.variant == "corrected" else "varies; factors in 20 bins"
        return {**shared.OfDraws.settings(self, world), "active latents": rule, "latents per factor": str(self.rho)}

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """UC of a draw."""
        if self.variant == "published":
            return uc_published(codes, factors, self.rho, self.quantile)
        count = int(active(codes, "spread").sum())
        if self.rho > count:
            raise Undefined(f"rho={self.rho}, but only {count} latents are active")
        return uc(codes, factors, self.rho, "spread", self.quantile)
