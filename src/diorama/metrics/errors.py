"""Squared errors of layers: MSE, scale-invariant MSE with one or three scales, PSNR.

α = ⟨e, c⟩/⟨e, e⟩ over the mask scales the estimate e to the truth c. Papers often do not say the following, although it
changes the value: one α for all channels or one each; α·e clipped at 1 (Fan et al. 2018); the sum divided by the masked
pixels or by all (which gives about a third on MIT Intrinsic Images); the units of the truth, here 0 to 1.
"""

import numpy as np

#: PSNR of equal images is infinite; it is cut here so that means exist.
PSNR_CAP = 100.0


def scale(truth: np.ndarray, estimate: np.ndarray, mask: np.ndarray, per_channel: bool = False) -> np.ndarray:
    """α = ⟨e, c⟩/⟨e, e⟩ over the mask of (h, w, c) layers: one number, or one per channel; 0 where e is zero.

    >>> scale(np.ones((1, 2, 3)), np.full((1, 2, 3), 4.0), np.ones((1, 2), bool))
    array(0.25)
    """
    c, e = truth[mask].astype(np.float64), estimate[mask].astype(np.float64)
    axis = 0 if per_channel else None
    ee = np.asarray((e * e).sum(axis=axis))
    return np.divide((c * e).sum(axis=axis), ee, out=np.zeros_like(ee), where=ee > 0)


def mse(truth: np.ndarray, estimate: np.ndarray, mask: np.ndarray, whole: bool = False) -> float:
    """Mean of (c − e)² over the mask, or the masked sum over all pixels of the image (`whole`).

    >>> m = np.array([[True, False]])
    >>> c, e = np.array([[[2.0], [9.0]]]), np.zeros((1, 2, 1))
    >>> mse(c, e, m), mse(c, e, m, whole=True)
    (4.0, 2.0)
    """
    difference = truth[mask].astype(np.float64) - estimate[mask]
    count = mask.size * truth.shape[2] if whole else difference.size
    return float((difference**2).sum() / count) if count else float("nan")


def si_mse(
    truth: np.ndarray,
    estimate: np.ndarray,
    mask: np.ndarray,
    per_channel: bool = False,
    clip: bool = False,
    whole: bool = False,
) -> float:
    """MSE after α: mean of (c − α·e)², α·e clipped at 1 where `clip`.

    >>> c = np.array([[[0.2], [0.4]]])
    >>> si_mse(c, 3 * c, np.ones((1, 2), bool)) < 1e-30
    True
    """
    scaled = estimate * scale(truth, estimate, mask, per_channel)
    return mse(truth, np.minimum(scaled, 1) if clip else scaled, mask, whole)


def psnr(truth: np.ndarray, estimate: np.ndarray, mask: np.ndarray, peak: float = 1.0) -> float:
    """10·log10(peak²/MSE) over the mask, in dB, at most `PSNR_CAP`.

    >>> m = np.ones((1, 1), bool)
    >>> round(psnr(np.array([[[0.5]]]), np.array([[[0.4]]]), m), 9), psnr(np.ones((1, 1, 1)), np.ones((1, 1, 1)), m)
    (20.0, 100.0)
    """
    error = mse(truth, estimate, mask)
    return float(min(10 * np.log10(peak**2 / max(error, 1e-300)), PSNR_CAP)) if error == error else error
