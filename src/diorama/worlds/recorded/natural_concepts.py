"""Natural concept sets: photographs of one scene under changing light (Δi), or folders of images of your own (recorded).

    natural_concepts(root=…, kind=multi_illumination)      25 directions of a flash   Multi-Illumination in the Wild
    natural_concepts(root=…, kind=stereo, min_images=12)   as many as were taken      photometric stereo
    natural_concepts(root=…, kind=mit, min_images=11)      11 lights                  MIT Intrinsic Images
    natural_concepts(root=…, kind=folder)                  <root>/<set>/*.png, as `--layout concepts` writes them

A scene of this world is a whole set and `members` are its images, as in `concepts`. No natural Δa sets are known.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.capabilities import Sets
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.io.images import resize
from diorama.worlds.recorded.mit_intrinsic import MitIntrinsic
from diorama.worlds.recorded.multi_illumination import MultiIllumination
from diorama.worlds.recorded.photometric_stereo import PhotometricStereo
from diorama.worlds.recorded.reading import Recorded, check_side, colour, existing, read_picture

_ENDINGS = (".png", ".jpg", ".jpeg", ".exr")
_NAMED = re.compile(r"(.+?)_?(tex_)?(light|mat)(\d+)temp(\d+)")
Kind = Literal["mit", "stereo", "multi_illumination", "folder"]


@dataclass(frozen=True)
class NaturalConcepts(Recorded, Sets):
    """Sets of photographs, each of one scene.

    root        folder of the data set
    kind        name of the data set, or folder for images of your own
    min_images  sets with fewer images are refused; Kim et al. (ICML 2018) advise at least 20 for a concept
    size        side in pixels of the square to which images are resized, as in the paper; None leaves them as they are
    mip         resolution of Multi-Illumination files

    A folder named like the paper's tells by its name what changes; in all others the light does.
    """

    cite = ("gupta2022",)
    factors: ClassVar[dict[str, str]] = {"member": "0, 1, …: which image of the set"}

    root: str
    kind: Kind = "multi_illumination"
    min_images: int = 20
    size: int | None = 64
    mip: int = 2

    def __post_init__(self) -> None:
        check_side("natural_concepts", self.size)
        if not self._sets:
            raise InputError(f"natural_concepts: {self.root} has no sub-folder with images; one folder is one set")
        few = min(self._sets, key=lambda name: len(self._sets[name]))
        if (count := len(self._sets[few])) < self.min_images:
            raise InputError(
                f"natural_concepts: the set {few!r} has {count} images, fewer than min_images={self.min_images};"
                f" add some, or accept it with min_images={count}"
            )

    @property
    def note(self) -> str:
        """The number of images of a set, with a warning if there are few."""
        counts = sorted({len(members) for members in self._sets.values()})
        sizes = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        few = ", fewer than the 20 that Kim et al. (2018) advise" if counts[0] < 20 else ""
        return f"{len(self)} natural concept sets of {sizes} images{few}"

    @cached_property
    def _source(self) -> Any:
        """The world that reads the photos; None for folders."""
        if self.kind == "multi_illumination":
            return MultiIllumination(self.root, self.mip)
        worlds = {"mit": MitIntrinsic, "stereo": PhotometricStereo}
        return None if self.kind == "folder" else worlds[self.kind](self.root)

    @cached_property
    def _sets(self) -> dict[str, list[Any]]:
        """The lights, or files, of every set, in order."""
        if self._source is not None:
            scenes = dict(self._source.scene(i) for i in range(len(self._source)))
            if self.kind == "mit":  # its own image and the ten further lights
                return {name: list(range(11)) for name in scenes}
            return {name: list(self._source.lights(scene)) for name, scene in scenes.items()}
        base = existing("natural_concepts", self.root, "one sub-folder of images per set")
        files_of = {path.name: _pictures(path) for path in sorted(base.iterdir()) if path.is_dir()}
        return {name: files for name, files in files_of.items() if files and name != "randoms"}

    @property
    def names(self) -> list[str]:
        """The names of the sets."""
        return list(self._sets)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th set, by name."""
        name = self.names[index]
        match = _NAMED.fullmatch(name) if self.kind == "folder" else None
        change = "albedo" if match and match[3] == "light" else "light"
        about = {"change": change, "setting": f"natural-{self.kind}", "index": index}
        about["temperature"] = int(match[5]) if match else None
        return name, Scene("natural_concepts", {"name": name, **about, "member": 0})

    def members(self, concept: Scene) -> list[Scene]:
        """The images of a set in order."""
        return [concept.changed({"member": i}) for i in range(len(self._sets[concept.params["name"]]))]

    def do(self, scene: Scene, *, member: int) -> Scene:
        """Another image of the set."""
        count = len(self._sets[scene.params["name"]])
        if member not in range(count):
            raise InputError(f"natural_concepts: member={member!r}: {scene.params['name']} has 0 to {count - 1}")
        return scene.changed({"member": member})

    def fingerprint(self) -> str:
        """The digest of every file."""
        if self._source is not None:
            return str(self._source.fingerprint())
        return files_digest([path for files in self._sets.values() for path in files], self.folder)

    def read(self, scene: Scene) -> Frame:
        """The image of a member; that of the first for a set."""
        member = self._sets[scene.params["name"]][scene.params["member"]]
        if self._source is None:
            image, encoding = colour(read_picture(member)), "linear" if member.suffix == ".exr" else "srgb"
            return Frame(scene, self._scaled(image), encoding, {})  # type: ignore[arg-type]
        first = dict(self._source.scene(i) for i in range(len(self._source)))[scene.params["name"]]
        frame = self._source.render([self._source.do(first, light=member)])[0]
        mask = {"mask": self._scaled(frame.mask.astype(np.float32)) > 0.5} if "mask" in frame.truth else {}
        return Frame(scene, self._scaled(frame.image), frame.encoding, mask)

    def _scaled(self, layer: np.ndarray) -> np.ndarray:
        return layer if self.size is None else resize(layer, self.size, self.size).astype(np.float32)


def _pictures(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS)
