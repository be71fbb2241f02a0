"""The FactorVAE score: the latent that varies least while a factor is held names it (Kim & Mnih 2018).

asks             Does the latent that moves least name the factor that was held in {methods}?
factor_vae       ↑ share of batches in which the stillest latent names the factor that was held
factor_vae_null  · the same of codes that have nothing to do with the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.factor_vae import factor_vae_score
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class FactorVae(shared.OfDraws):
    """Majority vote over batches of 64 frames that agree in one factor, drawn from the frames of the draw: each is
    encoded once. The released rule lets latents with a standard deviation of 0.05 vote.

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("kim2018", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("factor_vae", "factor_vae_null")

    rule: Rule = "scale"

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """The score of a draw."""
        return factor_vae_score(codes, factors, rng, self.rule)
