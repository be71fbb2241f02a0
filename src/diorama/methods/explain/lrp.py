"""Layer-wise relevance propagation: the logit handed down layer by layer, each input taking its share (zennit)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError
from diorama.core.explaining import module_of, need, tensors
from diorama.methods.explain._gradients import Channels, as_answers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Lrp(Explainer):
    """Relevance of every input value; the defaults are those of the Attribution Confusion Matrix. Signed, per channel.

    `first` is the rule of the first layer: z^B with the image's own least and greatest value (box), flat, w_square, or
    the `same` as elsewhere. `conv` is that of the other convolutions, α1β0 as published. Linear layers follow the ε rule
    with the denominator z + ε·rms(z), as published, or z + ε·sign(z)·rms(z) (`stabiliser=signed`), rms over the layer's
    outputs. Biases take no relevance; batch norms are merged into the convolution before them; sums of two branches share
    it in proportion. Propagation starts at the target's logit, with its sign, or at one.

    `lrp(first=flat, epsilon=1e-6, stabiliser=signed)` is zennit's EpsilonPlusFlat, and conserves relevance.
    """

    gradients = True
    cite = ("bach2015", "montavon2017", "ariasduart2023", "anders2021")

    first: Literal["box", "flat", "w_square", "same"] = "box"
    conv: Literal["alpha1_beta0", "alpha2_beta1", "gamma", "epsilon"] = "alpha1_beta0"
    epsilon: float = 0.25
    stabiliser: Literal["published", "signed"] = "published"
    start: Literal["logit", "one"] = "logit"
    channels: Channels = "keep"

    def __post_init__(self) -> None:
        need("torch", "lrp", "torch")
        need("zennit", "lrp", "lrp")
        if self.epsilon < 0:
            raise InputError(f"lrp: epsilon={self.epsilon}: 0 or more")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        from diorama.methods.explain._relevance import composite, relevance

        x, target = tensors(model, images, targets)
        rules = composite(self.first, self.conv, self._stable)
        return as_answers(
            relevance(module_of(model), rules, x, lambda logits: self._start(logits, target)), self.channels, False
        )

    def _start(self, logits: "Tensor", target: "Tensor") -> "Tensor":
        import torch

        onehot = torch.zeros_like(logits).scatter_(1, target[:, None], 1.0)
        return onehot if self.start == "one" else onehot * logits

    def _stable(self, z: "Tensor") -> "Tensor":
        """The denominator of the ε rule."""
        size = self.epsilon * z.square().mean(dim=tuple(range(1, z.ndim)), keepdim=True).sqrt()
        if self.stabiliser == "signed":
            size = size * (2 * (z >= 0).to(z.dtype) - 1)
        return z + size + 1e-9
