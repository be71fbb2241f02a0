"""FactorVAE, ten latents, bundled; `diorama train factor_vae` makes it again."""

from dataclasses import dataclass
from typing import ClassVar

from diorama.methods.represent.learners.trained import TrainedVae


@dataclass(frozen=True)
class FactorVae(TrainedVae):
    """The VAE of Burgess et al. in which a critic estimates the total correlation of the code."""

    cite = ("kim2018", "burgess2018")
    learner: ClassVar[str] = "factor_vae"
