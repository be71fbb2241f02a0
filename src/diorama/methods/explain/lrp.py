"""Layer-wise relevance propagation: the logit is divided among a layer's inputs, layer by layer (zennit)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from diorama.adapt.explaining import module_of, need, tensors
from diorama.core.answers import Answer
from diorama.core.bounds import NotNegative
from diorama.core.contracts import Explainer
from diorama.methods.explain.gradients import Channels, as_answers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Lrp(Explainer):
    """Relevance of every input value; the defaults are the released code's of the Attribution Confusion Matrix. Signed.

    first       rule of the first layer: z^B with the image's own least and greatest value (box, as released), flat,
                w_square, or the same as elsewhere
    conv        rule of the other convolutions: α1β0 (as released), α2β1, γ (0.25) or ε
    batch_norm  released: of w·x + b the input takes the share |w·x| / (|w·x| + |b|), the shift b the rest. merged: into
                the convolution before it, as zennit and most other LRP code does; both are the same for networks without
                batch norm. zennit's merging drops the layer's eps, so logits shrink a little (2 % on EfficientNet-Lite0)
    epsilon     ε of the ε rule, in units of the root mean square of the layer's outputs z; .25 as released
    stabiliser  denominator of the ε rule in linear layers: z + ε·rms(z) (published) or z + ε·sign(z)·rms(z) (signed, which
                convolutions always have)
    start       propagation starts with the target's logit and its sign (as released), or with one
    channels    colour channels of the map: keep the three, their sum or their max

    Transformers: attention is taken as a constant that mixes values, normalisation of tokens and GELU pass relevance on
    unchanged, skip connections divide it by the size of their branches; `lrp_attention` has settings that suit them.

    Sums of two branches divide relevance in proportion. Biases get none in z^B, α1β0, α2β1 and linear layers, as released;
    in the γ and ε rules of convolutions they get their share, as in those rules' papers. Relevance is therefore not
    conserved: the share of a bias or a shift is lost. On a staged bird .7 of `birds_resnet`'s logit of 10.7 arrives (8.3
    with merged batch norms), of EfficientNet-Lite0's 11.6 only 4e-6 (.6). Compare pixels within a map, not sums of maps.

    The released code treats the positive contributions of negative inputs (after a layer without ReLU, which its own
    networks do not have) separately from those of positive inputs; here both have one denominator.
    `lrp(first=flat, epsilon=1e-6, stabiliser=signed, batch_norm=merged)` is zennit's EpsilonPlusFlat with biases zeroed.
    """

    gradients = True
    cite: ClassVar[tuple[str, ...]] = ("bach2015", "montavon2017", "ariasduart2023", "anders2021")

    first: Literal["box", "flat", "w_square", "same"] = "box"
    conv: Literal["alpha1_beta0", "alpha2_beta1", "gamma", "epsilon"] = "alpha1_beta0"
    batch_norm: Literal["released", "merged"] = "released"
    epsilon: NotNegative = 0.25
    stabiliser: Literal["published", "signed"] = "published"
    start: Literal["logit", "one"] = "logit"
    channels: Channels = "keep"

    def __post_init__(self) -> None:
        need("torch", "lrp", "torch")
        need("zennit", "lrp", "lrp")

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 3)."""
        from diorama.methods.explain.relevance import composite, relevance

        x, target = tensors(model, images, targets)
        linear = self._signed if self.stabiliser == "signed" else self._published
        rules = composite(self.first, self.conv, self.batch_norm, linear, self._signed)
        return as_answers(
            relevance(module_of(model), rules, x, lambda logits: self._start(logits, target), self._signed),
            self.channels,
            False,
        )

    def _start(self, logits: "Tensor", target: "Tensor") -> "Tensor":
        import torch

        onehot = torch.zeros_like(logits).scatter_(1, target[:, None], 1.0)
        return onehot if self.start == "one" else onehot * logits

    def _published(self, z: "Tensor") -> "Tensor":
        return z + self._size(z) + 1e-9

    def _signed(self, z: "Tensor") -> "Tensor":
        return z + (self._size(z) + 1e-9) * (2 * (z >= 0).to(z.dtype) - 1)

    def _size(self, z: "Tensor") -> "Tensor":
        return self.epsilon * z.square().mean(dim=tuple(range(1, z.ndim)), keepdim=True).sqrt()
