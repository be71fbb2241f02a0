"""Any attribution method of captum by name: Saliency, DeepLift, Occlusion, GuidedBackprop, LayerGradCam …"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError, did_you_mean
from diorama.core.explaining import heatmaps, tensors


@dataclass(frozen=True, slots=True)
class Captum(Explainer):
    """`captum.attr.<name>(module)`, or with `layer` `captum.attr.<name>(module, layer)` upsampled to the image.

    `options` goes to `attribute`, e.g. captum(name=Occlusion, options={'sliding_window_shapes': (3, 8, 8)}).
    """

    gradients = True

    name: str = "Saliency"
    layer: str | None = None
    options: dict[str, Any] | None = None

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps as captum gives them, the sign kept."""
        import captum.attr

        kind = getattr(captum.attr, self.name, None)
        if kind is None:
            raise InputError(f"captum has no method {self.name!r}; {did_you_mean(self.name, captum.attr.__all__)}")
        x, target = tensors(model, images, targets)
        method = (
            kind(model.module) if self.layer is None else kind(model.module, model.module.get_submodule(self.layer))
        )
        found = method.attribute(x.requires_grad_(True), target=target, **(self.options or {}))
        if self.layer is not None:
            found = captum.attr.LayerAttribution.interpolate(found, images.shape[1:3])
        return heatmaps(found)
