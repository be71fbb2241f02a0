"""Training losses."""

from torch import Tensor


def multi_target_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean over the batch of the mean cross-entropy over every compatible class (Hesse et al. 2023, §4).

    ℓ = −1/B Σ_b 1/|T_b| Σ_{t ∈ T_b} log softmax(logits_b)_t, with `targets` bool (B, classes) marking T_b. A bird whose
    parts are all removed is compatible with all classes. The weight is |T_b|, not the batch size, and T_b is each bird's
    own: the first released training script got both wrong.

    >>> import torch
    >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    >>> round(float(multi_target_loss(logits, torch.tensor([[True, False], [True, True]]))), 4)
    0.6931
    """
    weights = targets / targets.sum(1, keepdim=True)
    return -(weights * logits.log_softmax(1)).sum(1).mean()
