"""BagNet's own explanation: the target's logit of the patch around every pixel, from one dense pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import heatmaps, module_of, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.inherent import PatchEvidence, entering, inside


@dataclass(frozen=True, slots=True)
class Bagnet(Explainer):
    """The logit of every patch at stride 1, signed, (h, w): as FunnyBirds, which runs 65,536 patches one by one.

    The image gets a black border of half a patch, so that there is a patch around every pixel; the network pads nothing.
    """

    gradients = True
    cite = ("brendel2019",)

    def refuses(self, model: Any) -> str:
        """That a network's logits are not means of patches' logits."""
        found = inside(model.module, PatchEvidence)
        return "" if found else "bagnet needs a network whose logits are means of patches' logits (birds_bagnet)"

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w); one image at a time, a dense pass takes much memory."""
        import torch
        from torch.nn.functional import pad

        x, target = tensors(model, images, targets)
        net: Any = inside(module_of(model), PatchEvidence)
        before = (net.field - 1) // 2
        border = (before, net.field - 1 - before) * 2
        x = pad(entering(module_of(model), net, x), border)
        with torch.no_grad():
            return heatmaps(torch.cat([net.dense(x[i : i + 1], target[i : i + 1]) for i in range(len(x))]))
