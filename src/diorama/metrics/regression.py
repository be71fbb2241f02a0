"""Multinomial logistic regression by L-BFGS: the linear probe of several scores, without a further library."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """p(class | x) ∝ exp(x·weights + bias), weights (M, classes)."""

    weights: np.ndarray
    bias: np.ndarray

    @classmethod
    def fit(cls, x: np.ndarray, labels: np.ndarray, penalty: float, balanced: bool = False) -> "Softmax":
        """Minimise Σ_n w_n·(−log p_n) + penalty/2·‖weights‖², at most 100 steps; `balanced` weighs classes equally."""
        from scipy.optimize import minimize

        classes = int(labels.max()) + 1
        counts = np.bincount(labels, minlength=classes)
        present = np.count_nonzero(counts)
        weight = (len(x) / (present * np.maximum(counts, 1)))[labels] if balanced else np.ones(len(x))
        start = np.zeros((x.shape[1] + 1) * classes)
        arguments = (x, labels, weight / len(x), penalty / len(x), classes)
        options = {"maxiter": 100, "gtol": 1e-5, "maxls": 50}
        result = minimize(_loss, start, arguments, jac=True, method="L-BFGS-B", options=options)
        full = result.x.reshape(x.shape[1] + 1, classes)
        return cls(full[:-1], full[-1])

    def log_probabilities(self, x: np.ndarray) -> np.ndarray:
        """log p (N, classes)."""
        from scipy.special import log_softmax

        return log_softmax(x @ self.weights + self.bias, axis=1)

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        """p (N, classes)."""
        return np.exp(self.log_probabilities(x))

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The most probable class of every row."""
        return (x @ self.weights + self.bias).argmax(axis=1)


def _loss(
    flat: np.ndarray, x: np.ndarray, labels: np.ndarray, weight: np.ndarray, penalty: float, classes: int
) -> tuple[float, Any]:
    full = flat.reshape(x.shape[1] + 1, classes)
    p = full[:-1].T @ x.T  # (classes, rows): over the first axis maxima and sums are several times as fast
    p += full[-1][:, None]  # one array through all steps: temporaries cost more than the arithmetic
    p -= p.max(axis=0)
    rows = np.arange(len(x))
    own = p[labels, rows]
    np.exp(p, out=p)
    total = p.sum(axis=0)
    value = (weight * (np.log(total) - own)).sum() + 0.5 * penalty * (full[:-1] ** 2).sum()
    p *= weight / total
    p[labels, rows] -= weight
    gradient = np.concatenate([(p @ x).T + penalty * full[:-1], p.sum(axis=1)[None]])
    return float(value), gradient.ravel()
