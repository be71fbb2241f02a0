"""β-TCVAE, ten latents, bundled; `diorama train beta_tcvae` makes it again."""

from dataclasses import dataclass
from typing import ClassVar

from diorama.methods.represent.learners.trained import TrainedVae


@dataclass(frozen=True)
class BetaTcvae(TrainedVae):
    """The VAE of Burgess et al. in which the total correlation of the code has weight β."""

    cite = ("chen2018", "burgess2018")
    learner: ClassVar[str] = "beta_tcvae"
