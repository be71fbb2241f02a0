"""DIP-VAE, ten latents, bundled; `diorama train dip_vae` makes it again."""

from dataclasses import dataclass
from typing import ClassVar

from diorama.methods.represent.learners.trained import TrainedVae


@dataclass(frozen=True)
class DipVae(TrainedVae):
    """The VAE of Burgess et al. in which codes are pulled towards no correlation and unit variance."""

    cite = ("kumar2018", "burgess2018")
    learner: ClassVar[str] = "dip_vae"
