"""Codes with a known defect, made from true factors: what disentanglement scores are audited with.

`factors` are scaled to 0 … 1; the dose goes from 0 (codes = factors) to 1:

    noise       (1 − d)·g + d·u with independent uniform u
    rotation    standardised factors turned by d·45° in the planes (0, 1), (1, 2), (2, 3) …
    confounder  (1 − d)·g + d·mean over factors: a common cause takes over every latent
    dead        noisy factors (d = 0.3 of `noise`) and up to 2F latents that hardly move: 0.01 where one factor is above ½
"""

from typing import Literal

import numpy as np

from diorama.metrics.codes import standardised

Defect = Literal["noise", "rotation", "confounder", "dead"]


def unit(factors: np.ndarray) -> np.ndarray:
    """Every column scaled to 0 … 1; a constant one becomes 0.

    >>> unit(np.array([[2, 5], [4, 5]]))
    array([[0., 0.],
           [1., 0.]])
    """
    span = np.ptp(factors, axis=0)
    return (factors - factors.min(axis=0)) / np.where(span > 0, span, 1)


def planted(factors: np.ndarray, defect: Defect, dose: float, rng: np.random.Generator) -> np.ndarray:
    """Codes (N, M) that carry the factors (N, F), spoilt by a dose of one defect.

    >>> g = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> planted(g, "confounder", 1.0, np.random.default_rng(0)).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    """
    g = unit(factors)
    if defect == "noise":
        return (1 - dose) * g + dose * rng.random(g.shape)
    if defect == "rotation":
        return _turned(g, dose * np.pi / 4)
    if defect == "confounder":
        return (1 - dose) * g + dose * g.mean(axis=1, keepdims=True)
    noisy = 0.7 * g + 0.3 * rng.random(g.shape)
    dead = np.arange(round(2 * dose * g.shape[1])) % g.shape[1]
    return np.concatenate([noisy, 0.01 * (g[:, dead] > 0.5)], axis=1)


def _turned(g: np.ndarray, angle: float) -> np.ndarray:
    z = standardised(g)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for i in range(g.shape[1] - 1):
        z[:, i : i + 2] = z[:, i : i + 2] @ turn
    return z
