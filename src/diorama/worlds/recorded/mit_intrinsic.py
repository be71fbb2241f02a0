"""MIT Intrinsic Images: 16 real objects with measured reflectance and shading, ten further lights each (recorded)."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.images import read_png
from diorama.worlds.recorded.reading import Recorded, existing

#: The two halves on which learned methods were trained and tested; they alternate in SCORED, so that the parity of a case's
#: index gives its half.
SET1 = ("box", "cup1", "cup2", "dinosaur", "panther", "squirrel", "sun", "teabag2")
SET2 = ("deer", "frog1", "frog2", "paper1", "paper2", "raccoon", "teabag1", "turtle")
SCORED = tuple(name for pair in zip(SET1, SET2, strict=True) for name in pair)
#: Objects of the data set with slight problems, which the paper does not score.
EXTRA = ("apple", "pear", "phone", "potato")


@dataclass(frozen=True, slots=True)
class MitIntrinsic(Recorded):
    """A folder with one sub-folder per object.

    root     folder of the data set
    image    image to decompose: the diffuse one (as in the paper), or the original one with highlights
    objects  names of the sub-folders that are used; the paper scores 16

    `do(scene, light=i)` gives the i-th of the ten further lights (0: the frame itself). Truth is known up to one global
    scale and a residual of 2 to 8 % of the image, which the protocols report.
    """

    cite = ("grosse2009",)
    factors: ClassVar[dict[str, str]] = {"light": "0 for the frame itself, 1 to 10 for the further lights"}

    root: str
    image: Literal["diffuse", "original"] = "diffuse"
    objects: tuple[str, ...] = SCORED

    def __post_init__(self) -> None:
        names = [path.name for path in existing("mit_intrinsic", self.root, "box, cup1, …").iterdir() if path.is_dir()]
        known = list(dict.fromkeys([*SCORED, *EXTRA, *names]))  # other objects in the same layout are welcome
        for name in self.objects:
            if name not in known:
                raise InputError(f"mit_intrinsic: unknown object {name!r}; {did_you_mean(name, known)}")
            if not self._path(name, "").is_dir():
                raise InputError(
                    f"mit_intrinsic: object {name!r} is missing in {self.root}; leave it out with objects=…"
                )

    @property
    def truth(self) -> tuple[str, ...]:
        """The names of the true layers; the diffuse image has no specular layer."""
        return ("mask", "reflectance", "shading", *(("specular",) if self.image == "original" else ()))

    @property
    def as_published(self) -> bool:
        """Whether these are the objects and the image of the published scores."""
        return set(self.objects) == set(SCORED) and self.image == "diffuse"

    @property
    def names(self) -> tuple[str, ...]:
        """The objects."""
        return self.objects

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th object, by name."""
        name = self.objects[index]
        return name, Scene("mit_intrinsic", {"object": name, "light": 0})

    def do(self, scene: Scene, *, light: int) -> Scene:
        """The same object under another light."""
        if light not in range(11):
            raise InputError(f"mit_intrinsic: light={light!r} was not recorded; there are 0 (the frame itself) to 10")
        return scene.changed({"light": light})

    def fingerprint(self) -> str:
        """The digest of every file of the objects, so that keys depend on the data and not on its path."""
        files = [path for name in self.objects for path in self._path(name, "").glob("*.png")]
        return files_digest(files, self.folder)

    def _path(self, name: str, file: str) -> Path:
        return self.folder / name / file

    def read(self, scene: Scene) -> Frame:
        """The image with its mask; layers are known for light 0 only."""
        name, light = scene.params["object"], scene.params["light"]
        stored = read_png(self._path(name, "mask.png"))
        mask = (stored if stored.ndim == 2 else stored.max(axis=2)) > 0
        if not mask.any():
            raise InputError(f"{self._path(name, 'mask.png')} marks no pixel: there is nothing to score")
        if light:
            return Frame(scene, self._read(name, f"light{light:02d}", mask), "linear", {"mask": mask})
        truth = {
            "mask": mask,
            "reflectance": self._read(name, "reflectance", mask),
            "shading": self._read(name, "shading", mask),
        }
        if self.image == "original":  # original = diffuse + specular: the released original.png contains C once
            truth["specular"] = self._read(name, "specular", mask)
        image = self._read(name, self.image, mask)
        return Frame(scene, image, "linear", truth)

    def _read(self, name: str, file: str, mask: np.ndarray) -> np.ndarray:
        path = self._path(name, f"{file}.png")
        stored = read_png(path, bits=16)
        if stored.shape[:2] != mask.shape:
            (h, w), (mh, mw) = stored.shape[:2], mask.shape
            raise InputError(f"{path} is {w}×{h} pixels, its mask {mw}×{mh}: all files of an object have one size")
        image = stored.astype(np.float32) / np.float32(65535)
        return image if image.ndim == 3 else image[:, :, None]
