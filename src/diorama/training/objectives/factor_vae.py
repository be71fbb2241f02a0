"""FactorVAE (Kim and Mnih 2018): reconstruction + KL + γ·TC, the total correlation estimated by a critic.

    L = … + KL + γ·mean(d_0(z) − d_1(z))            d: the critic's two logits, 0 "from q(z)", 1 "permuted"
    critic: −½·mean log softmax(d(z))_0 − ½·mean log softmax(d(z'))_1

z' are the codes of the same batch with each latent permuted over the images independently; at the optimum of the critic
d_0 − d_1 = log q(z) / Π q(z_l). Both learn in the same step: the critic's weights are detached in the learner's loss, the
codes are detached in the critic's. The critic has six layers of 1000 leaky rectifiers and its own momenta (0.5, 0.9).
disentanglement_lib clips the critic's probabilities to [1e-6, 1 − 1e-6]; here the softmax is taken in logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from diorama.training.objectives.objective import Objective, Passed, kl

DEPTH = 6


@dataclass(frozen=True, slots=True)
class FactorVae(Objective):
    """KL + γ·TC.

    gamma  γ, the weight of the total correlation; the CANDLE experiments have 4, the paper up to 40
    width  units in each of the critic's six layers; the paper has 1000
    """

    gamma: float = 4.0
    width: int = 1000

    def critic(self, latents: int) -> nn.Module:
        """Six layers, then two logits."""
        sides = [latents, *[self.width] * DEPTH]
        layers = [[nn.Linear(a, b), nn.LeakyReLU(0.2)] for a, b in pairwise(sides)]
        return nn.Sequential(*(layer for pair in layers for layer in pair), nn.Linear(self.width, 2))

    def penalty(self, seen: Passed, count: int) -> Tensor:
        """KL, γ·TC, and the critic's own loss."""
        for_learner, own, permuted = seen.judged
        critic = -0.5 * (own.log_softmax(1)[:, 0].mean() + permuted.log_softmax(1)[:, 1].mean())
        return seen.grown * (kl(seen) + self.gamma * (for_learner[:, 0] - for_learner[:, 1]).mean()) + critic


def judged(critic: nn.Module, z: Tensor, order: Tensor) -> Tensor:
    """The critic's logits (3, n, 2): of z with the critic's weights detached, of z detached, and of z detached and permuted.

    `order` (n, latents) is the image from which each latent of a permuted code comes.
    """
    fixed = {name: weight.detach() for name, weight in critic.named_parameters()}
    code = z.detach()
    both = critic(torch.cat([code, code.gather(0, order)]))
    return torch.stack([torch.func.functional_call(critic, fixed, (z,)), *both.chunk(2)])
