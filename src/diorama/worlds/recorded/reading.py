"""What recorded worlds share: reading pictures of any common format, and the methods that are the same for all.

A world of photographs derives from `Recorded`, one with several recorded lights from `RecordedLights`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diorama.core.capabilities import Listed, Lit
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.exr import read_exr
from diorama.io.images import read_image


class Recorded(Listed):
    """Photographs below the folder `root`: a subclass gives their names and scenes, and reads them."""

    located: ClassVar[tuple[str, ...]] = ("root",)
    root: str

    @property
    def factors(self) -> dict[str, str]:
        """Empty: nothing about a photograph can be changed, unless a subclass overrides this."""
        return {}

    @property
    def truth(self) -> tuple[str, ...]:
        """Empty: nothing is known about a photograph, unless a subclass overrides this."""
        return ()

    @property
    @abstractmethod
    def names(self) -> Sequence[Any]:
        """The names of the scenes, in order."""

    @abstractmethod
    def read(self, scene: Scene) -> Frame:
        """The frame of one scene."""

    @property
    def folder(self) -> Path:
        """The folder `root`."""
        return Path(self.root).expanduser()

    def __len__(self) -> int:
        return len(self.names)

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """Read the frames of some scenes."""
        return [self.read(scene) for scene in scenes]


class RecordedLights(Recorded, Lit):
    """Photographs of scenes under several lights."""

    def do(self, scene: Scene, *, light: int) -> Scene:
        """The same scene under another of its lights."""
        if light not in (known := self.lights(scene)):
            has = f"{known[0]} to {known[-1]}" if list(known) == list(range(len(known))) else ", ".join(map(str, known))
            raise InputError(f"{scene.world}: light={light!r} was not recorded; there are {has}")
        return scene.changed({"light": light})


def existing(world: str, root: str, holds: str) -> Path:
    """The folder `root`, or an InputError that says what it should hold."""
    folder = Path(root).expanduser()
    if not folder.is_dir():
        raise InputError(f"{world}: there is no folder {root!r}; root is the folder that holds {holds}")
    return folder


def check_side(world: str, side: int | None) -> None:
    """Refuse squares of less than 8 pixels; None is no square."""
    if side is not None and side < 8:
        raise InputError(f"{world}: size={side} is too small; give the side of the square in pixels")


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


def read_mask(path: Path, image: np.ndarray) -> np.ndarray:
    """The pixels of an image that are scored: where its mask is above one half."""
    mask = same_size(path, image, read_picture(path)).max(axis=2) > 0.5
    if not mask.any():
        raise InputError(f"{path} marks no pixel: there is nothing to score")
    return mask


def natural(name: str) -> tuple[Any, ...]:
    """A key that sorts numbers by value.

    >>> sorted(["10", "9", "a2"], key=natural)
    ['9', '10', 'a2']
    """
    return (0, int(name), "") if name.isdecimal() else (1, 0, name)
