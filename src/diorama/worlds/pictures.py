"""Pictures of which nothing is known: a folder of PNG and JPEG files, e.g. a concept or random photos (recorded)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from diorama.core.digests import files_digest
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.worlds._recorded import one_of, read_each, unchangeable
from diorama.worlds.photos import fitted, read_photo


@dataclass(frozen=True)
class Pictures:
    """The pictures of `folder`, in the order of their names, resized to `size` pixels and centre-cropped if `crop`."""

    located: ClassVar[tuple[str, ...]] = ("folder",)
    factors: ClassVar[dict[str, str]] = {}
    truth: ClassVar[tuple[str, ...]] = ()

    folder: str
    size: int = 224
    crop: bool = False

    sample, do, render = one_of, unchangeable, read_each

    def __post_init__(self) -> None:
        if not self._base.is_dir():
            raise InputError(f"pictures: there is no folder {self.folder!r}")
        if self.size < 8:
            raise InputError(f"pictures: size={self.size} is too small; give the side of the square in pixels")
        if not self._names:
            raise InputError(f"pictures: {self.folder} holds no PNG or JPEG file")

    @property
    def _base(self) -> Path:
        return Path(self.folder).expanduser()

    @cached_property
    def _names(self) -> list[str]:
        return sorted(p.name for p in self._base.iterdir() if p.suffix.lower() in (".png", ".jpg", ".jpeg"))

    def __len__(self) -> int:
        return len(self._names)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th picture by name."""
        return self._names[index], Scene("pictures", {"image": self._names[index]})

    def fingerprint(self) -> str:
        """The digest of all pictures by name and content."""
        return files_digest((self._base / name for name in self._names), self._base)

    def _frame(self, scene: Scene) -> Frame:
        image = fitted(read_photo(self._base / scene.params["image"]), self.size, self.crop)
        return Frame(scene, image.astype(np.float32) / np.float32(255), "srgb")
