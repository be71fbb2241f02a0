"""CAV: the mean of the concept's activations minus that of the negatives (FastCAV)."""

from dataclasses import dataclass

import numpy as np

from diorama.core.contracts import Trainer
from diorama.metrics.cav_trainers import Options, Solution, mean_difference


@dataclass(frozen=True, slots=True)
class MeanDifference(Trainer):
    """w = mean⁺ − mean⁻; FastCAV's mean⁺ − mean of all is the same direction."""

    cite = ("schmalwasser2025",)

    def solve(self, grams: np.ndarray, labels: np.ndarray, seeds: np.ndarray) -> Solution:
        """Coefficients (k, n) and intercepts (k,) from Gram matrices (k, n, n) and labels (k, n) of ±1."""
        return mean_difference(grams, labels, Options(), seeds)
