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
from itertools import product
from math import gcd

import numpy as np


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of an image size, as sums over blocks of gcd(k, step) pixels: exact, with no cancellation."""

    height: int
    width: int
    k: int = 20
    step: int = 10

    def sums(self, a: np.ndarray, b: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """The sum of a·b over the masked pixels of every window, as (rows, columns).

        >>> Windows(4, 6, k=4, step=2).sums(np.ones((4, 6)), np.ones((4, 6)), np.ones((4, 6), bool))
        array([[16., 16.]])
        """
        block = gcd(self.k, self.step)
        rows, columns = self.height // block, self.width // block
        a, b, mask = (x[: rows * block].reshape(rows, block, self.width) for x in (a, b, mask))
        # along the rows first, which is contiguous; without a temporary image, whose memory pages cost more than the sum
        bands = np.einsum("rbw,rbw,rbw->rw", a, b, mask, dtype=np.float64)
        blocks = bands[:, : columns * block].reshape(rows, columns, block).sum(axis=2)
        length, step = self.k // block, self.step // block
        return _sliding(_sliding(blocks, length, step).T, length, step).T


def _sliding(values: np.ndarray, length: int, step: int) -> np.ndarray:
    """Sums of `length` consecutive rows, starting at every `step`-th."""
    count = max(0, (len(values) - length) // step + 1)
    total = np.zeros((count, values.shape[1]))
    for i in range(length):
        total += values[i : i + count * step : step][:count]
    return total


def lmse(truth: np.ndarray, estimate: np.ndarray, mask: np.ndarray, k: int = 20, step: int = 10) -> float:
    """LMSE of one (h, w) layer over the mask; NaN where the truth has no energy in any window.

    >>> x = np.arange(1.0, 401.0).reshape(20, 20)
    >>> lmse(x, 3 * x, np.ones((20, 20), bool)), lmse(x, 0 * x, np.ones((20, 20), bool))
    (0.0, 1.0)
    """
    error, energy = _errors(truth, estimate, mask, k, step)
    return error / energy if energy > 0 else float("nan")


def _errors(c: np.ndarray, e: np.ndarray, mask: np.ndarray, k: int, step: int) -> tuple[float, float]:
    """The error and the energy, each summed over all windows."""
    windows = Windows(c.shape[0], c.shape[1], k, step)
    cc, ce, ee = (windows.sums(a, b, mask) for a, b in ((c, c), (c, e), (e, e)))
    alpha = np.divide(ce, ee, out=np.zeros_like(ee), where=ee > 0)
    return float(np.maximum(cc - alpha * ce, 0).sum()), float(cc.sum())


def lmse_barron(truth: np.ndarray, estimate: np.ndarray, mask: np.ndarray, k: int = 20) -> float:
    """LMSE as in Barron & Malik's released `MIT_mse` (Barron & Malik 2015): the same formula, other windows.

    Four tilings of k×k windows, zero-padded so that the remainder counts, shifted by 0 or k/2 − 1 in each direction (9 for
    k = 20, since MATLAB counts from one); α = 0 where the estimate is zero. Papers report geometric means of it.

    >>> x = np.arange(1.0, 626.0).reshape(25, 25)
    >>> lmse_barron(x, 2 * x, np.ones((25, 25), bool))
    0.0
    """
    c, e = (np.where(mask, x, 0.0).astype(np.float64, copy=False) for x in (truth, estimate))
    offsets = (0, max(k // 2 - 1, 0))
    tilings = [(_padded(c[y:, x:], k), _padded(e[y:, x:], k)) for y in offsets for x in offsets]
    sums = [_errors(a, b, np.ones(a.shape, bool), k, k) for a, b in tilings]
    energy = sum(s[1] for s in sums)
    return float(sum(s[0] for s in sums) / energy) if energy > 0 else float("nan")


def _padded(x: np.ndarray, k: int) -> np.ndarray:
    return np.pad(x, ((0, -x.shape[0] % k), (0, -x.shape[1] % k)))


def lmse_fan(truth: np.ndarray, estimate: np.ndarray, k: int | None = None) -> float:
    """LMSE as in the MPI protocol (Narihira et al. 2015; Fan et al. 2018): the mean over windows of their si-MSE.

    Layers are (h, w) or (h, w, channels). Windows of 10 % of the longest side (or k), every half window, cut off at the
    right and bottom border; in each, one α for all channels and the mean of (c − min(α·e, 1))². Nothing divides by the
    truth's energy and there is no mask, so that the value follows the truth's scale and the share of background; a window
    without any estimate has α = 0 (the released code has NaN there).

    >>> x = np.linspace(0.1, 1, 400).reshape(20, 20)
    >>> round(lmse_fan(x, 5 * x), 12)
    0.0
    """
    h, w = truth.shape[:2]
    k = k or max(_half_up(0.1 * max(h, w)), 1)
    step = max(_half_up(k / 2), 1)
    corners = product(range(0, max(h - step, 1), step), range(0, max(w - step, 1), step))
    return float(
        np.mean([_clipped_si_mse(truth[y : y + k, x : x + k], estimate[y : y + k, x : x + k]) for y, x in corners])
    )


def _clipped_si_mse(truth: np.ndarray, estimate: np.ndarray) -> float:
    c, e = truth.astype(np.float64).ravel(), estimate.astype(np.float64).ravel()
    ee = e @ e
    difference = c - np.minimum(e * ((c @ e) / ee if ee > 0 else 0.0), 1)
    return float(difference @ difference / len(c))


def _half_up(x: float) -> int:
    """Round as MATLAB does: Python's round(2.5) is 2."""
    return int(x + 0.5)
