"""CAV: logistic regression with an L2 penalty, by Newton steps in the Gram space."""

from dataclasses import dataclass

import numpy as np

from diorama.core.bounds import Positive
from diorama.core.contracts import Trainer
from diorama.metrics.cav_trainers import Options, Solution, logistic


@dataclass(frozen=True, slots=True)
class Logistic(Trainer):
    """min ½‖w‖² + c Σ log(1 + exp(−y(w·x + b))), as LogisticRegression.

    c  weight of the errors relative to the penalty
    """

    cite = ("kim2018tcav",)

    c: Positive = 1.0

    def solve(self, grams: np.ndarray, labels: np.ndarray, seeds: np.ndarray) -> Solution:
        """Coefficients (k, n) and intercepts (k,) from Gram matrices (k, n, n) and labels (k, n) of ±1."""
        return logistic(grams, labels, Options(c=self.c), seeds)
