"""β-TCVAE (Chen et al. 2018): reconstruction + KL + (β − 1)·TC, the total correlation estimated on the batch.

    TC = KL(q(z) ‖ Π_l q(z_l)) = E_q(z)[log q(z) − Σ_l log q(z_l)]

    log q(z_i) ≈ log Σ_j w_ij q(z_i | x_j)          for the joint and for each latent alone, over a batch of B images

The KL is that of β-VAE; its two other parts, mutual information and the KL of each latent, keep the weight 1 (α = γ = 1 in
the paper), as in disentanglement_lib.

    weighted    w_ij = 1/B. The paper has 1/(N·B) with N images in all: that adds (latents − 1)·log N to TC, a constant
                without gradient; with 1/B the value reads as the total correlation of the batch's own mixture.
    stratified  M = B − 1: w_ii = 1/N, one other of each row (N − M)/(N·M), the rest 1/M: an unbiased estimate of q(z).
                The released code gives 1/N to the first column where the formula has the diagonal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from diorama.training.objectives.objective import Objective, Passed, kl, log_densities

Estimate = Literal["weighted", "stratified"]


@dataclass(frozen=True, slots=True)
class BetaTcvae(Objective):
    """KL + (β − 1)·TC.

    beta      β, the weight of the total correlation; the paper has 6, the CANDLE experiments 10
    estimate  how q(z) is estimated: weighted or stratified
    """

    beta: float = 6.0
    estimate: Estimate = "weighted"

    def penalty(self, seen: Passed, count: int) -> Tensor:
        """KL + (β − 1)·TC."""
        return seen.grown * (kl(seen) + (self.beta - 1) * total_correlation(seen, count, self.estimate))


def total_correlation(seen: Passed, count: int, estimate: Estimate) -> Tensor:
    """TC of the batch, drawn from `count` images."""
    each = log_densities(seen.z, seen.mean, seen.log_variance)
    weights = log_weights(len(seen.z), count, estimate).to(each)
    joint = torch.logsumexp(weights + each.sum(2), dim=1)
    alone = torch.logsumexp(weights[:, :, None] + each, dim=1).sum(1)
    return (joint - alone).mean()


def log_weights(batch: int, count: int, estimate: Estimate) -> Tensor:
    """log w (batch, batch): the log weight of image j in the estimate of the density of code i.

    >>> log_weights(3, 10, "stratified").exp().sum(1).round(decimals=6).tolist()
    [1.0, 1.0, 1.0]
    """
    if estimate == "weighted" or batch < 2:
        return torch.full((batch, batch), -math.log(batch))
    others = batch - 1
    weights = torch.full((batch, batch), 1 / others)
    rows = torch.arange(batch)
    weights[rows, (rows + 1) % batch] = max(count - others, 0) / (count * others)
    weights[rows, rows] = 1 / count
    return torch.log(weights)
