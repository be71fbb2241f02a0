"""BagNet's own explanation: the target's logit of the patch around every pixel, from one dense pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diorama.adapt.explaining import heatmaps, module_of, tensors
from diorama.core.answers import Answer
from diorama.core.inherent import PatchEvidence, entering, inside
from diorama.methods.explain.passes import OncePerImage


@dataclass(frozen=True, slots=True)
class Bagnet(OncePerImage):
    """The logit of every patch at stride 1, signed, (h, w): as FunnyBirds, which runs 65,536 patches one by one.

    border  padding of half a patch, so that there is a patch around every pixel: black (as released; a network that never
            saw a black border responds to it all along the edges) or edge, which repeats the outermost pixels. The network
            itself does not pad
    """

    example = "diorama run -w birds -M birds_bagnet -m {} -p single_deletion"
    gradients = True
    cite = ("brendel2019",)

    border: Literal["black", "edge"] = "black"

    def refuses(self, model: Any) -> str:
        """Why a network is refused whose logits are not means of patches' logits; empty for others."""
        patches = inside(model.module, PatchEvidence)
        return "" if patches else "bagnet needs a network whose logits are means of patches' logits (birds_bagnet)"

    def explain_targets(self, model: Any, image: np.ndarray, targets: Sequence[int]) -> list[Answer]:
        """Heat maps (h, w) of one image (h, w, 3) for several targets, from one pass."""
        import torch
        from torch.nn.functional import pad

        x, classes = tensors(model, image[None], np.asarray(targets))
        net: Any = inside(module_of(model), PatchEvidence)
        before = (net.field - 1) // 2
        mode = "constant" if self.border == "black" else "replicate"
        x = pad(entering(module_of(model), net, x), (before, net.field - 1 - before) * 2, mode)
        with torch.no_grad():
            return heatmaps(net.dense(x, classes)[0])
