"""CAV: ridge regression on labels of ±1, in closed form in the Gram space."""

from dataclasses import dataclass

import numpy as np

from diorama.core.bounds import Positive
from diorama.core.contracts import Trainer
from diorama.metrics.cav_trainers import Options, Solution, ridge


@dataclass(frozen=True, slots=True)
class Ridge(Trainer):
    """min Σ (w·x + b − y)² + alpha·‖w‖², as RidgeClassifier.

    alpha  weight of the penalty
    """

    cite = ("kim2018tcav",)

    alpha: Positive = 1.0

    def solve(self, grams: np.ndarray, labels: np.ndarray, seeds: np.ndarray) -> Solution:
        """Coefficients (k, n) and intercepts (k,) from Gram matrices (k, n, n) and labels (k, n) of ±1."""
        return ridge(grams, labels, Options(ridge=self.alpha), seeds)
