"""Structural similarity (Wang et al. 2004) and the dissimilarity of the MPI protocol with its search for a scale.

SSIM = (2μₐμ_b + c₁)(2σ_ab + c₂) / ((μₐ² + μ_b² + c₁)(σₐ² + σ_b² + c₂)), c₁ = (0.01·L)², c₂ = (0.03·L)², averaged over the
positions where the window is inside the image, per channel, then over channels. Windows: Gaussian 11×11, σ = 1.5 (Wang;
MPI; kornia; torchmetrics) or uniform k×k (3×3 in Stanford-ORB). A black background that both images share raises SSIM.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Moments:
    """The local moments of a pair: SSIM at any scale of `a` follows from them without filtering again."""

    mean_a: np.ndarray
    mean_b: np.ndarray
    var_a: np.ndarray
    var_b: np.ndarray
    cov: np.ndarray

    def ssim(self, scale: float = 1.0, peak: float = 1.0) -> float:
        """SSIM of scale·a and b."""
        c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
        mean_a, var_a, cov = scale * self.mean_a, scale**2 * self.var_a, scale * self.cov
        top = (2 * mean_a * self.mean_b + c1) * (2 * cov + c2)
        bottom = (mean_a**2 + self.mean_b**2 + c1) * (var_a + self.var_b + c2)
        return float((top / bottom).mean())


def moments(a: np.ndarray, b: np.ndarray, window: int = 11, sigma: float | None = 1.5) -> Moments:
    """Means, variances and covariance of (h, w, c) images in each window; `sigma=None` for a uniform window."""
    if min(a.shape[:2]) < window:
        raise ValueError(f"SSIM needs at least {window}×{window} pixels, not {a.shape[1]}×{a.shape[0]}")
    weights = _weights(window, sigma)
    a, b = a.astype(np.float64), b.astype(np.float64)
    mean_a, mean_b = _filtered(a, weights), _filtered(b, weights)
    return Moments(
        mean_a,
        mean_b,
        _filtered(a * a, weights) - mean_a**2,
        _filtered(b * b, weights) - mean_b**2,
        _filtered(a * b, weights) - mean_a * mean_b,
    )


def ssim(a: np.ndarray, b: np.ndarray, peak: float = 1.0, window: int = 11, sigma: float | None = 1.5) -> float:
    """SSIM of two (h, w, c) images.

    >>> x = np.linspace(0, 1, 300).reshape(10, 10, 3)
    >>> ssim(x, x, window=7), round(ssim(x, x[::-1], window=7), 3) < 1
    (1.0, True)
    """
    return moments(a, b, window, sigma).ssim(peak=peak)


def dssim(value: float) -> float:
    """(1 − SSIM)/2: 0 for equal images, at most 1.

    >>> dssim(1.0), dssim(0.0)
    (0.0, 0.5)
    """
    return (1 - value) / 2


def best_ssim(pair: Moments, start: float) -> float:
    """The largest SSIM over scales of `a` found by the MPI protocol's search ("test" mode).

    From the least-squares scale, steps of −2⁻², +2⁻², −2⁻³ … +2⁻¹⁰ are each repeated while SSIM grows and the scale stays
    in (0, 5). A coordinate search: it can stop in a local maximum, as the published one does.
    """
    scale, best = start, pair.ssim(start)
    for step in (sign * 2.0**-i for i in range(2, 11) for sign in (-1, 1)):
        while 0 < scale + step < 5 and (value := pair.ssim(scale + step)) > best:
            scale, best = scale + step, value
    return best


def _weights(window: int, sigma: float | None) -> np.ndarray:
    x = np.arange(window) - (window - 1) / 2
    weights = np.ones(window) if sigma is None else np.exp(-(x**2) / (2 * sigma**2))
    return weights / weights.sum()


def _filtered(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Separable filtering, only where the window is inside the image."""
    from scipy.ndimage import correlate1d

    low, high = (len(weights) - 1) // 2, len(weights) // 2
    for axis in (0, 1):
        x = correlate1d(x, weights, axis=axis, mode="nearest")
    h, w = x.shape[:2]
    # an even window is centred at len // 2, one pixel right of the middle
    return x[high : h - low, high : w - low]
