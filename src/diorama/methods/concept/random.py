"""Chance: a random direction in the span of the images, independent of which of them show the concept."""

from dataclasses import dataclass

import numpy as np

from diorama.core.contracts import Trainer
from diorama.core.scene import rng
from diorama.metrics.cav_trainers import Solution


@dataclass(frozen=True, slots=True)
class Random(Trainer):
    """Normal coefficients that sum to zero, a function of the seed and of the CAV run.

    seed  seed of the random directions
    """

    seed: int = 0

    def solve(self, grams: np.ndarray, labels: np.ndarray, seeds: np.ndarray) -> Solution:
        """Coefficients (k, n) and intercepts (k,) of zero."""
        a = np.array([rng(self.seed, "concept/random", int(s)).standard_normal(labels.shape[1]) for s in seeds])
        return a - a.mean(axis=1, keepdims=True), np.zeros(len(a))
