"""MCC and R²: are the factors recovered, up to order and scale? (Hyvärinen & Morioka 2016; Khemakhem et al. 2020).

asks          Does {methods} recover the factors, up to their order and scale?
mcc           ↑ mean correlation of each factor with the latent assigned to it, each latent to one factor at most
mcc_spearman  ↑ the same with ranks, which forgives monotone distortions
r2            ↑ share of a factor's variance that a linear regression on all latents explains on other frames
mcc_null      · mcc for codes that are unrelated to the factors: read mcc against it
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.core.contracts import Bounds
from diorama.metrics.codes import Measured, Rule
from diorama.metrics.mcc import mcc, r2
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Mcc(shared.OfDraws):
    """Mean over factors of |correlation| with the latent that the best assignment gives them; R² of a linear regression of
    each factor on all latents, fitted on half of the frames and judged on the other half.

    Factors are the indices of their levels: for factors without an order (shape, scene) correlations depend on how
    levels are numbered. R² is below 0 where the regression is worse than the mean.
    """

    cite = ("hyvarinen2016", "khemakhem2020")
    metrics: ClassVar[tuple[str, ...]] = ("mcc", "mcc_spearman", "r2", "mcc_null")

    rule: Rule = "varies"
    nulls: int = 3

    @property
    def ranges(self) -> dict[str, Bounds]:
        """R² has no least value."""
        return {"r2": (None, 1.0)}

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """Both correlations and R² of a draw."""
        linear = mcc(codes, factors, "linear", self.rule)
        ranked, explained = mcc(codes, factors, "spearman", self.rule), r2(codes, factors, rng, self.rule)
        values = {**linear.values, **ranked.values, **explained.values}
        return Measured(values, linear.matrix, linear.per_factor, linear.active)
