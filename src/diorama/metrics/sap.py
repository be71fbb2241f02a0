"""Separated attribute predictability: how much better the best latent predicts a factor than the second (Kumar et al. 2018).

Discrete factors: the accuracy on held-out rows of a linear support vector machine on one latent alone, one class against
the rest, C = 0.01, with classes weighted as in LIBLINEAR's balanced mode (disentanglement_lib's setting). Its squared hinge
loss in one dimension is solved here by Newton steps for all classes at once, from running sums over sorted rows.
Continuous factors: squared correlation.
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, gap, halves, sample


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
        return _newton(_Sides(x, labels, c * balanced[1:], c * balanced[:1], np.array([1])))
    return _newton(_Sides(x, labels, c * balanced, np.full(len(counts), c), np.arange(len(counts))))


class _Sides:
    """The rows of each class and the rest, in one dimension: sums over those on the wrong side of their margin.

    Such rows are the first or the last of the sorted ones, so that running sums of 1, x and x² give every sum at once,
    whatever the number of rows.
    """

    def __init__(self, x: np.ndarray, labels: np.ndarray, own: np.ndarray, rest: np.ndarray, classes: np.ndarray):
        order = np.argsort(x, kind="stable")
        self.x, self.own, self.rest = x[order], own, rest
        powers = np.stack([np.ones_like(self.x), self.x, self.x**2])
        self.every = _running(powers)
        by_class = np.argsort(labels[order], kind="stable")  # by class, each in the order of x
        self.keys = labels[order][by_class] * (len(x) + 1) + by_class
        self.of_class = _running(powers[:, by_class])
        self.first = classes * (len(x) + 1)
        self.start = np.searchsorted(self.keys, self.first)
        self.stop = np.searchsorted(self.keys, self.first + len(x))

    def below(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums (3, classes) over the rows of each class, and over the rest, below a place of its own on the axis."""
        place = np.searchsorted(self.x, at)
        own = self.of_class[:, np.searchsorted(self.keys, self.first + place)] - self.of_class[:, self.start]
        return own, self.every[:, place] - own

    def wrong(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over own rows with w·x + b < 1, and over the others with w·x + b > −1."""
        slope = np.where(w == 0, 1.0, w)
        own_all = self.of_class[:, self.stop] - self.of_class[:, self.start]
        rest_all = self.every[:, -1:] - own_all
        own = self.below((1 - b) / slope)[0]
        rest = self.below((-1 - b) / slope)[1]
        own, rest = np.where(w > 0, own, own_all - own), np.where(w > 0, rest_all - rest, rest)
        flat = w == 0
        return np.where(flat, own_all * (b < 1), own), np.where(flat, rest_all * (b > -1), rest)

    def objective(self, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The objective, for every class."""
        return (
            0.5 * (w**2 + b**2)
            + self.own * _square(self.wrong(w, b)[0], 1 - b, -w)
            + self.rest * _square(self.wrong(w, b)[1], 1 + b, w)
        )


def _running(powers: np.ndarray) -> np.ndarray:
    """Sums (3, n + 1) of the first 0, 1, … n entries."""
    return np.concatenate([np.zeros((len(powers), 1)), np.cumsum(powers, axis=1)], axis=1)


def _square(sums: np.ndarray, a: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Σ (a + m·x)² from the sums of 1, x and x²."""
    return np.maximum(a**2 * sums[0] + 2 * a * m * sums[1] + m**2 * sums[2], 0)


def _newton(sides: _Sides) -> tuple[np.ndarray, np.ndarray]:
    """Newton steps with halving, all classes at once, until none improves."""
    w, b = np.zeros(len(sides.own)), np.zeros(len(sides.own))
    value = sides.objective(w, b)
    for _ in range(50):
        own, rest = sides.wrong(w, b)
        pull = sides.own * ((1 - b) * own[:2] - w * own[1:]) - sides.rest * ((1 + b) * rest[:2] + w * rest[1:])
        curved = sides.own * own + sides.rest * rest
        gw, gb = w - 2 * pull[1], b - 2 * pull[0]
        hww, hwb, hbb = 1 + 2 * curved[2], 2 * curved[1], 1 + 2 * curved[0]
        determinant = hww * hbb - hwb**2
        dw, db = (hbb * gw - hwb * gb) / determinant, (hww * gb - hwb * gw) / determinant
        step = np.ones_like(w)
        for _ in range(12):
            new = sides.objective(w - step * dw, b - step * db)
            worse = new > value
            if not worse.any():
                break
            step = np.where(worse, step / 2, step)
        step = np.where(new < value, step, 0.0)
        if not step.any() or (value - new < 1e-12 * value).all():
            break
        w, b, value = w - step * dw, b - step * db, np.where(step > 0, new, value)
    return w, b
