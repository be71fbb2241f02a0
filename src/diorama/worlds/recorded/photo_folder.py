"""A folder of photos without labels or masks, each squeezed into a square: negatives for concept vectors (recorded)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from diorama.core.capabilities import Listed
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.images import resize
from diorama.io.names import distinct, inside
from diorama.worlds.recorded.common import colour, existing, read_each, read_picture

_ENDINGS = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class PhotoFolder(Listed):
    """Every PNG and JPEG of a folder, in the order of their paths, as square sRGB images.

    root  the folder; its sub-folders are read too
    size  side in pixels of the square into which a photo is squeezed
    """

    located = ("root",)
    factors: ClassVar[dict[str, str]] = {}
    truth: ClassVar[tuple[str, ...]] = ()

    root: str
    size: int = 64

    render = read_each

    def __post_init__(self) -> None:
        existing("photo_folder", self.root, "photos")
        if self.size < 8:
            raise InputError(f"photo_folder: size={self.size} is too small; give the side of the square in pixels")
        if not self._names:
            raise InputError(f"photo_folder: {self.root} holds no photo ({', '.join(_ENDINGS)})")

    @cached_property
    def _names(self) -> list[str]:
        base = Path(self.root).expanduser()
        return sorted(p.relative_to(base).as_posix() for p in base.rglob("*") if p.suffix.lower() in _ENDINGS)

    def __len__(self) -> int:
        return len(self._names)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th photo, by its path."""
        name = self._names[index]
        return self._cases[name], Scene("photo_folder", {"photo": name})

    @cached_property
    def _cases(self) -> dict[str, str]:
        return distinct(self._names, folders=True)

    def fingerprint(self) -> str:
        """The digest of every photo."""
        base = Path(self.root).expanduser()
        return files_digest([base / name for name in self._names], base)

    def _frame(self, scene: Scene) -> Frame:
        image = colour(read_picture(inside(Path(self.root).expanduser(), scene.params["photo"])))
        return Frame(scene, resize(image, self.size, self.size).astype(np.float32), "srgb", {})
