"""What recorded worlds share: reading pictures of any common format, names, and methods that are all alike.

Functions whose first argument is `self` become methods by assignment in the body of a world: `render = read_each`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.exr import read_exr
from diorama.io.images import read_image


def existing(world: str, root: str, holds: str) -> Path:
    """The folder `root`, or an InputError that says what it should hold."""
    folder = Path(root).expanduser()
    if not folder.is_dir():
        raise InputError(f"{world}: there is no folder {root!r}; root is the folder that holds {holds}")
    return folder


def read_each(self: Any, scenes: Sequence[Scene]) -> list[Frame]:
    """Read the frames of some scenes."""
    return [self._frame(scene) for scene in scenes]


def read_picture(path: Path) -> np.ndarray:
    """A PNG of 8 or 16 bits, a JPEG, HDR or EXR as (h, w, 1 or 3) float32; integers become 0 to 1."""
    if path.suffix == ".exr":
        return read_exr(path)
    stored = read_image(path)
    image = stored.astype(np.float32)
    if stored.dtype.kind == "u":
        image /= np.float32(np.iinfo(stored.dtype).max)
    return image if image.ndim == 3 else image[:, :, None]


def colour(image: np.ndarray) -> np.ndarray:
    """An image with three channels, gray ones repeated."""
    return image if image.shape[2] == 3 else np.repeat(image, 3, axis=2)


def same_size(path: Path, image: np.ndarray, layer: np.ndarray) -> np.ndarray:
    """The layer, if it has the image's size."""
    if layer.shape[:2] != image.shape[:2]:
        (h, w), (ih, iw) = layer.shape[:2], image.shape[:2]
        raise InputError(f"{path} is {w}×{h} pixels, its image {iw}×{ih}: they must have one size")
    return layer


def natural(name: str) -> tuple[Any, ...]:
    """A key that sorts numbers by value.

    >>> sorted(["10", "9", "a2"], key=natural)
    ['9', '10', 'a2']
    """
    return (0, int(name), "") if name.isdecimal() else (1, 0, name)
