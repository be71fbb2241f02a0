"""SAP: how much better the best latent predicts a factor than the second (Kumar et al. 2018).

asks      Is each factor told by one latent far better than by any other in {methods}?
sap       ↑ by how much the best latent predicts a factor better than the second best
sap_null  · sap of codes that have nothing to do with the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.sap import sap
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Sap(shared.OfDraws):
    """Accuracies of a linear support vector machine on one latent alone. Classes in the middle of a latent cannot
    be told by one threshold against the rest, so that even codes = factors stay below 1.

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("kumar2018", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("sap", "sap_null")
    ceiling = "classes in the middle of a latent cannot be told by one threshold against the rest"

    rule: Rule = "varies"

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """SAP of a draw."""
        return sap(codes, factors, rng, self.rule)
