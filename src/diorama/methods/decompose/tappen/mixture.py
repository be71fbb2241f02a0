"""A mixture of local linear experts, grown greedily by prototypes (ExpertBoost; Tappen, Adelson and Freeman 2006).

ŝ(p) = Σ_i w_i(p)·(f_i·p) / Σ_i w_i(p), with w_i(p) = exp(−‖φ(p) − φ_i‖²/h): each prototype φ_i owns a linear function f_i of
the patch p, and near the prototype that function rules. With the prototypes fixed, ŝ is linear in all f_i together.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Experts:
    """Prototypes (k, m) in the space of appearance φ, their linear functions (k, d), and the width h."""

    prototypes: np.ndarray
    functions: np.ndarray
    width: float

    def predict(self, patch: np.ndarray, look: np.ndarray) -> np.ndarray:
        """ŝ (n,) of patches (n, d) that look like φ (n, m)."""
        share = _shares(_log_weights(look, self.prototypes, self.width))
        return np.einsum("nk,nk->n", share, patch @ self.functions.T)


@dataclass(frozen=True, slots=True)
class Samples:
    """What is learnt from: patches (n, d), their appearance (n, m), and the targets (n,)."""

    patch: np.ndarray
    look: np.ndarray
    target: np.ndarray


def grow(samples: Samples, width: float, most: int, tries: int, random: np.random.Generator) -> Experts:
    """Prototypes added one at a time: of `tries` samples drawn in proportion to their squared error, the one whose own
    linear function lowers the error most; then all functions are fitted again. Stops at `most`, or where the squared
    error falls by less than 0.2 %.
    """
    experts = _fitted(samples, samples.look[:0].copy(), samples.look.mean(axis=0, keepdims=True), width)
    error = _squared_error(experts, samples)
    while len(experts.prototypes) < most:
        new = _candidate(samples, experts, tries, random)
        larger = _fitted(samples, experts.prototypes, samples.look[new : new + 1], width)
        following = _squared_error(larger, samples)
        if following.sum() > 0.998 * error.sum():
            break
        experts, error = larger, following
    return experts


def _squared_error(experts: Experts, samples: Samples) -> np.ndarray:
    return (samples.target - experts.predict(samples.patch, samples.look)) ** 2


def _fitted(samples: Samples, old: np.ndarray, new: np.ndarray, width: float) -> Experts:
    """All linear functions by ridge regression; the ridge is a thousandth of the mean energy of a column."""
    prototypes = np.concatenate([old, new])
    share = _shares(_log_weights(samples.look, prototypes, width))
    design = (share[:, :, None] * samples.patch[:, None, :]).reshape(len(share), -1)
    return Experts(prototypes, _ridge(design, samples.target).reshape(len(prototypes), -1), width)


def _ridge(design: np.ndarray, target: np.ndarray) -> np.ndarray:
    gram = design.T @ design
    return np.linalg.solve(gram + (1e-3 * np.trace(gram) / len(gram) + 1e-12) * np.eye(len(gram)), design.T @ target)


def _candidate(samples: Samples, experts: Experts, tries: int, random: np.random.Generator) -> int:
    """The sample that helps most as a prototype, the functions of the others held fixed."""
    chance = _squared_error(experts, samples)
    among = random.choice(len(chance), size=tries, p=chance / chance.sum())
    now = experts.predict(samples.patch, samples.look)
    known = np.logaddexp.reduce(_log_weights(samples.look, experts.prototypes, experts.width), axis=1)
    errors = []
    for i in among:
        own = _log_weights(samples.look, samples.look[i : i + 1], experts.width)[:, 0]
        share = 1 / (1 + np.exp(np.clip(known - own, -50, 50)))
        rest, design = samples.target - (1 - share) * now, share[:, None] * samples.patch
        errors.append(((rest - design @ _ridge(design, rest)) ** 2).sum())
    return int(among[np.argmin(errors)])


def _log_weights(look: np.ndarray, prototypes: np.ndarray, width: float) -> np.ndarray:
    """−‖φ − φ_i‖²/h, (n, k)."""
    cross = look @ prototypes.T
    return (2 * cross - (look**2).sum(axis=1)[:, None] - (prototypes**2).sum(axis=1)) / width


def _shares(log_weights: np.ndarray) -> np.ndarray:
    w = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)
