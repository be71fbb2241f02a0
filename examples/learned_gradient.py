"""A method that is fitted: a gradient is reflectance where a logistic model of its strength and chroma says so.
=============================================================================================================

Run it with two-fold fitting:  diorama run -w mondrian -m examples/learned_gradient.py:LearnedGradient -p lmse -n 8
"""

from dataclasses import dataclass, replace

import numpy as np

from diorama.methods.decompose.gradients import channels, only, reconstruct
from diorama.solvers.poisson import poisson


@dataclass(frozen=True)
class LearnedGradient:
    """`fit` learns four weights from the true layers of the other fold; `fitted` returns the method that uses them."""

    steps: int = 50
    weights: tuple[float, ...] = ()

    def fit(self, examples, objective):
        features, labels = zip(*(_training(frames[0]) for frames in examples), strict=True)
        x, y = np.concatenate(features), np.concatenate(labels)
        w = np.zeros(x.shape[1])
        for _ in range(self.steps):  # Newton's method for logistic regression with a little ridge
            p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
            hessian = (x * (p * (1 - p))[:, None]).T @ x + 1e-3 * np.eye(len(w))
            w += np.linalg.solve(hessian, x.T @ (y - p) - 1e-3 * w)
        return {"weights": w}

    def fitted(self, fit):
        return replace(self, weights=tuple(fit["weights"].tolist()))

    def decompose(self, frames):
        frame = frames[0]
        image = channels(frame).mean(axis=2)
        gradient = poisson(frame.mask).edges.differences(np.log(image))[:, None]
        kept = (_features(frame) @ np.array(self.weights) > 0)[:, None]
        return only(reconstruct(frame.mask, image, np.where(kept, gradient, 0)))


def _features(frame):
    change = poisson(frame.mask).edges.differences(np.log(channels(frame)))
    mean = change.mean(axis=1)
    chroma = np.linalg.norm(change - mean[:, None], axis=1)
    return np.stack([np.ones_like(mean), np.abs(mean), chroma, np.sqrt(np.abs(mean) * chroma)], axis=1)


def _training(frame):
    edges = poisson(frame.mask).edges
    r, s = (np.abs(edges.differences(np.log(frame.truth[n].mean(axis=2) + 1e-6))) for n in ("reflectance", "shading"))
    return _features(frame), (r > s).astype(float)
