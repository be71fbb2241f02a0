"""β-VAE with ten latents; `diorama train beta_vae` learns one of your own."""

from dataclasses import dataclass
from typing import ClassVar

from diorama.methods.represent.learners.trained import TrainedVae


@dataclass(frozen=True)
class BetaVae(TrainedVae):
    """The VAE of Burgess et al. in which the KL has weight β."""

    cite = ("higgins2017", "burgess2018")
    learner: ClassVar[str] = "beta_vae"
