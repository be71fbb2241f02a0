"""Multi-Illumination in the Wild: indoor scenes, each under 25 directions of a flash (recorded)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.worlds.recorded.reading import RecordedLights, colour, existing, read_picture

#: Directions of the flash.
LIGHTS = 25


@dataclass(frozen=True)
class MultiIllumination(RecordedLights):
    """`<scene>/dir_<0…24>_mip<m>.jpg` or .exr, `<scene>/materials_mip<m>.png`; `do(scene, light=i)` is direction i.

    root  folder with one sub-folder per scene
    mip   resolution of the files that are read, the number in their names: 2 is a quarter of the full side

    JPEGs are tone-mapped sRGB, EXRs linear. The material map, if there is one, is `truth["parts"]` (its colours, numbered
    in the order of their values). There is no true reflectance: `invariance` is the score for this world.
    The chrome and gray probes are part of the picture and are not masked.
    """

    cite = ("murmann2019",)
    factors: ClassVar[dict[str, str]] = {"light": "0 to 24: the direction of the flash"}

    root: str
    mip: int = 2

    def __post_init__(self) -> None:
        base = existing("multi_illumination", self.root, "everett_kitchen2, …, each with dir_0_mip2.jpg")
        if not self.names:
            levels = sorted({p.stem.rpartition("mip")[2] for p in base.glob("*/dir_0_mip*.*")})
            hint = f"; there are mip={', '.join(levels)}" if levels else ""
            raise InputError(f"multi_illumination: no scene in {self.root} has dir_0_mip{self.mip}{hint}")

    @cached_property
    def names(self) -> list[str]:
        """The scenes in alphabetical order."""
        return sorted({path.parent.name for path in self.folder.glob(f"*/dir_0_mip{self.mip}.*")})

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th scene, by name, under direction 0."""
        return self.names[index], Scene("multi_illumination", {"scene": self.names[index], "light": 0})

    def lights(self, scene: Scene) -> list[int]:
        """The directions of the flash."""
        return list(range(LIGHTS))

    def fingerprint(self) -> str:
        """The digest of every file of this size."""
        return files_digest(
            [p for name in self.names for p in (self.folder / name).glob(f"*_mip{self.mip}.*")], self.folder
        )

    def read(self, scene: Scene) -> Frame:
        """The photo, with the material map if there is one."""
        folder = self.folder / scene.params["scene"]
        stem = f"dir_{scene.params['light']}_mip{self.mip}"
        path = next((p for end in (".exr", ".jpg", ".png") if (p := folder / f"{stem}{end}").is_file()), None)
        if path is None:
            raise InputError(f"{folder / stem}.jpg is missing: a scene has {LIGHTS} directions")
        encoding = "linear" if path.suffix == ".exr" else "srgb"
        materials = folder / f"materials_mip{self.mip}.png"
        truth = {"parts": _materials(materials)} if materials.is_file() else {}
        return Frame(scene, colour(read_picture(path)), encoding, truth)  # type: ignore[arg-type]


def _materials(path: Path) -> np.ndarray:
    """The material map with colours numbered from 0."""
    coded = colour(read_picture(path)).astype(np.float64) @ np.array([65536.0, 256.0, 1.0])
    return np.unique(coded, return_inverse=True)[1].reshape(coded.shape)
