"""The β-VAE score: can the fixed factor be recognised from the mean difference of pairs of codes (Higgins et al. 2017)?

A point is a factor k and a batch of pairs of images; both images of a pair have the same value of k. Its feature is
mean |z − z'|, its class k. The score is the accuracy of logistic regression on further points (default L2 penalty, as in
disentanglement_lib). Pairs are drawn from the rows given, so that images are encoded once and any sample of a grid will do.
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, Sample, sample
from diorama.metrics.groups import Groups
from diorama.metrics.regression import Softmax

#: Points to fit on and to judge on, and pairs in a point.
TRAIN, TEST, BATCH = 10_000, 5_000, 64


def beta_vae_score(
    codes: np.ndarray,
    factors: np.ndarray,
    rng: np.random.Generator,
    rule: Rule = "varies",
    points: tuple[int, int] = (TRAIN, TEST),
) -> Measured:
    """The accuracy; per factor: the share of its points that are recognised; the matrix is the weights.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> beta_vae_score(g, g, np.random.default_rng(0), points=(300, 100)).value
    1.0
    """
    part = sample(codes, factors, rule)
    if part.empty or part.labels.shape[1] < 2:
        return part.nothing("beta_vae")
    (x, y), (x_test, y_test) = (_points(part, n, rng) for n in points)
    model = Softmax.fit(x, y, penalty=1.0)
    right = model.predict(x_test) == y_test
    per_factor = np.array([right[y_test == k].mean() for k in range(part.labels.shape[1])])
    return part.measured({"beta_vae": float(right.mean())}, model.weights, per_factor)


def _points(part: Sample, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features (count, latents) and the factor that is fixed in each; the factor of every point is drawn at random."""
    factors = part.labels.shape[1]
    shares = np.maximum(rng.multinomial(count, np.full(factors, 1 / factors)), 1)
    features = []
    for k, n in enumerate(shares):
        one, other = Groups.of(part.labels[:, k]).pairs(int(n), BATCH, rng)
        features.append(np.abs(part.codes[one] - part.codes[other]).mean(axis=1))
    return np.concatenate(features), np.repeat(np.arange(factors), shares)
