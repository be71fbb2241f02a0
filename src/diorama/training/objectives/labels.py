"""Labels of a few images (Locatello et al. 2020): the first latents are trained to predict the factors.

    γ_sup·Σ_batch Σ_k −[t_k·log σ(μ_k) + (1 − t_k)·log(1 − σ(μ_k))]       t_k = level / number of levels of factor k

μ_k is the mean of the k-th latent of a batch of labelled images. The sum runs over images and factors and is not divided by
either, as in the released implementation, while all other terms are means over the batch.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def label_loss(mean: Tensor, targets: Tensor) -> Tensor:
    """The summed cross-entropy of the first latents' means (n, latents) against targets (n, factors) in [0, 1)."""
    return binary_cross_entropy_with_logits(mean[:, : targets.shape[1]], targets, reduction="sum")
