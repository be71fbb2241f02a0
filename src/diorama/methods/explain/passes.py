"""Asking a model about many altered copies of one image: what RISE, LIME and Occlusion share.

Such methods learn about every class from the same passes, so they answer `explain_targets(model, image, targets)`. The
passes go through `model.logits`, so that any classifier will do. Their batches are a function of the method's parameters
and the image's size only, so that a map does not depend on what else is asked.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from diorama.core.answers import Answer

#: Pixels that pass through a model at once, and the fewest and most images.
PIXELS, FEWEST, MOST = 800_000, 4, 50

#: What a map is about: the target's logit, or its probability (softmax).
Output = Literal["logit", "probability"]


def pixels(image: np.ndarray) -> str:
    """A digest of an image's pixels: what randomness is made a function of."""
    return hashlib.blake2b(np.ascontiguousarray(image).tobytes(), digest_size=16).hexdigest()


def by_image(method: Any, model: Any, images: np.ndarray, targets: np.ndarray) -> Sequence[Answer]:
    """`method.explain_targets` once per distinct image, in the order of the images given."""
    rows: dict[str, list[int]] = {}
    for i, image in enumerate(images):
        rows.setdefault(pixels(image), []).append(i)
    found: dict[int, Answer] = {}
    for same in rows.values():
        wanted = sorted({int(targets[i]) for i in same})
        answers = dict(zip(wanted, method.explain_targets(model, images[same[0]], wanted), strict=True))
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
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def all_outputs(
    model: Any, image: np.ndarray, count: int, altered: Callable[[range], np.ndarray], output: Output
) -> np.ndarray:
    """The outputs (count, classes) for `altered(piece)`, copies (n, h, w, 3) of an image made batch by batch."""
    return np.concatenate([outputs(model, altered(piece), output) for piece in batches(count, image.shape)])
