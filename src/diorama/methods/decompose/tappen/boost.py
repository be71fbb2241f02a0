"""AdaBoost of stumps: a weighted vote of thresholds on single features (Freund and Schapire 1997), on a quantile grid.

F(x) = Σ_t α_t·s_t·sign(x[f_t] > θ_t). In each round the stump with the smallest weighted error ε is added with
α = ½ log((1 − ε)/ε), and samples are reweighted by exp(−α·y·h(x)). Thresholds are tried at the quantiles of each feature,
so that a round is one weighted histogram. 2F is the log-odds of the label (Friedman, Hastie and Tibshirani 2000).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Stumps:
    """A boosted classifier: for every stump the feature, the threshold and the signed vote."""

    feature: np.ndarray
    threshold: np.ndarray
    vote: np.ndarray

    def margin(self, x: np.ndarray) -> np.ndarray:
        """F(x) of the rows of x (n, features).

        >>> Stumps(np.array([0]), np.array([1.0]), np.array([0.5])).margin(np.array([[0.0], [2.0]]))
        array([-0.5,  0.5])
        """
        total = np.zeros(len(x))
        for f, t, v in zip(self.feature, self.threshold, self.vote, strict=True):
            total += np.where(x[:, f] > t, v, -v)
        return total


def boost(x: np.ndarray, y: np.ndarray, weights: np.ndarray, rounds: int, bins: int = 64) -> Stumps:
    """Boost `rounds` stumps on rows x (n, features) with labels y (n,) bool and initial weights; stops at ε = 0 or ½.

    >>> x = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    >>> found = boost(x, x[:, 0] > 1, np.ones(4), rounds=3)
    >>> found.feature.tolist(), (found.margin(x) > 0).tolist()
    ([0], [False, False, True, True])
    """
    cuts = np.quantile(x, np.arange(bins) / bins, axis=0, method="lower")  # (bins, features)
    below = np.stack([np.searchsorted(cuts[:, f], x[:, f], side="left") for f in range(x.shape[1])], axis=1)
    cell = below + np.arange(x.shape[1]) * (bins + 1)
    sign, w, chosen = np.where(y, 1.0, -1.0), weights / weights.sum(), []
    for _ in range(rounds):
        f, cut, error = _best(cell, sign * w, bins)
        e = np.clip(min(error, 1 - error), 1e-9, 0.5)
        vote = (0.5 if error <= 0.5 else -0.5) * np.log((1 - e) / e)
        if e > 0.5 - 1e-6:
            break
        chosen.append((f, cuts[cut, f], vote))
        if e <= 1e-9:
            break
        w = w * np.exp(-sign * np.where(x[:, f] > cuts[cut, f], vote, -vote))
        w /= w.sum()
    feature, threshold, vote = zip(*chosen, strict=True) if chosen else ((), (), ())
    return Stumps(np.array(feature, np.int64), np.array(threshold, np.float64), np.array(vote, np.float64))


def _best(cell: np.ndarray, signed: np.ndarray, bins: int) -> tuple[int, int, float]:
    """The feature, the cut and the error of "above the cut is positive" that is farthest from one half."""
    features = cell.shape[1]
    total = np.bincount(cell.ravel(), np.repeat(signed, features), features * (bins + 1)).reshape(features, bins + 1)
    above = total[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]  # signed weight with x > cut: cells beyond the cut's own
    agreement = 2 * above - signed.sum()  # Σ w·y·sign(x > cut) = 1 − 2·error
    f, cut = np.unravel_index(np.abs(agreement).argmax(), agreement.shape)
    return int(f), int(cut), float((1 - agreement[f, cut]) / 2)
