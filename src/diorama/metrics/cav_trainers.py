"""Linear classifiers that see their images only through the Gram matrix: w = Σ aᵢ xᵢ, and a is what is solved for.

Each takes Gram matrices (k, n, n) and labels (k, n) of ±1 and gives coefficients a (k, n) and intercepts (k,). The loops
are compiled where numba is installed and run, slowly, where it is not.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

Solution = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, slots=True)
class Options:
    """Penalties: `c` of SVM and logistic regression, `ridge`, `alpha` of hinge SGD, which also has `max_iter` and `tol`."""

    c: float = 1.0
    ridge: float = 1.0
    alpha: float = 0.01
    max_iter: int = 1000
    tol: float = 1e-3


#: Gram matrices (k, n, n), labels (k, n), options, seeds (k,) → coefficients and intercepts.
Trainer = Callable[[np.ndarray, np.ndarray, Options, np.ndarray], Solution]


def mean_difference(grams: np.ndarray, labels: np.ndarray, options: Options, seeds: np.ndarray) -> Solution:
    """w = mean⁺ − mean⁻ (FastCAV up to a factor: Schmalwasser et al. 2025); the intercept is half way between."""
    positive = labels > 0
    a = positive / positive.sum(1, keepdims=True) - ~positive / (~positive).sum(1, keepdims=True)
    f = _values(grams, a)
    centres = [(f * side).sum(1) / side.sum(1) for side in (positive, ~positive)]
    return a, -(centres[0] + centres[1]) / 2


def ridge(grams: np.ndarray, labels: np.ndarray, options: Options, seeds: np.ndarray) -> Solution:
    """min Σ (w·x + b − y)² + ridge·‖w‖²: a = (HKH + ridge·I)⁻¹ Hy with H the centring matrix."""
    centred = grams - grams.mean(1, keepdims=True)
    centred -= centred.mean(2, keepdims=True)
    mean = labels.mean(1)
    system = centred + options.ridge * np.eye(grams.shape[1])
    a = np.linalg.solve(system, (labels - mean[:, None])[..., None])[..., 0]
    return a, mean - _values(grams, a).mean(1)


def logistic(grams: np.ndarray, labels: np.ndarray, options: Options, seeds: np.ndarray) -> Solution:
    """min ½‖w‖² + c Σ log(1 + exp(−y(w·x + b))) by Newton steps on a, with halving where a step does not descend.

    With weights W = c p(1 − p) and s = √W the step solves (I + sKs) exactly, so that weights of zero do no harm.
    """
    a, b = np.zeros(labels.shape), np.zeros(len(labels))
    loss = _logistic_loss(grams, labels, a, b, options.c)
    for _ in range(100):
        towards, at = _newton(grams, labels, a, b, options.c)
        step, better = np.ones(len(a)), np.zeros(len(a), bool)
        for _ in range(30):
            new_a, new_b = a + step[:, None] * (towards - a), b + step * (at - b)
            new_loss = _logistic_loss(grams, labels, new_a, new_b, options.c)
            better = new_loss <= loss
            if better.all():
                break
            step = np.where(better, step, step / 2)
        gain = np.where(better, loss - new_loss, 0.0)
        a, b = np.where(better[:, None], new_a, a), np.where(better, new_b, b)
        loss = np.where(better, new_loss, loss)
        if (gain <= 1e-12 * (1 + loss)).all():
            break
    return a, b


def _newton(grams: np.ndarray, labels: np.ndarray, a: np.ndarray, b: np.ndarray, c: float) -> Solution:
    """Where Newton's step leads: a = (I + WK)⁻¹(q − b W1) and Σa = 0, with q = W f + c(t − p)."""
    f = _values(grams, a) + b[:, None]
    p = 1 / (1 + np.exp(-np.clip(f, -500, 500)))
    weight = np.maximum(c * p * (1 - p), 1e-12)
    s, q = np.sqrt(weight), weight * f + c * ((labels > 0) - p)
    system = s[:, :, None] * grams * s[:, None, :] + np.eye(grams.shape[1])
    right = np.stack([s * _values(grams, q), s], axis=2)
    solved = np.linalg.solve(system, right)
    free, unit = q - s * solved[..., 0], s * solved[..., 1]
    at = free.sum(1) / unit.sum(1)
    return free - at[:, None] * unit, at


def _logistic_loss(grams: np.ndarray, labels: np.ndarray, a: np.ndarray, b: np.ndarray, c: float) -> np.ndarray:
    f = _values(grams, a)
    return 0.5 * (a * f).sum(1) + c * np.logaddexp(0, -labels * (f + b[:, None])).sum(1)


def _values(grams: np.ndarray, a: np.ndarray) -> np.ndarray:
    return np.matmul(grams, a[..., None])[..., 0]


def linear_svm(grams: np.ndarray, labels: np.ndarray, options: Options, seeds: np.ndarray) -> Solution:
    """min ½‖w‖² + c Σ max(0, 1 − y(w·x + b)), exactly, by sequential minimal optimisation (Fan et al. 2005)."""
    solved = [_compiled(_smo)(k, y, float(options.c), 1e-5) for k, y in _each(grams, labels)]
    return np.array([a for a, _ in solved]), np.array([b for _, b in solved])


def _smo(gram: np.ndarray, y: np.ndarray, c: float, tolerance: float) -> tuple[np.ndarray, float]:
    """Coefficients βᵢ = yᵢαᵢ in a box with Σβ = 0; every step moves the pair that violates optimality most."""
    n = len(y)
    beta, left = np.zeros(n), y.copy()  # left = y − Kβ
    high, low, top, bottom = np.where(y > 0, c, 0.0), np.where(y > 0, 0.0, -c), 0.0, 0.0
    for _ in range(100_000):
        i, top, bottom = -1, -np.inf, np.inf
        for t in range(n):
            if beta[t] < high[t] and left[t] > top:
                i, top = t, left[t]
            if beta[t] > low[t] and left[t] < bottom:
                bottom = left[t]
        if i < 0 or top - bottom < tolerance:
            break
        j, best = -1, 0.0
        for t in range(n):
            gap = top - left[t]
            if beta[t] > low[t] and gap > 0:
                gain = gap * gap / max(gram[i, i] + gram[t, t] - 2 * gram[i, t], 1e-12)
                if gain > best:
                    j, best = t, gain
        move = (top - left[j]) / max(gram[i, i] + gram[j, j] - 2 * gram[i, j], 1e-12)
        move = min(move, high[i] - beta[i], beta[j] - low[j])
        beta[i] = high[i] if move == high[i] - beta[i] else beta[i] + move
        beta[j] = low[j] if move == beta[j] - low[j] else beta[j] - move
        for t in range(n):
            left[t] -= move * (gram[i, t] - gram[j, t])
    return beta, (top + bottom) / 2


def hinge_sgd(grams: np.ndarray, labels: np.ndarray, options: Options, seeds: np.ndarray) -> Solution:
    """The published CAV: scikit-learn's SGDClassifier (hinge, L2, "optimal" rate), step for step on the coefficients a.

    The order of the images for a seed and the stopping rule (no better objective in five epochs) are those of scikit-learn
    1.9. A step costs n multiplications in place of d.
    """
    arguments = float(options.alpha), int(options.max_iter), float(options.tol)
    solved = [_compiled(_sgd)(k, y, *arguments, int(s)) for (k, y), s in zip(_each(grams, labels), seeds, strict=True)]
    return np.array([a for a, _ in solved]), np.array([b for _, b in solved])


def _sgd(gram: np.ndarray, y: np.ndarray, alpha: float, epochs: int, tol: float, seed: int) -> tuple[np.ndarray, float]:
    n = len(y)
    a, order, b, norm, t = np.zeros(n), np.arange(n), 0.0, 0.0, 1.0
    start, scale = 1 / (np.sqrt(1 / np.sqrt(alpha)) * alpha), 1.0  # w = scale · Σ aᵢ xᵢ, norm = ‖w‖²
    best, idle = np.inf, 0
    for _ in range(epochs):
        total, state = 0.0, seed
        for i in range(n - 1):
            state = 1 if state == 0 else state
            state ^= (state << 13) & 0xFFFFFFFF
            state ^= state >> 17
            state ^= (state << 5) & 0xFFFFFFFF
            j = i + (state % 0x80000000) % (n - i)
            order[i], order[j] = order[j], order[i]
        for r in order:
            f = scale * np.dot(gram[r], a)
            eta = 1 / (alpha * (start + t - 1))
            total += max(0.0, 1 - y[r] * (f + b)) + alpha * 0.5 * norm
            shrink = max(0.0, 1 - eta * alpha)
            scale, norm = scale * shrink, norm * shrink * shrink
            if scale < 1e-9:
                a *= scale
                scale = 1.0
            if y[r] * (f + b) <= 1:
                step = eta * y[r]
                a[r] += step / scale
                norm += 2 * step * f * shrink + step * step * gram[r, r]
                b += step
            t += 1
        idle = idle + 1 if total / n > best - tol else 0
        best = min(best, total / n)
        if idle >= 5:
            break
    return a * scale, b


def _each(grams: np.ndarray, labels: np.ndarray) -> Any:
    return zip(np.ascontiguousarray(grams, np.float64), np.ascontiguousarray(labels, np.float64), strict=True)


@cache
def _compiled(loop: Callable[..., Any]) -> Callable[..., Any]:
    if importlib.util.find_spec("numba") is None:
        return loop
    import numba

    return numba.njit(cache=True, nogil=True)(loop)


TRAINERS: dict[str, Trainer] = {
    "hinge_sgd": hinge_sgd,
    "linear_svm": linear_svm,
    "logistic": logistic,
    "ridge": ridge,
    "mean_difference": mean_difference,
}
