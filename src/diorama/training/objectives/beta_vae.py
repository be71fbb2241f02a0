"""β-VAE (Higgins et al. 2017): reconstruction + β·KL.

L = E_q[−log p(x|z)] + β·KL(q(z|x) ‖ N(0, 1))
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from diorama.training.objectives.objective import Objective, Passed, kl


@dataclass(frozen=True, slots=True)
class BetaVae(Objective):
    """β·KL.

    beta  β, the weight of the KL; 1 is the plain VAE, the CANDLE experiments have 10, the first paper 4
    """

    beta: float = 4.0

    def penalty(self, seen: Passed, count: int) -> Tensor:
        """β·KL."""
        return seen.grown * self.beta * kl(seen)
