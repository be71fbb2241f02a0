"""Reconstruction weighted by the bounding box: the remedy of the CANDLE authors for small objects that vanish.

    Σ_pixels (1 + λ·w)·ℓ(x, x̂)        w = 1 inside the object's box, 0 outside; ℓ the Bernoulli cross-entropy of a pixel

The poster of the paper adds λ·Σ‖x·w − x̂·w‖². The released code multiplies image and logits by the mask before the loss, so
that every pixel outside adds log 2 and nothing else; here the loss of each pixel is weighted.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def reconstruction(logits: Tensor, x: Tensor, boxes: Tensor | None = None, weight: float = 0.0) -> Tensor:
    """The loss of every image (n,), pixels inside its box (n, 4; shares of the side) counting 1 + weight times."""
    pixels = binary_cross_entropy_with_logits(logits, x, reduction="none")
    if boxes is None or not weight:
        return pixels.flatten(1).sum(1)
    return (pixels * (1 + weight * inside(boxes, x.shape[-1])[:, None])).flatten(1).sum(1)


def inside(boxes: Tensor, side: int) -> Tensor:
    """(n, side, side): 1 for pixels that a box x0, y0, x1, y1 touches.

    >>> inside(torch.tensor([[0.3, 0.0, 0.75, 0.5]]), 4)[0].tolist()
    [[0.0, 1.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    low = torch.arange(side) / side
    high = low + 1 / side
    x0, y0, x1, y1 = (boxes[:, i, None] for i in range(4))
    across, down = (high > x0) & (low < x1), (high > y0) & (low < y1)
    return (down[:, :, None] & across[:, None, :]).float()
