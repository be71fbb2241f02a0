"""LRP for transformers: attention weights are constants, normalisation passes relevance on, ε everywhere else."""

from dataclasses import dataclass
from typing import Any, Literal

from diorama.methods.explain.lrp import Lrp


@dataclass(frozen=True, slots=True)
class LrpAttention(Lrp):
    """`lrp` with settings for transformers; the rules are ours, after Ali et al. (2022) and Achtibat et al. (2024).

    In a block's A·v the values get all relevance, the map A none; layer norm and GELU pass it on unchanged; skip connections
    divide it by the size of their branches; linear layers follow the ε rule with a signed stabiliser, the convolution of
    patches the γ rule. Without biases and with epsilon=0 relevance is conserved.
    """

    example = "diorama run -w birds -M birds_vit -m {} -p single_deletion"
    cite = ("bach2015", "ali2022", "achtibat2024")

    first: Literal["box", "flat", "w_square", "same"] = "same"
    conv: Literal["alpha1_beta0", "alpha2_beta1", "gamma", "epsilon"] = "gamma"
    stabiliser: Literal["published", "signed"] = "signed"

    def refuses(self, model: Any) -> str:
        """Why a network without attention is refused; empty for others."""
        from diorama.methods.explain.attention import lacks_attention

        return lacks_attention(model, "lrp_attention")
