"""FunnyBirds from disk: the published folder, or one in its layout, with its interventions (recorded).

The folder has whole birds, each of the 32 part subsets of a test bird, and a test bird without one background object. `do`
gives exactly these; anything else is an error that says what is recorded. Part maps exist for whole birds only, so frames
of interventions have no `parts`, `mask` and `boxes`.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diorama.core.capabilities import Parted
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.files import read_json
from diorama.worlds.birds.birds import Birds, boxes
from diorama.worlds.birds.classes import CATALOGUE, PARTS, SUBSETS
from diorama.worlds.birds.layout import decode_parts, image_path, read_image, removal_path, subset_path
from diorama.worlds.birds.metadata import Split, from_record
from diorama.worlds.birds.scenes import flat_factors
from diorama.worlds.recorded.reading import Recorded


@dataclass(frozen=True, slots=True)
class FunnybirdsRecorded(Recorded, Parted):
    """The birds of one split of the published folder.

    root   folder that holds classes.json
    split  train or test; interventions are recorded for test only
    """

    root: str
    split: Split = "test"

    cite = ("hesse2023",)
    factors: ClassVar[dict[str, str]] = {
        **dict.fromkeys(PARTS, "None: removed; the recorded variant: there"),
        "background_without": "the index of the one background object to remove",
    }
    truth: ClassVar[tuple[str, ...]] = ("label", "parts", "mask", "boxes", "factors")
    part_names: ClassVar[tuple[str, ...]] = PARTS
    part_ids: ClassVar[dict[str, tuple[int, ...]]] = Birds.part_ids
    background_id = Birds.background_id

    def __post_init__(self) -> None:
        if not (Path(self.root) / "classes.json").is_file():
            raise InputError(f"root={self.root!r}: no classes.json there; give the folder FunnyBirds/ itself")

    @property
    def classes(self) -> tuple[dict[str, int], ...]:
        """The variants of each class."""
        path = Path(self.root) / "classes.json"
        listed = read_json(path)
        if not isinstance(listed, list):
            raise InputError(f"{path} holds no list of classes: fetch the file again")
        return tuple(_variants(i, entry, path) for i, entry in enumerate(listed))

    @property
    def names(self) -> list[dict[str, Any]]:
        """The samples of the split as recorded."""
        return _samples(str(self.root), self.split)

    def scene(self, index: int) -> tuple[str, Scene]:
        """Sample `index` of the split, as it was recorded, and its name."""
        if not 0 <= index < len(self):
            raise InputError(f"sample {index!r}: the {self.split} split has samples 0 to {len(self) - 1}")
        params = self.names[index]
        scene = Scene("funnybirds_recorded", {"index": int(index), "without": None, **params})
        return f"{params['label']}/{index:06d}", scene

    def fingerprint(self) -> str:
        """The digest of the split's metadata and images, so that keys depend on the data and not on its path."""
        root = Path(self.root)
        images = (path for folder in root.glob(f"{self.split}*") for path in folder.rglob("*.png"))
        return files_digest([root / "classes.json", root / f"dataset_{self.split}.json", *images], root)

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """A recorded intervention: parts removed or put back, or one background object removed."""
        new = scene
        for name, value in changes.items():
            if name not in self.factors:
                raise InputError(f"recorded birds have no {name!r}; {did_you_mean(name, list(self.factors))}")
            new = self._without(new, value) if name == "background_without" else self._part(new, name, value)
        if new.params["without"] is not None and new.params["parts"] != self._whole(new):
            raise InputError("not recorded: a background object and parts removed at once; remove one or the other")
        return new

    def _part(self, scene: Scene, part: str, value: Any) -> Scene:
        own = self._whole(scene)[part]
        if isinstance(value, str) and value.lower() == "none":
            value = None
        if value is not None and value != own:
            raise InputError(f"{part}={value!r}: recorded are None (removed) and {own!r} (the bird's own)")
        return scene.changed({"parts": scene.params["parts"] | {part: value}})

    def _without(self, scene: Scene, value: Any) -> Scene:
        count = len(scene.params["background"])
        if value is not None and (not isinstance(value, int | np.integer) or not 0 <= value < count):
            raise InputError(f"background_without={value!r}: give one index from 0 to {count - 1}")
        return scene.changed({"without": None if value is None else int(value)})

    def _whole(self, scene: Scene) -> dict[str, int | None]:
        return self.names[scene.params["index"]]["parts"]

    def subsets(self, scene: Scene) -> dict[tuple[str, ...], Scene]:
        """All 32 part interventions by the parts they keep; () is the bare body."""
        return {subset: self.do(scene, **{p: None for p in PARTS if p not in subset}) for subset in SUBSETS}

    def removals(self, scene: Scene) -> dict[int, Scene]:
        """The scene without each background object, by the object's index."""
        return {i: self.do(scene, background_without=i) for i in range(len(scene.params["background"]))}

    def read(self, scene: Scene) -> Frame:
        """The recorded image; an InputError names a file that is not there."""
        root, p = Path(self.root), scene.params
        truth: dict[str, Any] = {"label": p["label"], "factors": _factors(p)}
        path = self._path(scene)
        if path == image_path(root, self.split, p["label"], p["index"]):
            parts = decode_parts(read_image(image_path(root, f"{self.split}_part_map", p["label"], p["index"])))
            mask = (parts > 0) & (parts < self.background_id)
            truth |= {"parts": parts, "mask": mask, "boxes": boxes(parts)}
        return Frame(scene, read_image(path).astype(np.float32) / 255, "srgb", truth)

    def _path(self, scene: Scene) -> Path:
        root, p = Path(self.root), scene.params
        if p["without"] is None and p["parts"] == self._whole(scene):
            return image_path(root, self.split, p["label"], p["index"])
        if self.split != "test":
            raise InputError("interventions are recorded for the test split only; use split='test'")
        if p["without"] is not None:
            return removal_path(root, p["label"], p["index"], p["without"])
        present = [part for part in PARTS if p["parts"][part] is not None]
        return subset_path(root, p["label"], p["index"], present)


def _factors(params: dict[str, Any]) -> dict[str, Any]:
    factors = flat_factors(params)
    return factors | {"background": factors["background"] - (params["without"] is not None)}


def _variants(index: int, entry: Any, path: Path) -> dict[str, int]:
    """The part variants of a class, each one of the catalogue."""
    parts = entry.get("parts") if isinstance(entry, dict) else None
    variants = parts if isinstance(parts, dict) else {}
    wrong = [part for part in PARTS if variants.get(part) not in range(len(CATALOGUE[part]))]
    if wrong:
        raise InputError(f"{path}: class {index} has no {wrong[0]} of the catalogue: fetch the file again")
    return {part: int(variants[part]) for part in PARTS}


@lru_cache(maxsize=4)
def _samples(root: str, split: str) -> list[dict[str, Any]]:
    return [from_record(record) for record in read_json(Path(root) / f"dataset_{split}.json")]
