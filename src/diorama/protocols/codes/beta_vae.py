"""The β-VAE score: can the fixed factor be recognised from mean differences of codes (Higgins et al. 2017)?

asks           Can the factor that was fixed be recognised from codes of {methods}?
beta_vae       ↑ accuracy of recognising the fixed factor from mean differences of codes; rotated codes can reach 1 too
beta_vae_null  · the same for codes that are unrelated to the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.beta_vae import beta_vae_score
from diorama.metrics.codes import Measured, Rule
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class BetaVae(shared.OfDraws):
    """Accuracy of logistic regression on mean |z − z'| over 64 pairs of frames; both frames of a pair have the same value
    of one factor. Pairs are taken from the frames of the draw, each encoded once. Rotated codes can reach 1: the score
    does not ask for one latent per factor.

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("higgins2017", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("beta_vae", "beta_vae_null")

    rule: Rule = "varies"

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """The score of a draw."""
        return beta_vae_score(codes, factors, rng, self.rule)
