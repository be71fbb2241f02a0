"""B-cos networks' own explanation: w(x)·x, the contribution of every input value to the logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import heatmaps, module_of, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.inherent import LinearMap, entering, inside


@dataclass(frozen=True, slots=True)
class Bcos(Explainer):
    """Contributions of the six channels [x, 1 − x], (h, w, 6), signed; their sum is the logit above its constant."""

    example = "diorama run -w birds -M birds_bcos -m {} -p single_deletion"
    gradients = True
    cite = ("boehle2022",)

    def refuses(self, model: Any) -> str:
        """Why a network that is not B-cos cannot be explained."""
        return "" if inside(model.module, LinearMap) else "bcos needs a B-cos network (birds_bcos)"

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps (h, w, 6)."""
        x, target = tensors(model, images, targets)
        net: Any = inside(module_of(model), LinearMap)
        return heatmaps(net.contributions(entering(module_of(model), net, x), target))
