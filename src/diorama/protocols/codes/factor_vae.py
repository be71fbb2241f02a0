"""The FactorVAE score: the latent that varies least while a factor is fixed should identify it (Kim & Mnih 2018).

asks             Does the latent that varies least name the factor that was fixed in {methods}?
factor_vae       ↑ share of batches in which the latent that varies least names the factor that was fixed
factor_vae_null  · the same for codes that are unrelated to the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.factor_vae import factor_vae_score
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class FactorVae(shared.OfDraws):
    """Majority vote over batches of 64 frames that agree in one factor, taken from the frames of the draw, each encoded
    once. With the released rule, latents with a standard deviation of at least 0.05 vote.

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("kim2018", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("factor_vae", "factor_vae_null")

    rule: Rule = "scale"

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """The score of a draw."""
        return factor_vae_score(codes, factors, rng, self.rule)
