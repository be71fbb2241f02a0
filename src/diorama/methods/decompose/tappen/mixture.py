"""A mixture of local linear experts, grown greedily by prototypes (ExpertBoost; Tappen, Adelson and Freeman 2006).

ŝ(p) = Σ_i w_i(p)·(f_i·p) / Σ_i w_i(p), with w_i(p) = exp(−‖φ(p) − φ_i‖²/h): each prototype φ_i has a linear function f_i of
the patch p, which dominates near the prototype. With the prototypes fixed, ŝ is linear in all f_i together.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Experts:
    """Prototypes (k, m) in the space of appearance φ, their linear functions (k, d), and the width h."""

    prototypes: np.ndarray
    functions: np.ndarray
    width: float

    def predict(self, patch: np.ndarray, appearance: np.ndarray) -> np.ndarray:
        """ŝ (n,) of patches (n, d) with appearance φ (n, m)."""
        share = _shares(_log_weights(appearance, self.prototypes, self.width))
        return np.einsum("nk,nk->n", share, patch @ self.functions.T)


@dataclass(frozen=True, slots=True)
class Samples:
    """The training set: patches (n, d), their appearance (n, m), and the targets (n,)."""

    patch: np.ndarray
    appearance: np.ndarray
    target: np.ndarray


def grow(samples: Samples, width: float, most: int, tries: int, random: np.random.Generator) -> Experts:
    """Prototypes added one at a time: of `tries` samples drawn in proportion to their squared error, the one whose own
    linear function lowers the error most; then all functions are fitted again. Stops at `most`, or where the squared
    error falls by less than 0.2 %.
    """
    experts = _fitted(samples, samples.appearance[:0].copy(), samples.appearance.mean(axis=0, keepdims=True), width)
    error = _squared_error(experts, samples)
    while len(experts.prototypes) < most:
        new = _candidate(samples, experts, tries, random)
        larger = _fitted(samples, experts.prototypes, samples.appearance[new : new + 1], width)
        following = _squared_error(larger, samples)
        if following.sum() > 0.998 * error.sum():
            break
        experts, error = larger, following
    return experts


def _squared_error(experts: Experts, samples: Samples) -> np.ndarray:
    return (samples.target - experts.predict(samples.patch, samples.appearance)) ** 2


def _fitted(samples: Samples, old: np.ndarray, new: np.ndarray, width: float) -> Experts:
    """All linear functions by ridge regression; the ridge is a thousandth of the mean energy of a column."""
    prototypes = np.concatenate([old, new])
    share = _shares(_log_weights(samples.appearance, prototypes, width))
    design = (share[:, :, None] * samples.patch[:, None, :]).reshape(len(share), -1)
    return Experts(prototypes, _ridge(design, samples.target).reshape(len(prototypes), -1), width)


def _ridge(design: np.ndarray, target: np.ndarray) -> np.ndarray:
    gram = design.T @ design
    return np.linalg.solve(gram + (1e-3 * np.trace(gram) / len(gram) + 1e-12) * np.eye(len(gram)), design.T @ target)


def _candidate(samples: Samples, experts: Experts, tries: int, random: np.random.Generator) -> int:
    """The sample that lowers the error most as a prototype, with the functions of the others fixed."""
    squares = _squared_error(experts, samples)
    among = random.choice(len(squares), size=tries, p=squares / squares.sum())
    now = experts.predict(samples.patch, samples.appearance)
    known = np.logaddexp.reduce(_log_weights(samples.appearance, experts.prototypes, experts.width), axis=1)
    errors = []
    for i in among:
        own = _log_weights(samples.appearance, samples.appearance[i : i + 1], experts.width)[:, 0]
        share = 1 / (1 + np.exp(np.clip(known - own, -50, 50)))
        rest, design = samples.target - (1 - share) * now, share[:, None] * samples.patch
        errors.append(((rest - design @ _ridge(design, rest)) ** 2).sum())
    return int(among[np.argmin(errors)])


def _log_weights(appearance: np.ndarray, prototypes: np.ndarray, width: float) -> np.ndarray:
    """−‖φ − φ_i‖²/h, (n, k)."""
    cross = appearance @ prototypes.T
    return (2 * cross - (appearance**2).sum(axis=1)[:, None] - (prototypes**2).sum(axis=1)) / width


def _shares(log_weights: np.ndarray) -> np.ndarray:
    w = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)
