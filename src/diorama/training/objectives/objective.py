"""What all objectives get of a batch, and what they must compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from diorama.methods.represent.burgess_network import divergence

LOG_TWO_PI = 1.8378770664093453


class Passed(NamedTuple):
    """A learner's forward pass: images x, logits of the reconstruction, q(z|x) = N(mean, σ²), the sampled z.

    `labelled` are the means of the images whose labels may be used (none: 0 rows). `judged` are the critic's logits, if the
    objective has one: of z with the critic's weights detached, of z detached, of z detached and permuted. `grown` is the
    share of its full weight that the penalty has at this step; it is below 1 only in a training with `anneal`.
    """

    x: Tensor
    logits: Tensor
    mean: Tensor
    log_variance: Tensor
    z: Tensor
    labelled: Tensor
    judged: Tensor
    grown: Tensor = torch.ones(())

    def float(self) -> Passed:
        """All in float32."""
        return Passed(*(part.float() for part in self))


@dataclass(frozen=True, slots=True)
class Objective(ABC):
    """What is added to the reconstruction: `penalty` of a batch, a mean over its images."""

    @abstractmethod
    def penalty(self, seen: Passed, count: int) -> Tensor:
        """The penalty of a batch drawn from `count` images."""

    def critic(self, latents: int) -> nn.Module | None:
        """A network that learns in the same steps to judge codes, where the objective needs one."""
        return None


def kl(seen: Passed) -> Tensor:
    """The mean over the batch of KL(q(z|x) ‖ N(0, 1))."""
    return divergence(seen.mean, seen.log_variance).mean()


def log_densities(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """log q(z_i,l | x_j) of every code i under every image j: (i, j, latents)."""
    squares = (z[:, None] - mean[None]) ** 2 * torch.exp(-log_variance)[None]
    return -0.5 * (squares + log_variance[None] + LOG_TWO_PI)
