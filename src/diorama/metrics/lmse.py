"""Local mean squared error, scale-invariant in each window (Grosse et al. 2009, Eq. 9; the released code's details).

Windows of k×k pixels start at 0, step, 2·step, … while they are fully inside the image, so that a remainder at the right
and bottom is never visited. In each window, over masked pixels, α = Σ c·e / Σ e² brings the estimate e to the scale of
the truth c; the error is Σ (c − α·e)² = Σ c² − (Σ c·e)² / Σ e². Errors and energies Σ c² are summed over all windows:

    LMSE = Σ_windows Σ (c − α·e)²  /  Σ_windows Σ c²

0 means equal up to one scale per window; an estimate of zeros (α = 0) scores 1. The released code sets α = 0 wherever
Σ e² ≤ 1e-5 in its units of 1/255, which makes the score depend on the estimate's scale; here only where Σ e² = 0. On the
MIT data no score differs.
"""

from dataclasses import dataclass
from math import gcd

import numpy as np


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of an image size, as sums over blocks of gcd(k, step) pixels: exact, with no cancellation."""

    height: int
    width: int
    k: int = 20
    step: int = 10

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of (h, w) values in every window, as (rows, columns).

        >>> Windows(4, 6, k=4, step=2).sums(np.ones((4, 6)))
        array([[16., 16.]])
        """
        block = gcd(self.k, self.step)
        rows, columns = self.height // block, self.width // block
        blocks = values[: rows * block, : columns * block].reshape(rows, block, columns, block)
        blocks = np.einsum("ribj->rb", blocks)
        for axis in (0, 1):
            blocks = _sliding(blocks, self.k // block, self.step // block, axis)
        return blocks


def _sliding(values: np.ndarray, length: int, step: int, axis: int) -> np.ndarray:
    if values.shape[axis] < length:
        return np.zeros([0 if i == axis else n for i, n in enumerate(values.shape)])
    windows = np.lib.stride_tricks.sliding_window_view(values, length, axis=axis).sum(axis=-1)
    return windows.take(np.arange(0, windows.shape[axis], step), axis=axis)


def lmse(truth: np.ndarray, estimate: np.ndarray, mask: np.ndarray, k: int = 20, step: int = 10) -> float:
    """LMSE of one (h, w) layer over the mask; NaN where the truth has no energy in any window.

    >>> x = np.arange(1.0, 401.0).reshape(20, 20)
    >>> lmse(x, 3 * x, np.ones((20, 20), bool)), lmse(x, 0 * x, np.ones((20, 20), bool))
    (0.0, 1.0)
    """
    windows = Windows(truth.shape[0], truth.shape[1], k, step)
    c = np.where(mask, truth, 0).astype(np.float64)
    e = np.where(mask, estimate, 0).astype(np.float64)
    cc, ce, ee = windows.sums(c * c), windows.sums(c * e), windows.sums(e * e)
    alpha = np.divide(ce, ee, out=np.zeros_like(ee), where=ee > 0)
    error = cc - alpha * ce
    energy = cc.sum()
    return float(np.maximum(error, 0).sum() / energy) if energy > 0 else float("nan")


def si_mse(truth: np.ndarray, estimate: np.ndarray) -> float:
    """Scale-invariant squared error relative to the truth's energy: min over α of ‖c − α·e‖² / ‖c‖².

    >>> si_mse(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    0.0
    """
    c, e = np.ravel(truth).astype(np.float64), np.ravel(estimate).astype(np.float64)
    ee, cc = e @ e, c @ c
    alpha = (c @ e) / ee if ee > 0 else 0.0
    difference = c - alpha * e
    return float(difference @ difference / cc) if cc > 0 else float("nan")
