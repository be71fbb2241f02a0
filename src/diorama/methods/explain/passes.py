"""Asking a model about many altered copies of one image: what RISE, LIME and Occlusion share.

Such methods learn about every class from the same passes, so they answer `explain_targets(model, image, targets)`. The
passes go through `model.logits`, so that any classifier will do. Their batches are a function of the method's parameters
and the image's size only, so that a map does not depend on what else is asked.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from diorama.core.answers import Answer
from diorama.core.contracts import ImageByImage
from diorama.io.digests import array_digest

#: Pixels that pass through a model at once, and the fewest and most images.
PIXELS, FEWEST, MOST = 800_000, 4, 50

#: What a map is about: the target's logit, its probability (softmax), or its logit minus the mean over classes.
Output = Literal["logit", "probability", "centred"]
#: What hidden pixels show: a gray, the image's mean colour, or the image blurred (Gauss, σ = a sixteenth of its side).
Fill = Literal["black", "mean", "blur"]


def pixels(image: np.ndarray) -> str:
    """A digest of an image's pixels: what randomness is made a function of."""
    return array_digest(image)


class OncePerImage(ImageByImage):
    """An explainer whose passes are made once for every distinct image, whatever classes are asked about."""

    def explain(self, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
        """The answers of `explain_targets`, in the order of the images given."""
        rows: dict[str, list[int]] = {}
        for i, image in enumerate(images):
            rows.setdefault(pixels(image), []).append(i)
        found: dict[int, Answer] = {}
        for same in rows.values():
            wanted = sorted({int(targets[i]) for i in same})
            answers = dict(zip(wanted, self.explain_targets(model, images[same[0]], wanted), strict=True))
            found.update({i: answers[int(targets[i])] for i in same})
        return [found[i] for i in range(len(images))]


def batches(count: int, shape: tuple[int, ...]) -> Iterator[range]:
    """range(count) in pieces whose images (h, w) pass together.

    >>> [len(piece) for piece in batches(120, (128, 128))], [len(piece) for piece in batches(9, (448, 448))]
    ([48, 48, 24], [4, 4, 1])
    """
    size = min(max(PIXELS // (shape[0] * shape[1]), FEWEST), MOST)
    for start in range(0, count, size):
        yield range(start, min(start + size, count))


def outputs(model: Any, images: np.ndarray, output: Output) -> np.ndarray:
    """Logits or probabilities (n, classes) of images (n, h, w, 3), float64."""
    logits = np.asarray(model.logits(images), np.float64)
    if output == "logit":
        return logits
    if output == "centred":
        return logits - logits.mean(axis=1, keepdims=True)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def filling(image: np.ndarray, fill: Fill) -> np.ndarray:
    """What hidden pixels of an image (h, w, 3) show instead, the same shape, float32.

    >>> filling(np.full((4, 4, 3), 0.25), "mean")[0, 0].tolist()
    [0.25, 0.25, 0.25]
    """
    if fill == "black":
        return np.zeros_like(image, np.float32)
    if fill == "mean":
        return np.broadcast_to(image.mean(axis=(0, 1)), image.shape).astype(np.float32)
    import cv2

    return cv2.GaussianBlur(image.astype(np.float32), (0, 0), max(image.shape[:2]) / 16)


def all_outputs(
    model: Any, image: np.ndarray, count: int, altered: Callable[[range], np.ndarray], output: Output
) -> np.ndarray:
    """The outputs (count, classes) for `altered(piece)`, copies (n, h, w, 3) of an image made batch by batch."""
    return np.concatenate([outputs(model, altered(piece), output) for piece in batches(count, image.shape)])
