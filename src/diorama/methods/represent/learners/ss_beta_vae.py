"""β-VAE trained with the labels of a tenth of its images, bundled; `diorama train ss_beta_vae` makes it again."""

from dataclasses import dataclass
from typing import ClassVar

from diorama.methods.represent.learners.trained import TrainedVae


@dataclass(frozen=True)
class SsBetaVae(TrainedVae):
    """β-VAE whose first latents are trained to predict the factors of a tenth of the images."""

    cite = ("higgins2017", "burgess2018", "locatello2020")
    learner: ClassVar[str] = "ss_beta_vae"
