"""Photometric stereo: real objects photographed under lamps of known direction, from one viewpoint (recorded)."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.files import read_text
from diorama.worlds.recorded.reading import RecordedLights, colour, existing, read_mask, read_picture

_ENDINGS = (".png", ".jpg", ".exr")


@dataclass(frozen=True)
class PhotometricStereo(RecordedLights):
    """`<object>/<object>.<0, 1, …>.png` with `<object>.mask.png`; `lights.txt` holds their number, then x y z of each.

    root      folder with one sub-folder per object, and `lights.txt`
    encoding  encoding of the photos

    `do(scene, light=i)` is the i-th photo. The direction towards the lamp is `truth["lights"]` if `lights.txt` has as many
    directions as there are photos. The chrome and gray calibration balls are left out. There is no true reflectance:
    `invariance` is the score for this world.
    """

    cite = ("woodham1980",)
    factors: ClassVar[dict[str, str]] = {"light": "0, 1, …: which lamp is on"}
    truth: ClassVar[tuple[str, ...]] = ("mask",)

    root: str
    encoding: Literal["linear", "srgb"] = "linear"

    def __post_init__(self) -> None:
        existing("photometric_stereo", self.root, "cat, owl, …, each with cat.0.png and cat.mask.png")
        if not self.names:
            raise InputError(f"photometric_stereo: no folder in {self.root} has <object>.0.png and <object>.mask.png")

    @cached_property
    def names(self) -> list[str]:
        """The objects in alphabetical order."""
        objects = sorted(path.parent.name for path in self.folder.glob("*/*.mask.png"))
        return [name for name in objects if name not in ("chrome", "gray") and 0 in self._photos(name)]

    def _photos(self, name: str) -> dict[int, Path]:
        files = (p for p in (self.folder / name).glob(f"{name}.*") if p.suffix in _ENDINGS)
        return {int(m[1]): p for p in files if (m := re.fullmatch(r"([0-9]{1,9})", p.stem.rpartition(".")[2]))}

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th object, by name, under its first lamp."""
        return self.names[index], Scene("photometric_stereo", {"object": self.names[index], "light": 0})

    def lights(self, scene: Scene) -> list[int]:
        """The lamps under which an object was photographed."""
        return sorted(self._photos(scene.params["object"]))

    def fingerprint(self) -> str:
        """The digest of every photo and mask, and of the directions."""
        files = [path for name in self.names for path in (self.folder / name).iterdir()]
        return files_digest([*files, *self.folder.glob("lights.txt")], self.folder)

    def read(self, scene: Scene) -> Frame:
        """The photo with the object's mask and the lamp's direction."""
        name, light = scene.params["object"], scene.params["light"]
        image = colour(read_picture(self._photos(name)[light]))
        truth: dict[str, Any] = {"mask": read_mask(self.folder / name / f"{name}.mask.png", image)}
        directions = self._directions()
        if len(directions) == len(self._photos(name)):
            truth["lights"] = [directions[light].tolist()]
        return Frame(scene, image, self.encoding, truth)

    def _directions(self) -> np.ndarray:
        path = self.folder / "lights.txt"
        try:
            values = np.array(read_text(path).split() if path.is_file() else [0.0], float)
            return values[1:].reshape(-1, 3)
        except ValueError as error:
            raise InputError(f"{path} is not a number of lamps with x y z of each: {error}") from error
