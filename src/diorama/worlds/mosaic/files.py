"""Finished mosaics on disk: images with a table of the columns filename, filename_0 …, label_0 …, target_class."""

import csv
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from diorama.core.capabilities import Labelled, Listed
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, digest
from diorama.core.writing import Writing
from diorama.io.digests import files_digest
from diorama.io.files import read_text
from diorama.io.images import decode, write_png
from diorama.io.names import case_path, distinct, inside
from diorama.io.photos import read_photo
from diorama.io.tables import read_table
from diorama.metrics.confusion import edges

#: Labels must be below this: no classifier has so many classes.
CLASSES = 1_000_000
#: Pillow's default quality, at which the published mosaics were written.
QUALITY = 75


def is_finished(table: Path) -> bool:
    """Whether a CSV file lists finished mosaics."""
    return "target_class" in read_text(table).partition("\n")[0]


class Finished(Listed, Labelled):
    """The cells of finished mosaics as a world: scene {"file", "cell", "photo"} is one cell of one file.

    Files are looked for in `data` beside the table, or beside the table itself. Labels are numbers, or names, which are
    numbered in alphabetical order.
    """

    truth = ("label",)
    factors: ClassVar[dict[str, str]] = {}

    def __init__(self, table: Path) -> None:
        self.table = table
        self.base = table.parent / "data" if (table.parent / "data").is_dir() else table.parent
        head, self.rows = read_table(table)
        if not self.rows:
            raise InputError(f"mosaic: {table} lists no mosaic")
        self.cells = sum(name.startswith("label_") for name in head)
        asked = [f"{what}_{i}" for what in ("filename", "label") for i in range(self.cells)]
        lacking = [name for name in ("filename", "target_class", "label_0", *asked) if name not in head]
        if lacking:
            raise InputError(f"mosaic: {table} has no column {lacking[0]!r}")
        missing = [row["filename"] for row in self.rows if not inside(self.base, row["filename"]).is_file()]
        if missing:
            raise InputError(f"mosaic: {missing[0]} and {len(missing) - 1} more mosaics of {table} are missing")

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The class names in alphabetical order; for labels that are numbers, "0", "1", … up to the largest label."""
        used = {row[head] for row in self.rows for head in row if head.startswith("label_") or head == "target_class"}
        if not all(text.isascii() and text.isdecimal() for text in used):
            return tuple(sorted(used))
        last = max(used, key=lambda text: (len(text), text))
        if len(last) > len(str(CLASSES)) or int(last) >= CLASSES:
            raise InputError(
                f"mosaic: {self.table} has the label {last[:40]}; labels are class numbers below {CLASSES}"
            )
        return tuple(str(i) for i in range(int(last) + 1))

    @cached_property
    def size(self) -> int:
        """The side of a cell in the first mosaic."""
        return read_photo(self.base / self.rows[0]["filename"]).shape[0] // round(self.cells**0.5)

    @cached_property
    def mosaics(self) -> list[tuple[str, int, list[dict[str, Any]]]]:
        """The name, target and cells of every mosaic."""
        found = []
        for row in self.rows:
            scenes = [self._scene(row, i) for i in range(self.cells)]
            cells = [{"label": self.label(scene), "image": scene.to_json()} for scene in scenes]
            found.append((self._names[row["filename"]], self._number(row["target_class"]), cells))
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.classes)}

    @cached_property
    def _names(self) -> dict[str, str]:
        """The case name of every file: the file name without folder and ending, unless two files would share that name."""
        return distinct([row["filename"] for row in self.rows])

    def _number(self, label: str) -> int:
        if label not in self._numbers:
            raise InputError(f"mosaic: {self.table} writes the label {label[:40]!r}; write it as {int(label)}")
        return self._numbers[label]

    def check(self, grid: int) -> None:
        """Raise InputError unless the table has grid² cells."""
        if self.cells != grid**2:
            raise InputError(
                f"mosaic: {self.table} has {self.cells} cells a mosaic: write grid={round(self.cells**0.5)}"
            )

    def __len__(self) -> int:
        return len(self.rows) * self.cells

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th cell over all mosaics."""
        row, cell = self.rows[index // self.cells], index % self.cells
        return f"{row['filename']}-{cell}", self._scene(row, cell)

    def _scene(self, row: dict[str, str], cell: int) -> Scene:
        return Scene("finished", {"file": row["filename"], "cell": cell, "photo": row[f"filename_{cell}"]})

    @cached_property
    def _labels(self) -> dict[str, list[int]]:
        heads = [f"label_{i}" for i in range(self.cells)]
        return {row["filename"]: [self._number(row[head]) for head in heads] for row in self.rows}

    def label(self, scene: Scene) -> int:
        """The class of a cell, by the table."""
        return self._labels[scene.params["file"]][scene.params["cell"]]

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The cells, cut from their files."""
        files = {name: read_photo(self.base / name) for name in {scene.params["file"] for scene in scenes}}
        return [self._frame(scene, files[scene.params["file"]]) for scene in scenes]

    def _frame(self, scene: Scene, image: np.ndarray) -> Frame:
        grid = round(self.cells**0.5)
        y, x = divmod(scene.params["cell"], grid)
        ys, xs = edges(image.shape[0], grid), edges(image.shape[1], grid)
        cut = image[ys[y] : ys[y + 1], xs[x] : xs[x + 1]]
        return Frame(scene, cut.astype(np.float32) / np.float32(255), "srgb", {"label": self.label(scene)})

    def fingerprint(self) -> str:
        """The digest of the table and the mosaics."""
        return files_digest([self.table, *(self.base / row["filename"] for row in self.rows)], self.table.parent)


def write_table(path: Path, rows: Iterable[tuple[str, int, list[tuple[str, int]]]]) -> None:
    """Write (file, target, (image, label) of every cell) with the official columns."""
    rows = list(rows)
    count = len(rows[0][2])
    heads = [
        "filename",
        *(f"filename_{i}" for i in range(count)),
        *(f"label_{i}" for i in range(count)),
        "target_class",
    ]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        for name, target, cells in rows:
            writer.writerow([name, *(image for image, _ in cells), *(label for _, label in cells), target])


def write_mosaics(ask: Writing) -> Path:
    """Write mosaics with the official table of the Attribution Confusion Matrix, whose path is returned.

    `data/<case>.png` (.jpg where the world recompresses) and `mosaics.csv`.
    """
    ask.unchanged("mosaic")
    if ask.seed:
        raise InputError("layout 'mosaic' writes a mosaic world as it is: write mosaic(…, seed=…), no --seed")
    world, out = ask.world.object, ask.out
    (out / "data").mkdir(parents=True, exist_ok=True)
    rows = []
    count = min(ask.count, len(world))
    for i in range(count):
        name, scene = world.scene(i)
        file = case_path(Path(), name, ".jpg" if world.recompress else ".png").as_posix()
        if world.recompress:
            (out / "data" / file).write_bytes(jpeg(world.composed(scene)))
        else:
            write_png(out / "data" / file, world.composed(scene))
        cells = [(_spelt(cell["image"]["params"]), cell["label"]) for cell in scene.params["cells"]]
        rows.append((file, scene.params["target"], cells))
        ask.progress(i + 1, count)
    write_table(out / "mosaics.csv", rows)
    return out / "mosaics.csv"


def _spelt(image: dict[str, Any]) -> str:
    """A cell's image in the table: the photo's file name, or the digest of a staged scene."""
    return image["image"] if isinstance(image.get("image"), str) else digest(image)


def jpeg(image: np.ndarray) -> bytes:
    """An (h, w, 3) uint8 image as JPEG bytes of Pillow's default quality."""
    import cv2

    done, data = cv2.imencode(".jpg", np.ascontiguousarray(image[:, :, ::-1]), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        raise ValueError("cannot encode a JPEG picture")
    return data.tobytes()


def unjpeg(data: bytes) -> np.ndarray:
    """JPEG bytes as an (h, w, 3) uint8 image."""
    return decode(data, "a mosaic")
