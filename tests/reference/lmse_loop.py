"""LMSE window by window, shaped like the paper's Eq. 9 and the released code; slow on purpose."""

import numpy as np


def lmse_loop(truth: np.ndarray, estimate: np.ndarray, mask: np.ndarray, k: int = 20, step: int = 10) -> float:
    height, width = truth.shape
    error = energy = 0.0
    for y in range(0, height - k + 1, step):
        for x in range(0, width - k + 1, step):
            inside = mask[y : y + k, x : x + k]
            c = truth[y : y + k, x : x + k][inside]
            e = estimate[y : y + k, x : x + k][inside]
            alpha = (c * e).sum() / (e * e).sum() if (e * e).sum() > 0 else 0.0
            error += ((c - alpha * e) ** 2).sum()
            energy += (c * c).sum()
    return error / energy if energy > 0 else float("nan")
