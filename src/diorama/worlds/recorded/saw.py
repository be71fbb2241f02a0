"""Shading Annotations in the Wild: photos with pixels labelled smooth, shadow boundary or edge (recorded)."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.names import inside
from diorama.io.saved import read_array
from diorama.worlds.recorded.iiw import read_judgements
from diorama.worlds.recorded.reading import Recorded, colour, existing, natural, read_picture, same_size

_LABELS = (0, 1, 2, 100)


@dataclass(frozen=True)
class Saw(Recorded):
    """The released folders: `saw_images_512/<id>.png`, `saw_pixel_labels/<settings>/<id>.npy`,
    `saw_splits/<split>_ids.npy`.

    root   folder that holds the released folders
    split  one of the released splits; all for every photo

    `truth["factors"]["saw"]` is an (h, w) map: 0 normal or depth discontinuity, 1 shadow boundary, 2 smooth, 100 ignored; a
    photo may have no label at all. `factors["judgements"]` is the content of `saw_annotations/<id>.json`, if it exists, for
    WHDR, which ignores its comparisons of shading (`compare_what` "S"). Photos are sRGB.
    """

    cite = ("kovacs2017",)
    truth: ClassVar[tuple[str, ...]] = ("factors",)

    root: str
    split: Literal["all", "train", "val", "test"] = "test"

    def __post_init__(self) -> None:
        existing("saw", self.root, "saw_images_512, saw_pixel_labels and saw_splits")
        if not self.names:
            raise InputError(f"saw: no photo of split {self.split!r} is in {self.root}")

    @cached_property
    def _labels(self) -> Path:
        """The only folder of labels; its name encodes the settings of the labels."""
        folders = [p for p in (self.folder / "saw_pixel_labels").glob("*") if p.is_dir()]
        if len(folders) != 1:
            raise InputError(f"saw: saw_pixel_labels holds {len(folders)} folders of labels, expected one")
        return folders[0]

    @cached_property
    def names(self) -> list[str]:
        """The ids of the split, in the order of the list."""
        if self.split == "all":
            return sorted((p.stem for p in self._labels.glob("*.npy")), key=natural)
        path = self.folder / "saw_splits" / f"{self.split}_ids.npy"
        listed = read_array(path)
        if listed.ndim != 1 or listed.dtype.kind not in "iuU":
            raise InputError(f"{path} is not a list of ids: it holds {listed.dtype} of shape {listed.shape}")
        return [str(i) for i in listed.tolist()]

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th photo, by id."""
        return self.names[index], Scene("saw", {"photo": self.names[index]})

    def fingerprint(self) -> str:
        """The digest of the photos, labels and judgements of the split."""
        files = (p for name in self.names for p in self._files(name))
        return files_digest([p for p in files if p.is_file()], self.folder)

    def _files(self, name: str) -> tuple[Path, Path, Path]:
        photo, labels = inside(self.folder / "saw_images_512", f"{name}.png"), inside(self._labels, f"{name}.npy")
        return photo, labels, inside(self.folder / "saw_annotations", f"{name}.json")

    def read(self, scene: Scene) -> Frame:
        """The photo with its labels, and its judgements where there are any."""
        photo, path, judged = self._files(scene.params["photo"])
        image, labels = colour(read_picture(photo)), read_array(path)
        if labels.ndim != 2 or not np.isin(labels, _LABELS).all():
            raise InputError(f"{path} is not a map of the labels 0, 1, 2 and 100")
        factors: dict[str, Any] = {"saw": same_size(path, image, labels)}
        if judged.is_file():
            factors["judgements"] = read_judgements(judged)
        return Frame(scene, image, "srgb", {"factors": factors})
