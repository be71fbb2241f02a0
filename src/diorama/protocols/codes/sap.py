"""SAP: how much better the best latent predicts a factor than the second (Kumar et al. 2018).

asks      Does one latent predict each factor far better than any other in {methods}?
sap       ↑ accuracy of the best latent in predicting a factor minus that of the second best
sap_null  · sap for codes that are unrelated to the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.sap import sap
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Sap(shared.OfDraws):
    """Accuracies of a linear support vector machine on one latent alone. One threshold against the rest cannot separate
    classes in the middle of a latent, so that even codes = factors stay below 1.

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("kumar2018", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("sap", "sap_null")
    ceiling = "one threshold against the rest cannot separate classes in the middle of a latent"

    rule: Rule = "varies"

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """SAP of a draw."""
        return sap(codes, factors, rng, self.rule)
