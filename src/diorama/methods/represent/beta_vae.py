"""A β-VAE (β = 4, ten latents) trained on sprites, bundled; `diorama train beta_vae` makes it again."""

from dataclasses import dataclass

from diorama.io.zoo import checkpoint_path
from diorama.methods.represent.burgess_vae import BurgessVae


@dataclass(frozen=True)
class BetaVae(BurgessVae):
    """`burgess_vae` with the bundled weights, unless `checkpoint` names others. The card beside them says how they were
    made.
    """

    cite = ("higgins2017", "burgess2018")

    def __post_init__(self) -> None:
        object.__setattr__(self, "checkpoint", str(checkpoint_path(self.checkpoint, "beta_vae")))
