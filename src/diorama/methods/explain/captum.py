"""Any attribution method of captum by name: Saliency, DeepLift, Occlusion, GuidedBackprop, LayerGradCam …"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.explaining import heatmaps, module_of, need, tensors
from diorama.core.answers import Answer
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError, did_you_mean
from diorama.methods.explain.gradients import missing_layer


@dataclass(frozen=True, slots=True)
class Captum(Explainer):
    """`captum.attr.<name>(module)`, or with `layer` `captum.attr.<name>(module, layer)` upsampled to the image.

    name     name of the class in captum.attr
    layer    layer of the network, for methods of layers such as LayerGradCam; None for methods of the input
    options  arguments of `attribute`, e.g. captum(name=Occlusion, options={'sliding_window_shapes': (3, 8, 8)})
    """

    gradients = True

    name: str = "Saliency"
    layer: str | None = None
    options: dict[str, Any] | None = None

    def refuses(self, model: Any) -> str:
        """Why a model cannot be explained: a layer is missing, needed, or not taken by the method."""
        takes = "layer" in inspect.signature(self._kind()).parameters
        if takes and self.layer is None:
            return f"captum(name={self.name}) needs a layer: write captum(name={self.name}, layer=…)"
        if self.layer is not None and not takes:
            return f"captum(name={self.name}) takes no layer, but layer={self.layer} is given"
        return missing_layer(module_of(model), self.layer, "captum")

    def _kind(self) -> Any:
        need("captum", "captum", "torch")
        import captum.attr

        if self.name not in captum.attr.__all__:
            raise InputError(f"captum has no method {self.name!r}; {did_you_mean(self.name, captum.attr.__all__)}")
        return getattr(captum.attr, self.name)

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Heat maps as captum gives them, with their sign."""
        kind, (x, target) = self._kind(), tensors(model, images, targets)
        layer = () if self.layer is None else (model.module.get_submodule(self.layer),)
        attribution = kind(model.module, *layer).attribute(
            x.requires_grad_(True), target=target, **(self.options or {})
        )
        if layer:
            from captum.attr import LayerAttribution

            attribution = LayerAttribution.interpolate(attribution, images.shape[1:3])
        return heatmaps(attribution)
