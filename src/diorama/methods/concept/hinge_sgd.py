"""CAV: hinge loss by stochastic gradient descent, the published trainer, step for step in the Gram space."""

from dataclasses import dataclass

import numpy as np

from diorama.core.bounds import Count, Positive
from diorama.core.contracts import Trainer
from diorama.metrics.cav_trainers import Options, Solution, hinge_sgd


@dataclass(frozen=True, slots=True)
class HingeSgd(Trainer):
    """The same steps as scikit-learn's SGDClassifier. The direction depends on the order of images and the stopping rule.

    alpha     weight of the L2 penalty, which also sets the learning rate; .01 as published
    max_iter  the largest number of epochs
    tol       training stops when the loss improves by less than this for five epochs
    """

    cite = ("kim2018tcav",)
    #: The result depends on the origin of the activations.
    centred = False

    alpha: Positive = 0.01
    max_iter: Count = 1000
    tol: float = 1e-3

    def solve(self, grams: np.ndarray, labels: np.ndarray, seeds: np.ndarray) -> Solution:
        """Coefficients (k, n) and intercepts (k,) from Gram matrices (k, n, n) and labels (k, n) of ±1."""
        return hinge_sgd(grams, labels, Options(alpha=self.alpha, max_iter=self.max_iter, tol=self.tol), seeds)
