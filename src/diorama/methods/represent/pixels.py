"""Images as the flat vectors that linear methods and scikit-learn take."""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame


def vectors(frames: Sequence[Frame]) -> np.ndarray:
    """(n, pixels) float64 as a screen shows them; one value per pixel where the three channels agree in all frames."""
    images = np.stack([frame.srgb() for frame in frames])
    gray = (images[..., :1] == images).all()
    return (images[..., 0] if gray else images).reshape(len(images), -1).astype(np.float64)


def training_vectors(examples: Iterable[Sequence[Frame]], most: int) -> np.ndarray:
    """The pixels of the first `most` frames of a fold, (n, pixels)."""
    frames = [views[0] for views in islice(examples, most)]
    if len(frames) < 2:
        raise InputError("there are fewer than two frames to fit on: raise the protocol's frames")
    return vectors(frames)


def same_length(x: np.ndarray, length: int) -> np.ndarray:
    """The vectors, if they have the length of those fitted on; gray ones of a coloured world are tripled."""
    if x.shape[1] * 3 == length:
        return np.repeat(x, 3, axis=1)
    if x.shape[1] != length:
        raise InputError(f"images have {x.shape[1]} values, those fitted on had {length}: use one world")
    return x
