"""DCI: disentanglement, completeness, informativeness by feature importances (Eastwood & Williams 2018).

asks        Is every latent about one factor, and every factor in one latent, in {methods}?
dci_d       ↑ disentanglement: whether a latent is important for one factor only
dci_c       ↑ completeness: whether one latent only is important for a factor
dci_i       ↑ informativeness: accuracy of predicting factors from held-out codes
dci_d_null  · dci_d for codes that are unrelated to the factors
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.dci import Estimator, dci
from diorama.protocols.codes import judging as shared


@dataclass(frozen=True, slots=True)
class Dci(shared.OfDraws):
    """D: is every latent important for one factor only? C: is one latent only important for every factor? I: accuracy on
    held-out codes.

    estimator  model that importances are taken from: extra trees, a random forest, or gradient boosting as in
               disentanglement_lib; the values depend on it

    A factor with more than 64 values that are not levels of the world is cut into 20 bins; a note says so.
    """

    cite = ("eastwood2018", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("dci_d", "dci_c", "dci_i", "dci_d_null")

    rule: Rule = "varies"
    estimator: Estimator = "extra_trees"

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """D, C and I of a draw."""
        return dci(codes, factors, rng, self.rule, self.estimator)

    def first(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> float:
        """D without the predictions of I."""
        return dci(codes, factors, rng, self.rule, self.estimator, informative=False).value
