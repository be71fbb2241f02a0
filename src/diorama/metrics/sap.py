"""Separated attribute predictability: how much better the best latent predicts a factor than the second (Kumar et al. 2018).

Discrete factors: the accuracy on held-out rows of a linear support vector machine on one latent alone, one class against
the rest, C = 0.01, with classes weighted as in LIBLINEAR's balanced mode (disentanglement_lib's setting). Its squared hinge
loss in one dimension is solved here by Newton steps for all classes at once. Continuous factors: squared correlation.
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, checked, gap, halves, sample


def sap(
    codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator, rule: Rule = "varies", share: float = 2 / 3
) -> Measured:
    """Mean over factors of the gap between the two most predictive latents; the matrix is accuracies (latents, factors).

    >>> g = np.array([[i, j] for i in range(2) for j in range(2)] * 20) - 0.5
    >>> sap(g, g, np.random.default_rng(0)).value > 0.3
    True
    """
    part = sample(codes, factors, rule)
    if part.empty:
        return part.nothing("sap")
    train, test = halves(len(part.codes), share, rng)
    rows = [[_accuracy(z, labels, train, test) for labels in part.labels.T] for z in part.codes.T]
    matrix = np.array(rows)
    per_factor = gap(matrix, axis=0)
    return part.measured({"sap": float(per_factor.mean())}, matrix, per_factor)


def sap_continuous(codes: np.ndarray, factors: np.ndarray, rule: Rule = "varies") -> Measured:
    """The same gap of squared correlations, for factors that are quantities and not classes.

    >>> g = np.array([[i, j] for i in range(3) for j in range(3)])
    >>> sap_continuous(g, g).value
    1.0
    """
    part = sample(codes, factors, rule)
    if part.empty:
        return part.nothing("sap")
    z, g = (x - x.mean(axis=0) for x in (part.codes, checked(codes, factors)[1][:, part.varying]))
    matrix = (z.T @ g) ** 2 / np.outer((z**2).sum(axis=0), (g**2).sum(axis=0))
    per_factor = gap(matrix, axis=0)
    return part.measured({"sap": float(per_factor.mean())}, matrix, per_factor)


def _accuracy(z: np.ndarray, labels: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    present = np.unique(labels[train])
    if len(present) < 2:
        return float((labels[test] == present[0]).mean())
    w, b = one_dimensional_svm(z[train], np.searchsorted(present, labels[train]))
    decision = z[test][:, None] * w + b
    chosen = (decision[:, 0] > 0).astype(int) if len(present) == 2 else decision.argmax(axis=1)
    return float((present[chosen] == labels[test]).mean())


def one_dimensional_svm(x: np.ndarray, labels: np.ndarray, c: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Slopes and offsets, one per class (one in all for two classes, positive for class 1), that minimise

    ½(w² + b²) + C·Σ_n c_n·max(0, 1 − y_n(w·x_n + b))²,  with c_n = N/(K·N_class) for rows of the class and, if K > 2, 1 for
    the rest, as LIBLINEAR does.
    """
    counts = np.bincount(labels)
    balanced = len(x) / (len(counts) * counts)
    if len(counts) == 2:
        y, weight = np.where(labels == 1, 1.0, -1.0)[:, None], balanced[labels][:, None]
    else:
        own = labels[:, None] == np.arange(len(counts))
        y, weight = np.where(own, 1.0, -1.0), np.where(own, balanced, 1.0)
    return _newton(x[:, None], y, c * weight)


def _newton(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton steps with halving, all columns of y at once, until no column improves."""
    w, b = np.zeros(y.shape[1]), np.zeros(y.shape[1])
    value = _objective(x, y, weight, w, b)
    for _ in range(50):
        slack = np.maximum(1 - y * (w * x + b), 0)
        pull, curvature = weight * slack * y, weight * (slack > 0)
        gw, gb = w - 2 * (pull * x).sum(axis=0), b - 2 * pull.sum(axis=0)
        cx = curvature * x
        hww, hwb, hbb = 1 + 2 * (cx * x).sum(axis=0), 2 * cx.sum(axis=0), 1 + 2 * curvature.sum(axis=0)
        determinant = hww * hbb - hwb**2
        dw, db = (hbb * gw - hwb * gb) / determinant, (hww * gb - hwb * gw) / determinant
        step = np.ones_like(w)
        for _ in range(12):
            new = _objective(x, y, weight, w - step * dw, b - step * db)
            worse = new > value
            if not worse.any():
                break
            step = np.where(worse, step / 2, step)
        step = np.where(new < value, step, 0.0)
        if not step.any() or (value - new < 1e-12 * value).all():
            break
        w, b, value = w - step * dw, b - step * db, np.where(step > 0, new, value)
    return w, b


def _objective(x: np.ndarray, y: np.ndarray, weight: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    slack = np.maximum(1 - y * (w * x + b), 0)
    return 0.5 * (w**2 + b**2) + (weight * slack**2).sum(axis=0)
