"""InfoMEC: modularity, explicitness, compactness by information (Hsu et al. 2023).

asks         {Do} {methods} carry one factor per latent, and can each be predicted linearly?
info_m       ↑ modularity: whether a latent carries one factor
info_e       ↑ explicitness: whether factors can be predicted linearly
info_c       ↑ compactness: whether a factor is carried by one latent
info_m_null  · info_m for codes that are unrelated to the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.infomec import infomec
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Infomec(shared.OfDraws):
    """Normalised mutual information by nearest neighbours; latents whose range is below 1/20 of the largest are
    pruned. InfoM: does a latent carry one factor? InfoC: is a factor carried by one latent? InfoE: can it be predicted
    linearly?

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("hsu2023",)
    metrics: ClassVar[tuple[str, ...]] = ("info_m", "info_e", "info_c", "info_m_null")

    rule: Rule = "range"

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """InfoM, InfoE and InfoC of a draw."""
        return infomec(codes, factors, self.rule)

    def first(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> float:
        """InfoM without the linear probes of InfoE."""
        return infomec(codes, factors, self.rule, explicit=False).value
