"""IRS: how little a latent moves while one factor is fixed (Suter et al. 2019).

asks        {Do} the latents of {methods} stay still while their factor is fixed?
irs         ↑ how little a latent moves while one factor is fixed and all others change: 1 not at all
irs_chosen  ↑ the same for the best latent of each factor, by which UC chooses latents
irs_null    · irs for codes that are unrelated to the factors, which is well above 0
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.irs import irs
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Irs(shared.OfDraws):
    """R_li = 1 − mean over values of factor i of the 0.99 quantile of |z_l − group mean| / max |z_l − mean|; IRS is
    the mean over latents of max_i R_li, weighted by max |z_l − mean|. `irs_chosen` is the mean over factors of max_l
    R_li, by which UC chooses latents. Codes without any relation to the factors score well above 0: compare with
    `irs_null`. A latent that hardly moves wins every factor unless rule="spread" prunes it.

    bins      number of bins of equal width into which factors are cut; 20 as released
    quantile  quantile of the distances that is taken as their maximum; .99 as released
    """

    cite = ("suter2019", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("irs", "irs_chosen", "irs_null")

    rule: Rule = "varies"
    bins: int = 20
    quantile: float = 0.99
    nulls: int = 3

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """IRS of a draw."""
        return irs(codes, factors, self.rule, self.bins, self.quantile)
