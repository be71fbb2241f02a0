"""The FactorVAE score: the latent that varies least while a factor is fixed should name that factor (Kim & Mnih 2018).

A point is a factor k and a batch of images with the same value of k; the latent with the least variance relative to its
variance over all rows gets a vote for k. Each latent predicts the factor it has most votes for; the score is the accuracy
on further points. Latents with a standard deviation below 0.05 do not vote in the released setting (rule `scale`).
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, Sample, sample
from diorama.metrics.groups import Groups

#: Points to vote and to judge on, and images in a point.
TRAIN, TEST, BATCH = 10_000, 5_000, 64


def factor_vae_score(
    codes: np.ndarray,
    factors: np.ndarray,
    rng: np.random.Generator,
    rule: Rule = "scale",
    points: tuple[int, int] = (TRAIN, TEST),
) -> Measured:
    """The accuracy; the matrix holds the shares of votes; per factor: the share of its points that are recognised.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> factor_vae_score(g, g, np.random.default_rng(0), points=(300, 100)).value
    1.0
    """
    part = sample(codes, factors, rule)
    if part.empty or part.labels.shape[1] < 2:
        return part.nothing("factor_vae")
    votes, judged = (_votes(part, n, rng) for n in points)
    predicted = votes.argmax(axis=1)
    right = np.array([judged[predicted == k, k].sum() for k in range(votes.shape[1])])
    value = float(right.sum() / judged.sum())
    return part.measured({"factor_vae": value}, votes / votes.sum(), right / judged.sum(axis=0))


def _votes(part: Sample, count: int, rng: np.random.Generator) -> np.ndarray:
    """How often each latent varied least while each factor was fixed, (latents, factors)."""
    factors, total = part.labels.shape[1], part.codes.var(axis=0, ddof=1)
    shares = np.maximum(rng.multinomial(count, np.full(factors, 1 / factors)), 1)
    votes = np.zeros((part.codes.shape[1], factors))
    for k, n in enumerate(shares):
        rows = Groups.of(part.labels[:, k]).draw(int(n), BATCH, rng)
        least = (part.codes[rows].var(axis=1, ddof=1) / total).argmin(axis=1)
        votes[:, k] = np.bincount(least, minlength=len(votes))
    return votes
