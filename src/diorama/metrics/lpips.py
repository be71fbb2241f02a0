"""LPIPS: distance of deep features of AlexNet with learnt channel weights (Zhang et al. 2018, version 0.1).

Images in [−1, 1] are normalised; after each of the five ReLUs the features are scaled to unit length per pixel, their
squared differences weighted per channel, averaged over the image and summed over the layers. Needs torch.
"""

from typing import Any

import numpy as np

_SHIFT, _SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
#: Stride and padding of the five convolutions; a 3×3 maximum of stride 2 comes before the second and the third.
_LAYOUT = ((4, 2), (1, 2), (1, 1), (1, 1), (1, 1))
#: What `weights` holds: conv<i>.weight (out, in, k, k), conv<i>.bias (out,) and lin<i>.weight (channels,), i = 0 … 4.
NAMES = tuple(
    f"{kind}{i}.{part}" for i in range(5) for kind, part in (("conv", "weight"), ("conv", "bias"), ("lin", "weight"))
)


def lpips(a: np.ndarray, b: np.ndarray, weights: dict[str, np.ndarray]) -> float:
    """LPIPS-Alex of two (h, w, 3) images in [0, 1] as a screen shows them; 0 for equal ones."""
    import torch

    with torch.no_grad():
        left, right = (_features(torch.from_numpy(np.asarray(x, np.float32)), weights) for x in (a, b))
        terms = [_term(*pair, weights[f"lin{i}.weight"]) for i, pair in enumerate(zip(left, right, strict=True))]
    return float(sum(terms))


def _features(image: Any, weights: dict[str, np.ndarray]) -> list[Any]:
    import torch
    from torch.nn.functional import conv2d, max_pool2d

    x = (2 * image - 1 - torch.tensor(_SHIFT)) / torch.tensor(_SCALE)
    x, features = x.permute(2, 0, 1)[None], []
    for i, (stride, padding) in enumerate(_LAYOUT):
        x = max_pool2d(x, 3, 2) if i in (1, 2) else x
        kernel, bias = (torch.from_numpy(weights[f"conv{i}.{part}"]) for part in ("weight", "bias"))
        x = torch.relu(conv2d(x, kernel, bias, stride, padding))
        features.append(x[0] / (x[0].square().sum(dim=0, keepdim=True).sqrt() + 1e-10))
    return features


def _term(a: Any, b: Any, channel_weights: np.ndarray) -> float:
    import torch

    return float(((a - b) ** 2 * torch.from_numpy(channel_weights)[:, None, None]).sum(dim=0).mean())
