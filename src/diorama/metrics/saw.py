"""Shading annotations in the wild: precision and recall of "smooth shading", in two incompatible definitions.

Labels: 0 normal or depth discontinuity, 1 shadow boundary, 2 smooth, 100 ignored. At each threshold a pixel is called
smooth where the shading's gradient is below it; the 3×2 confusion is summed over all photos, its rows reweighted by
[1, 1, 2]/row sum, precision = c[2, smooth]/Σ c[:, smooth], recall = c[2, smooth]/Σ c[2, :].

Kovacs et al. 2017 take the Sobel magnitude of linear shading after a 10×10 maximum filter everywhere and print a curve.
Li & Snavely 2018, whose number is usually called SAW AP, take the natural log (at least 1e-4), judge smooth pixels on the
*unfiltered* map and the others on the filtered one, and integrate. Scores of the two cannot be compared.
"""

from collections.abc import Sequence

import numpy as np

SMOOTH, WEIGHTS = 2, np.array([1.0, 1.0, 2.0])


def kovacs_thresholds(count: int = 200) -> np.ndarray:
    """Half of them ½·logspace(1e-4 … 1), the other half mirrored about ½.

    >>> t = kovacs_thresholds()
    >>> len(t), bool((np.diff(t) >= 0).all()), float(t[0]), float(t[-1])
    (200, True, 5e-05, 0.99995)
    """
    half = 0.5 * np.logspace(-4, 0, count // 2)
    return np.concatenate([half, 1 - half[::-1]])


def li_thresholds() -> np.ndarray:
    """log of 200 values in 1.001 … 1.5 and 200 in 1.501 … 64."""
    return np.log(np.concatenate([np.linspace(1.001, 1.5, 200), np.linspace(1.501, 64, 200)]))


def sobel_magnitude(gray: np.ndarray) -> np.ndarray:
    """√(∂x² + ∂y²) with unnormalised Sobel filters, (h, w)."""
    from scipy.ndimage import sobel

    gray = gray.astype(np.float64)
    return np.hypot(sobel(gray, axis=0), sobel(gray, axis=1))


def widened(magnitude: np.ndarray) -> np.ndarray:
    """The 10×10 maximum filter."""
    from scipy.ndimage import maximum_filter

    return maximum_filter(magnitude, size=10)


def kovacs_confusion(shading: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(200, 3, 2) pixels of one photo by threshold, label and [not smooth, smooth]; shading is linear gray in 0 … 1."""
    judged = widened(sobel_magnitude(shading))
    return _confusion([judged] * 3, labels, kovacs_thresholds(), None)


def li_confusion(shading: np.ndarray, labels: np.ndarray, image: np.ndarray | None = None) -> np.ndarray:
    """(400, 3, 2) of one photo; with the gray sRGB `image` in mode 1, the "challenge", else in mode 0.

    Mode 1 weights a smooth pixel by the mean image gradient of its connected component and, as released, truncates the
    sums of a photo to integers.
    """
    magnitude = sobel_magnitude(np.log(np.maximum(shading, 1e-4)))
    wide = widened(magnitude)
    weights = None if image is None else _component_means(sobel_magnitude(image), labels == SMOOTH)
    return _confusion([wide, wide, magnitude], labels, li_thresholds(), weights)


def _component_means(magnitude: np.ndarray, smooth: np.ndarray) -> np.ndarray:
    """Every pixel's mean of `magnitude` over its 4-connected component of `smooth`."""
    from scipy.ndimage import label, mean

    components, count = label(smooth)
    means = np.atleast_1d(mean(magnitude, components, np.arange(1, count + 1))) if count else np.zeros(0)
    return np.concatenate([[0.0], means])[components]


def _confusion(
    judged: Sequence[np.ndarray], labels: np.ndarray, thresholds: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    counts = np.zeros((len(thresholds), 3, 2))
    for row in range(3):
        inside = labels == row
        values = judged[row][inside]
        order = np.argsort(values)
        weight = weights[inside][order] if weights is not None and row == SMOOTH else np.ones(len(values))
        total = np.concatenate([[0.0], np.cumsum(weight)])
        below = total[np.searchsorted(values[order], thresholds, side="left")]
        counts[:, row] = np.stack([total[-1] - below, below], axis=1)
    # the released matrix holds integers; 1e-9 is added so that 3 − 1e-16 is not rounded down to 2
    return counts if weights is None else np.floor(counts + 1e-9)


def precision_recall(confusion: np.ndarray, guard: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall of smooth shading at each threshold of a summed confusion (t, 3, 2).

    `guard` is added to denominators (1e-5 as released by Li & Snavely); precision is NaN where nothing is called smooth.
    """
    rows = confusion.sum(axis=2, keepdims=True)
    share = np.divide(confusion, rows + guard, out=np.zeros_like(confusion), where=rows > 0) * WEIGHTS[None, :, None]
    smooth, called, labelled = share[:, SMOOTH, 1], share[:, :, 1].sum(axis=1), share[:, SMOOTH].sum(axis=1)
    precision = np.divide(smooth, called + guard, out=np.full_like(smooth, np.nan), where=called + guard > 0)
    return precision, np.divide(smooth, labelled + guard, out=np.zeros_like(smooth), where=labelled > 0)


def average_precision(confusion: np.ndarray) -> float:
    """SAW AP of Li & Snavely: the trapezoid under the curve with (0, first precision) and (1, ½) added; NaN without labels.

    >>> c = np.zeros((400, 3, 2)); c[:, 2, 1] = 5; c[:, 0, 0] = 5
    >>> round(average_precision(c), 3)
    1.0
    """
    if not confusion[0, SMOOTH].sum() or not confusion[0, :SMOOTH].sum():
        return float("nan")
    precision, recall = precision_recall(confusion, 1e-5)
    return _area(np.array([0, *recall, 1]), np.array([precision[0], *precision, 0.5]))


def curve_area(confusion: np.ndarray) -> float:
    """The area under Kovacs' curve (the paper prints none): trapezoids, flat to recall 0 and cut at the last recall."""
    if not confusion[0, SMOOTH].sum() or not confusion[0, :SMOOTH].sum():
        return float("nan")
    precision, recall = precision_recall(confusion)
    precision, recall = precision[~np.isnan(precision)], recall[~np.isnan(precision)]
    return _area(np.array([0, *recall]), np.array([precision[0], *precision])) if len(recall) else 0.0


def _area(x: np.ndarray, y: np.ndarray) -> float:
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum())
