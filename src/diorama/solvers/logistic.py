"""Multinomial logistic regression with an L2 penalty: a convex problem with one answer, found by L-BFGS."""

import numpy as np


def fit_logistic(
    x: np.ndarray, labels: np.ndarray, classes: int, l2: float, bias: bool = True, steps: int = 5000
) -> tuple[np.ndarray, np.ndarray]:
    """Weights W (classes, d) and biases b (classes,) that minimise mean(−log softmax(W z + b)_label) + l2/2 · ‖W‖².

    z is x (n, d) with every column at mean 0 and deviation 1; the answer is for x itself. Columns that do not vary get
    no weight. Without `bias`, b is 0 and columns keep their mean. `labels` are classes (n,), or rows of shares (n, classes)
    that sum to one, whose cross-entropy is then minimised. `steps` bounds the iterations.

    >>> W, b = fit_logistic(np.array([[0.0, 7.0], [1.0, 7.0], [4.0, 7.0], [5.0, 7.0]]), np.array([0, 0, 1, 1]), 2, 1e-3)
    >>> [int(i) for i in (np.array([[0.5, 7.0], [4.5, 7.0]]) @ W.T + b).argmax(1)], bool(abs(W[:, 1]).max() == 0)
    ([0, 1], True)
    """
    from scipy.optimize import minimize

    x = np.asarray(x, np.float64)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-12 * (1 + np.abs(mean)))
    centre = mean if bias else np.zeros_like(mean)
    z, hot = (x - centre) * scale, np.eye(classes)[labels] if labels.ndim == 1 else np.asarray(labels, np.float64)
    shape = (classes, x.shape[1] + 1)  # the last column holds the biases

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = logistic_loss(flat.reshape(shape), z, hot, l2)
        gradient[:, -1] *= bias  # biases start at 0, and stay there
        return value, gradient.ravel()

    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-15, "gtol": 1e-8}
    solution = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(shape)
    weights = solution[:, :-1] * scale
    return weights, solution[:, -1] - weights @ centre


def logistic_loss(w: np.ndarray, z: np.ndarray, hot: np.ndarray, l2: float) -> tuple[float, np.ndarray]:
    """The penalised loss and its gradient at w (classes, d + 1); `hot` are the labels as rows of shares."""
    scores = z @ w[:, :-1].T + w[:, -1]
    scores -= scores.max(axis=1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    value = -(hot * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean() + l2 / 2 * float((w[:, :-1] ** 2).sum())
    error = (p - hot) / len(z)
    return float(value), np.hstack([error.T @ z + l2 * w[:, :-1], error.sum(axis=0)[:, None]])
