"""A folder of photos without labels or masks, each resized to a square: negatives for concept vectors (recorded)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.images import resize
from diorama.io.names import distinct, inside
from diorama.io.photos import ENDINGS, pictures
from diorama.worlds.recorded.reading import Recorded, check_side, colour, existing, read_picture


@dataclass(frozen=True)
class PhotoFolder(Recorded):
    """Every PNG and JPEG of a folder, in the order of their paths, as square sRGB images.

    root  folder of the photos; its sub-folders are read too
    size  side in pixels of the square to which photos are resized
    """

    root: str
    size: int = 64

    def __post_init__(self) -> None:
        existing("photo_folder", self.root, "photos")
        check_side("photo_folder", self.size)
        if not self.names:
            raise InputError(f"photo_folder: {self.root} holds no photo ({', '.join(ENDINGS)})")

    @cached_property
    def names(self) -> list[str]:
        """The paths of the photos below the folder."""
        return sorted(path.relative_to(self.folder).as_posix() for path in pictures(self.folder))

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th photo, by its path."""
        name = self.names[index]
        return self._cases[name], Scene("photo_folder", {"photo": name})

    @cached_property
    def _cases(self) -> dict[str, str]:
        return distinct(self.names, folders=True)

    def fingerprint(self) -> str:
        """The digest of every photo."""
        return files_digest(pictures(self.folder), self.folder)

    def read(self, scene: Scene) -> Frame:
        """The photo, resized to the square."""
        image = colour(read_picture(inside(self.folder, scene.params["photo"])))
        return Frame(scene, resize(image, self.size, self.size).astype(np.float32), "srgb", {})
