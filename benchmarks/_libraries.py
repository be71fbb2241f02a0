"""Explanations as users of the published framework have them: by captum, the lime package and zennit, on torch as it comes.

One image and one target at a time, the network in torch's usual layout with its batch norms. RISE has no library: here it is
written as published, with masks made beforehand.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from diorama.core.catalogue import build

#: One image (h, w, 3) and a target to a map.
Explain = Callable[[np.ndarray, int], np.ndarray]
#: Images that RISE passes together.
TOGETHER = 100


class Usual:
    """A network as torch builds it."""

    def __init__(self, model: Any) -> None:
        self.model = copy.copy(model)
        module: Any = copy.deepcopy(model.module)
        self.module = module.to(memory_format=torch.contiguous_format)
        vars(self.model).update(module=self.module, folded=None)

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, h, w, 3) to (n, classes)."""
        with torch.no_grad():
            return self.module(_tensor(images)).numpy()

    def methods(self, masks: int, samples: int) -> dict[str, Explain]:
        """Every method by the name it has here."""
        from captum.attr import InputXGradient, IntegratedGradients, LayerGradCam

        cam_layer = self.module.get_submodule(self.model.cam_layer)
        by_input, by_line, by_layer = (
            InputXGradient(self.module),
            IntegratedGradients(self.module),
            LayerGradCam(self.module, cam_layer),
        )
        fields = build("method", f"rise(masks={masks})").object.some_masks(range(masks), (128, 128))
        return {
            "input_x_gradient": lambda image, target: _map(by_input.attribute(_grown(image), target=target)),
            "integrated_gradients": lambda image, target: _map(
                by_line.attribute(_tensor(image[None]), target=target, n_steps=50)
            ),
            "grad_cam": lambda image, target: self._cam(by_layer, image, target),
            "rise": lambda image, target: self._rise(fields, image, target),
            "lime": lambda image, target: self._lime(samples, image, target),
            "lrp": self._lrp(),
        }

    def _cam(self, by_layer: Any, image: np.ndarray, target: int) -> np.ndarray:
        small = by_layer.attribute(_tensor(image[None]), target=target, relu_attributions=True)
        return _map(torch.nn.functional.interpolate(small, image.shape[:2]))

    def _rise(self, fields: np.ndarray, image: np.ndarray, target: int) -> np.ndarray:
        x, masks = _tensor(image[None]), torch.from_numpy(fields)
        with torch.no_grad():
            parts = [self.module(x * some[:, None])[:, target] for some in masks.split(TOGETHER)]
        return (torch.cat(parts) @ masks.flatten(1)).reshape(image.shape[:2]).numpy() / len(fields) / 0.1

    def _lime(self, samples: int, image: np.ndarray, target: int) -> np.ndarray:
        from lime.lime_image import LimeImageExplainer

        def probabilities(images: np.ndarray) -> np.ndarray:
            return torch.softmax(torch.from_numpy(self.logits(images.astype(np.float32))), 1).numpy()

        found = LimeImageExplainer(random_state=0).explain_instance(
            *(image.astype(np.float64), probabilities),
            labels=(target,),
            top_labels=None,
            hide_color=0,
            num_samples=samples,
        )
        return found.get_image_and_mask(target, positive_only=True, num_features=5)[1].astype(np.float32)

    def _lrp(self) -> Explain:
        lrp = build("method", "lrp").object
        return lambda image, target: lrp.explain(self.model, image[None], np.array([target]))[0].values


def _tensor(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def _grown(image: np.ndarray) -> torch.Tensor:
    return _tensor(image[None]).requires_grad_(True)


def _map(found: torch.Tensor) -> np.ndarray:
    return found[0].detach().permute(1, 2, 0).numpy()
