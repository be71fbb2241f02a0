"""ProtoPNet's own explanation: where the image looks like the prototypes of the target class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diorama.adapt.explaining import module_of, tensors
from diorama.core.answers import Answer, Boxes, Heatmap, Similarity
from diorama.core.contracts import Explainer
from diorama.core.inherent import Prototypes as HasPrototypes
from diorama.core.inherent import entering, inside


@dataclass(frozen=True, slots=True)
class Prototypes(Explainer):
    """The similarity to every prototype of the target class, enlarged bicubically to the image.

    reading   boxes: a box around every prototype's values above the 95th percentile, whose weight is the largest similarity
              times the connection to the class, as FunnyBirds published (part-based protocols reproduce the published
              quirks: boxes end one pixel early, parts are not dilated, three channels count, so thresholds are a third)
              similarity: importance from the similarity maps, important parts from the share that boxes cover
              attribution: the sum of similarity maps times connections, treated like any attribution
              (the last two after Opłatek et al. 2024)
    """

    example = "diorama run -w birds -M birds_protopnet -m {} -p single_deletion"
    gradients = True
    cite = ("chen2019", "hesse2023", "oplatek2024")

    reading: Literal["boxes", "similarity", "attribution"] = "boxes"

    def refuses(self, model: Any) -> str:
        """Why a network without prototypes is refused; empty for others."""
        net = inside(model.module, HasPrototypes)
        return "" if net else "prototypes needs a network with prototypes (birds_protopnet)"

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """Boxes, similarity maps with boxes, or signed heat maps (h, w)."""
        import torch

        x, _ = tensors(model, images, targets)
        net: Any = inside(module_of(model), HasPrototypes)
        with torch.no_grad():
            similarities = net.similarities(entering(module_of(model), net, x)).cpu().numpy()
        owner, connections = net.owner.cpu().numpy(), net.connections.detach().cpu().numpy()
        pictures = {int(t): None if net.pictures is None else net.pictures[owner == t] for t in targets}
        return [
            self._answer(one[owner == t], connections[t, owner == t], images.shape[1:3], pictures[int(t)])
            for one, t in zip(similarities, targets, strict=True)
        ]

    def _answer(
        self, similar: np.ndarray, weights: np.ndarray, size: tuple[int, int], pictures: np.ndarray | None
    ) -> Answer:
        """The answer of one image, from maps (prototypes, i, j), weights and patches of the class's prototypes."""
        large = np.stack([enlarged(one, size) for one in similar])
        heat = np.tensordot(weights, large, 1).astype(np.float32)
        if self.reading == "attribution":
            return Heatmap(heat, signed=True)
        boxes = Boxes(np.stack([high_box(one) for one in large]), similar.max(axis=(1, 2)) * weights, pictures)
        return boxes if self.reading == "boxes" else Similarity(heat, boxes.corners)


def enlarged(coarse: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """A map (i, j) bicubically enlarged to (h, w), by OpenCV as released."""
    import cv2

    return cv2.resize(coarse.astype(np.float32), size[::-1], interpolation=cv2.INTER_CUBIC)


def high_box(heat: np.ndarray, percentile: float = 95) -> np.ndarray:
    """The box x0, y0, x1, y1, far edges excluded, around all values at or above a percentile.

    >>> heat = np.zeros((10, 10))
    >>> heat[2:4, 5:8] = 1
    >>> high_box(heat).tolist()
    [5, 2, 8, 4]
    """
    high = heat >= np.percentile(heat, percentile)
    rows, columns = np.flatnonzero(high.any(axis=1)), np.flatnonzero(high.any(axis=0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
