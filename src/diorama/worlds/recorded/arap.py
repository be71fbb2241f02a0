"""ARAP: rendered scenes with true reflectance and shading, many under several lights (Bonneel et al. 2017; recorded)."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame, srgb_to_linear
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.worlds.recorded.reading import RecordedLights, colour, existing, read_mask, read_picture, same_size

#: Scenes that published evaluations leave out: of Luo et al. 2024 (invalid layers), and of Gupta et al. 2022 (one object).
EXCLUDED = {
    "none": (),
    "luo2024": ("amsterdam", "redhead", "butterfly", "office", "caterpillar", "strawberries", "tiger"),
    "gupta2022": ("katie", "redhead", "skin", "strawberries", "toad", "revolution"),
}


@dataclass(frozen=True)
class Arap(RecordedLights):
    """`input/<name>.png`, `reflectance/<scene>_albedo.png`, `shading/<name>_shading.png`, `mask/<scene>_alpha.png`.

    root      folder with `input/<name>.png`, `reflectance/<scene>_albedo.png`, `shading/<name>_shading.png`,
              `mask/<scene>_alpha.png`
    exclude   published list of scenes that are left out, by whole name (`office`, not `oldoffice`); none keeps all
    encoding  encoding of the files; their colour space is not documented

    A name is a scene (`alley`) or a scene under a further light (`alley_light0`); reflectance and mask belong to the
    scene. Every image is a case; `do(scene, light=i)` gives light i − 1 (0: the scene's own; numbers have gaps). Masks are
    the pixels above one half.
    """

    cite = ("bonneel2017", "luo2024")
    factors: ClassVar[dict[str, str]] = {"light": "0 for the scene's own light, i for <scene>_light<i − 1>"}
    truth: ClassVar[tuple[str, ...]] = ("mask", "reflectance", "shading")

    root: str
    exclude: Literal["none", "luo2024", "gupta2022"] = "luo2024"
    encoding: Literal["linear", "srgb"] = "linear"

    def __post_init__(self) -> None:
        existing("arap", self.root, "input, reflectance, shading and mask")
        if not self.names:
            raise InputError(f"arap: there is no image in {self.root}/input that exclude={self.exclude!r} leaves")

    @cached_property
    def names(self) -> list[str]:
        """The images in alphabetical order, without those of excluded scenes."""
        stems = sorted(path.stem for path in (self.folder / "input").glob("*.png"))
        return [name for name in stems if _split(name)[0] not in EXCLUDED[self.exclude]]

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th image, by name."""
        base, light = _split(self.names[index])
        return self.names[index], Scene("arap", {"scene": base, "light": light})

    def lights(self, scene: Scene) -> list[int]:
        """The lights under which a scene was rendered."""
        return sorted(light for base, light in map(_split, self.names) if base == scene.params["scene"])

    def fingerprint(self) -> str:
        """The digest of every file of the images."""
        files = {path for i in range(len(self)) for path in self._files(self.scene(i)[1]).values()}
        return files_digest([path for path in files if path.is_file()], self.folder)

    def _files(self, scene: Scene) -> dict[str, Path]:
        base, light = scene.params["scene"], scene.params["light"]
        name = f"{base}_light{light - 1}" if light else base
        return {
            "image": self.folder / "input" / f"{name}.png",
            "reflectance": self.folder / "reflectance" / f"{base}_albedo.png",
            "shading": self.folder / "shading" / f"{name}_shading.png",
            "mask": self.folder / "mask" / f"{base}_alpha.png",
        }

    def read(self, scene: Scene) -> Frame:
        """The image with its layers and mask."""
        files = self._files(scene)
        image = colour(read_picture(files["image"]))
        truth: dict[str, Any] = {n: self._layer(files[n], image) for n in ("reflectance", "shading")}
        truth["mask"] = read_mask(files["mask"], image)
        return Frame(scene, image, self.encoding, truth)

    def _layer(self, path: Path, image: np.ndarray) -> np.ndarray:
        layer = same_size(path, image, read_picture(path))
        return srgb_to_linear(layer) if self.encoding == "srgb" else layer


def _split(name: str) -> tuple[str, int]:
    """Scene and light number of an image.

    >>> _split("bedroom2"), _split("bedroom2_light0")
    (('bedroom2', 0), ('bedroom2', 1))
    """
    match = re.fullmatch(r"(.+)_light([0-9]{1,9})", name)
    return (match[1], int(match[2]) + 1) if match else (name, 0)
