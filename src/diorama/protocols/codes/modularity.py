"""Modularity and explicitness: does a latent serve one factor, and can factors be predicted? (Ridgeway & Mozer 2018).

asks             Does each latent of {methods} serve one factor, and can factors be predicted linearly?
modularity       ↑ whether the information of a latent is about one factor only; an untrained network scores high too
explicitness     ↑ area under the ROC curve of a linear probe of the factors: 0.5 is chance
modularity_null  · modularity for codes that are unrelated to the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.modularity import explicitness, modularity
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Modularity(shared.OfDraws):
    """Modularity is the mean over latents of 1 − Σ_{i ≠ best} I_i² / (I_best² (F − 1)), with I from codes in bins.

    bins  number of bins of equal width into which codes are cut; 20 as in disentanglement_lib

    An untrained network scores high. Explicitness is the mean one-vs-rest area under the ROC curve of a linear
    probe; chance is 0.5.

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("ridgeway2018", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("modularity", "explicitness", "modularity_null")

    rule: Rule = "varies"
    bins: int = 20

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """Both scores of a draw."""
        measured = modularity(codes, factors, self.rule, self.bins)
        values = {**measured.values, **explicitness(codes, factors, rng, self.rule).values}
        return Measured(values, measured.matrix, measured.per_factor, measured.active)

    def first(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> float:
        """Modularity without the linear probes of explicitness."""
        rng.permutation(len(codes))  # as explicitness draws it, so that `rng` goes on as after `measure`
        return modularity(codes, factors, self.rule, self.bins).value
