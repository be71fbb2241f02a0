"""Your own photos: a folder of images with part masks, from which parts are removed by blur, mean or inpainting (recorded).

    images/cat.jpg           images/dogs/rex.png        a sub-folder is a class
    masks/cat/ear.png        masks/dogs/rex/ear.png     one mask per part, white where the part is

What a removed part covered is unknown and can only be guessed, so a note beside every score names the operator.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from diorama.core.capabilities import Parted
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import file_digest, files_digest
from diorama.io.images import read_png, read_rgb
from diorama.io.names import check_distinct, inside
from diorama.io.photos import ENDINGS, pictures
from diorama.worlds.recorded.reading import Recorded, check_side


@dataclass(frozen=True)
class Folder(Recorded, Parted):
    """Images and their part masks, read from two folders.

    images   folder of PNG and JPEG files; a sub-folder is a class
    masks    folder with one folder per image, in it one mask per part, white where the part is
    size     side in pixels to which images are scaled and centre-cropped; None leaves them as they are
    removal  what replaces a removed part: the image blurred, its mean colour, or inpainting
    labels   comma-separated sub-folder names in the model's order of classes; None for alphabetical order

    `do(scene, ear=None)` removes the part named ear.
    """

    located = ("images", "masks")

    images: str
    masks: str
    size: int | None = None
    removal: Literal["blur", "mean", "inpaint"] = "blur"
    labels: str | None = None

    def __post_init__(self) -> None:
        for name in ("images", "masks"):
            if not Path(getattr(self, name)).expanduser().is_dir():
                raise InputError(f"folder: there is no folder {getattr(self, name)!r}; {name} is a folder of pictures")
        check_side("folder", self.size)
        if not self.names:
            raise InputError(f"folder: {self.images} holds no image ({', '.join(ENDINGS)})")
        check_distinct(self.names, f"folder: {self.images}")
        if not self.part_names:
            raise InputError(f"folder: {self.masks} holds no mask; write {self.masks}/{self.names[0]}/<part>.png")

    @cached_property
    def names(self) -> list[str]:
        """The images, each by its path without the ending."""
        base = Path(self.images).expanduser()
        return sorted(str(path.relative_to(base).with_suffix("")) for path in pictures(base))

    @cached_property
    def part_names(self) -> tuple[str, ...]:
        """Every part that some image has a mask for."""
        base = Path(self.masks).expanduser()
        return tuple(sorted({path.stem for name in self.names for path in (base / name).glob("*.png")}))

    @property
    def part_ids(self) -> dict[str, tuple[int, ...]]:
        """The id of each part in the part map."""
        return {name: (i,) for i, name in enumerate(self.part_names, 1)}

    @property
    def note(self) -> str:
        """The note beside every score on this world."""
        return f"parts are removed by {self.removal}"

    @property
    def factors(self) -> dict[str, str]:
        """The parts that can be removed."""
        return dict.fromkeys(self.part_names, "None removes the part")

    @cached_property
    def _classes(self) -> list[str]:
        if self.labels:
            return [name.strip() for name in self.labels.split(",")]
        return sorted({str(Path(name).parent) for name in self.names if Path(name).parent != Path()})

    @property
    def truth(self) -> tuple[str, ...]:
        """The names of the truth; labels are known if images are in class folders."""
        return ("parts", "mask", *(("label",) if self._classes else ()))

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th image by name."""
        name = self.names[index]
        return name.replace("/", "__"), Scene("folder", {"image": name, "without": [], "removal": self.removal})

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The image without the named parts."""
        for name, value in changes.items():
            if name not in self.part_names:
                raise InputError(f"folder cannot change {name!r}; {did_you_mean(name, list(self.part_names))}")
            if value is not None:
                raise InputError(f"folder: {name}={value!r}; a part of a photo can only be removed, with {name}=None")
        return scene.changed({"without": sorted({*scene.params["without"], *changes})})

    @cached_property
    def contents(self) -> frozenset[str]:
        """The digests of all images, on which a model must not have been fitted."""
        return frozenset(map(file_digest, pictures(Path(self.images).expanduser())))

    def fingerprint(self) -> str:
        """The digest of every image and mask."""
        bases = [Path(place).expanduser() for place in (self.images, self.masks)]
        return "/".join(files_digest(pictures(base), base) for base in bases)

    def read(self, scene: Scene) -> Frame:
        """The image without the removed parts, with its part map."""
        name, without = scene.params["image"], scene.params["without"]
        image = self._square(_read(Path(self.images).expanduser(), name))
        parts = np.zeros(image.shape[:2], np.uint8)
        for part, (i,) in self.part_ids.items():
            parts[self._mask(name, part, image.shape[:2])] = i
        if without:
            removed = np.isin(parts, [self.part_ids[part][0] for part in without])
            image = _REMOVE[self.removal](image, removed)
            parts = np.where(removed, 0, parts).astype(np.uint8)
        truth: dict[str, Any] = {"parts": parts, "mask": parts > 0}
        if self._classes:
            truth["label"] = self._label(name)
        return Frame(scene, image.astype(np.float32) / np.float32(255), "srgb", truth)

    def _label(self, name: str) -> int:
        group = str(Path(name).parent)
        if group not in self._classes:
            raise InputError(f"folder: {name} is in no class folder of {', '.join(self._classes[:5])}")
        return self._classes.index(group)

    def _mask(self, name: str, part: str, shape: tuple[int, ...]) -> np.ndarray:
        path = Path(self.masks).expanduser() / name / f"{part}.png"
        if not path.is_file():
            return np.zeros(shape, bool)
        stored = read_png(path)
        mask = self._square((stored if stored.ndim == 2 else stored.max(axis=2)) > 0)
        if mask.shape != shape:
            (h, w), (ih, iw) = mask.shape, shape
            raise InputError(f"{path} is {w}×{h} pixels, its image {iw}×{ih}: masks have the size of their image")
        return mask

    def _square(self, image: np.ndarray) -> np.ndarray:
        """The image scaled so that its shorter side is `size`, then centre-cropped; masks by nearest neighbour."""
        if self.size is None:
            return image
        import cv2

        scale = self.size / min(image.shape[:2])
        width, height = (max(self.size, round(side * scale)) for side in image.shape[1::-1])
        how = cv2.INTER_NEAREST if image.dtype == bool else cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
        scaled = cv2.resize(image.view(np.uint8) if image.dtype == bool else image, (width, height), interpolation=how)
        top, left = (height - self.size) // 2, (width - self.size) // 2
        return scaled[top : top + self.size, left : left + self.size].astype(image.dtype)


def _read(base: Path, name: str) -> np.ndarray:
    """An image (h, w, 3) uint8; a damaged file is named."""
    return read_rgb(
        next(p for end in ENDINGS for p in (inside(base, name + end), inside(base, name + end.upper())) if p.is_file())
    )


def _blur(image: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """The image with the part's pixels from a strongly blurred copy (σ a tenth of the longer side)."""
    import cv2

    blurred = cv2.GaussianBlur(image, (0, 0), max(image.shape[:2]) / 10)
    return np.where(gone[:, :, None], blurred, image)


def _mean(image: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """The image with the part's pixels in the mean colour of all others."""
    rest = image[~gone] if not gone.all() else image.reshape(-1, 3)
    return np.where(gone[:, :, None], rest.mean(axis=0), image)


def _inpaint(image: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """The image with the part filled from its border by the fast marching method (Telea 2004)."""
    import cv2

    return cv2.inpaint(np.ascontiguousarray(image), gone.astype(np.uint8), 3, cv2.INPAINT_TELEA)


_REMOVE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {"blur": _blur, "mean": _mean, "inpaint": _inpaint}
