"""DIP-VAE (Kumar et al. 2018): reconstruction + KL + a penalty that makes codes uncorrelated with variance one.

    I    C = Cov(μ)                    of the means of a batch
    II   C = Cov(μ) + mean of diag(σ²)  of the sampled codes

    L = … + λ_od·Σ_{i≠j} C_ij² + λ_d·Σ_i (C_ii − 1)²        λ_d = factor·λ_od

Covariances divide by the number of images, as disentanglement_lib does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from diorama.training.objectives.objective import Objective, Passed, kl


@dataclass(frozen=True, slots=True)
class DipVae(Objective):
    """KL + λ_od·(covariances) + λ_d·(variances).

    kind    i or ii: covariance of the means, or of the codes
    off     λ_od, the weight of covariances; the CANDLE experiments have 10
    factor  λ_d / λ_od; None for 10 with kind i and 1 with ii, as the large study of Locatello et al. 2019 has
    """

    kind: Literal["i", "ii"] = "i"
    off: float = 10.0
    factor: float | None = None

    def penalty(self, seen: Passed, count: int) -> Tensor:
        """KL and the penalty of the covariance matrix."""
        covariance = covariance_of(seen.mean)
        if self.kind == "ii":
            covariance = covariance + torch.diag(seen.log_variance.exp().mean(0))
        diagonal = torch.diagonal(covariance)
        crossed = covariance.square().sum() - diagonal.square().sum()
        factor = self.factor if self.factor is not None else 10.0 if self.kind == "i" else 1.0
        return seen.grown * (kl(seen) + self.off * (crossed + factor * (diagonal - 1).square().sum()))


def covariance_of(mean: Tensor) -> Tensor:
    """(latents, latents) over the rows."""
    centred = mean - mean.mean(0)
    return centred.T @ centred / len(mean)
