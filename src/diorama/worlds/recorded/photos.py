"""Labelled photos: a folder of class folders, a list of files (MIT67) or a table (MAMe), one photo a scene (recorded).

    photos/cat/1.jpg           class folders; or cat.1.jpg without folders, as Kaggle names them
    TestImages.txt             lines class/file.jpg, the files in Images beside it (MIT Indoor 67)
    MAMe_dataset.csv           columns `Image file`, `Medium`, `Subset`, the files in data beside it (MAMe)
    any.csv                    columns `filename`, `label` and perhaps `subset`

A photo is resized to 8/7 of `size`, whatever its shape, and centre-cropped, as in the Attribution Confusion Matrix (256 and
224). Resizing is antialiased bilinear and agrees with Pillow's to about one level of 255.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar

import numpy as np

from diorama.core.capabilities import Labelled
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import file_digest, files_digest
from diorama.io.files import read_text
from diorama.io.names import inside
from diorama.io.photos import fitted, read_photo, split
from diorama.io.tables import read_table
from diorama.worlds.recorded.reading import Recorded, check_side

#: Columns of the file and the class in a table of photos, as different data sets call them.
_COLUMNS = (("Image file", "Medium", "Subset"), ("filename", "label", "subset"))


@dataclass(frozen=True)
class Photos(Recorded, Labelled):
    """Square photos with the index of their class.

    source      folder of class folders, list of files or table (see the text)
    images      folder of the files, if they are not beside the list or table
    subset      part of a table that is used: train, val or test as it names them; None for all
    size        side of the images in pixels; the Attribution Confusion Matrix has 224
    crop        resizes to 8/7 of `size` and crops the centre; False resizes the whole photo to the square
    train       number of photos of every class that are left out because a head was fitted on them
    split_seed  seed that drew those photos, the same as the head's
    labels      comma-separated class names in the model's order; None for alphabetical order

    A damaged photo raises Excluded with its name: cases that show it are excluded.
    """

    located = ("source", "images")
    truth: ClassVar[tuple[str, ...]] = ("label",)

    source: str
    images: str | None = None
    subset: str | None = None
    size: int = 224
    crop: bool = True
    train: int = 0
    split_seed: int = 0
    labels: str | None = None

    def __post_init__(self) -> None:
        check_side("photos", self.size)
        if self.train and not Path(self.source).expanduser().is_dir():
            raise InputError(f"photos: train={self.train} is for folders; a list or table already names its photos")
        missing = [path for path in self.files.values() if not path.is_file()]
        if missing:
            raise InputError(f"photos: {missing[0]} and {len(missing) - 1} more of {self.source} are missing")
        unknown = sorted(set(self._by_class) - set(self.classes))
        if unknown:
            raise InputError(f"photos: labels={self.labels!r} does not name the class {unknown[0]!r}")

    @cached_property
    def _base(self) -> Path:
        """The folder that names are relative to."""
        if self.images is not None:
            return Path(self.images).expanduser()
        source = Path(self.source).expanduser()
        if source.is_dir():
            return source
        beside = source.parent / ("Images" if source.suffix == ".txt" else "data")
        return beside if beside.is_dir() else source.parent

    @cached_property
    def _by_class(self) -> dict[str, list[str]]:
        """The names of the photos of every class."""
        source = Path(self.source).expanduser()
        if source.suffix in (".txt", ".csv") and source.is_file():
            by_class: dict[str, list[str]] = {}
            for name, label in _listed(source, self.subset):
                by_class.setdefault(label, []).append(name)
            if not by_class:
                raise InputError(
                    f"photos: {source} lists no photo" + (f" of subset {self.subset!r}" * bool(self.subset))
                )
            return {label: sorted(by_class[label]) for label in sorted(by_class)}
        learnt, held_out = split(source, self.train, self.split_seed)
        known = {file_digest(p) for files in learnt.values() for p in files}
        if known:  # also left out are copies of these photos under other names
            held_out = {label: [p for p in ps if file_digest(p) not in known] for label, ps in held_out.items()}
        return {label: [str(p.relative_to(source).as_posix()) for p in files] for label, files in held_out.items()}

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their labels."""
        return tuple(n.strip() for n in self.labels.split(",")) if self.labels else tuple(self._by_class)

    @cached_property
    def _class_of(self) -> dict[str, str]:
        return {name: label for label, names in self._by_class.items() for name in names}

    @cached_property
    def files(self) -> dict[str, Path]:
        """Every photo by name."""
        return {name: inside(self._base, name) for name in self._class_of}

    @cached_property
    def names(self) -> list[str]:
        """The photos, cycling through the classes, so that the first few show every class."""
        return [name for names in zip_longest(*self._by_class.values()) for name in names if name is not None]

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th photo by name."""
        name = self.names[index]
        return name.replace("/", "__"), Scene("photos", {"image": name})

    def label(self, scene: Scene) -> int:
        """The class of a photo, without opening it."""
        name = scene.params["image"]
        if name not in self._class_of:
            raise InputError(f"photos: {self.source} has no photo {name!r}")
        return self.classes.index(self._class_of[name])

    @cached_property
    def contents(self) -> frozenset[str]:
        """The digests of all photos, on which a model must not have been fitted."""
        return frozenset(map(file_digest, self.files.values()))

    def fingerprint(self) -> str:
        """The digest of all photos by name and content."""
        return files_digest(self.files.values(), self._base)

    def read(self, scene: Scene) -> Frame:
        """The photo with its label."""
        label, path = self.label(scene), self.files[scene.params["image"]]
        image = fitted(read_photo(path), self.size, self.crop)
        return Frame(scene, image.astype(np.float32) / np.float32(255), "srgb", {"label": label})


def _listed(source: Path, subset: str | None) -> list[tuple[str, str]]:
    """(file, class) of a list or table."""
    if source.suffix == ".txt":
        names = [line.strip() for line in read_text(source).splitlines() if line.strip()]
        bad = [name for name in names if "/" not in name]
        if bad:
            raise InputError(f"photos: {source} has the line {bad[0]!r}; lines are class/file.jpg")
        return [(name, name.rpartition("/")[0]) for name in names]
    head, rows = read_table(source)
    columns = next((c for c in _COLUMNS if set(c[:2]) <= set(head)), None)
    if columns is None:
        raise InputError(f"photos: {source} has the columns {', '.join(head)[:200]}; needed are filename and label")
    return [(row[columns[0]], row[columns[1]]) for row in rows if subset is None or row.get(columns[2]) == subset]
