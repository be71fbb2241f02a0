"""Saved explanations: maps that were computed elsewhere, read from a folder by case and target class."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from diorama.core.answers import Answer, Boxes, Heatmap, Mask
from diorama.core.contracts import Explainer, Saved
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.io.digests import files_digest
from diorama.io.names import case_path
from diorama.io.saved import ENDINGS, read_array


@dataclass(frozen=True, slots=True)
class Predictions(Saved):
    """`<case>/<target>.npy|png|exr`: a map (h, w) or (h, w, c) for one case and one class, e.g. `0-00003/17.npy`.

    folder  folder with the files
    kind    what the files hold: heatmap; mask, binary maps in which a pixel that is not 0 (in a PNG: brighter than half) is
            marked; or boxes, an array (n, 5) of x0, y0, x1, y1 with the far edge excluded, and a weight

    `diorama render birds --layout flat` writes the images to explain; its manifest.json has the names of the cases and
    the `targets` of each: the true class, the two classes of target sensitivity, and with `-M MODEL` the class that the
    model predicts.
    """

    track, example = "explain", Explainer.example
    located = ("folder",)

    folder: str
    kind: Literal["heatmap", "mask", "boxes"] = "heatmap"

    def __post_init__(self) -> None:
        if not Path(self.folder).expanduser().is_dir():
            raise InputError(f"predictions: there is no folder {self.folder!r}")

    def fingerprint(self) -> str:
        """The digest of every file in the folder."""
        base = Path(self.folder).expanduser()
        return files_digest((p for p in base.rglob("*") if p.suffix in ENDINGS), base)

    def load(self, case: str, frame: Frame, target: int | None) -> Answer:
        """The saved map of a case and a target."""
        path = next(self._files(case, target), None)
        if path is None:
            raise InputError(f"no map of case {case!r} for class {target} in {self.folder}: save {case}/{target}.npy")
        values = read_array(path)
        if self.kind == "boxes":
            if values.ndim != 2 or values.shape[1] != 5:
                raise InputError(f"{path} is {values.shape}: boxes are (n, 5), x0, y0, x1, y1 and a weight")
            return Boxes(values[:, :4], values[:, 4])
        if values.dtype.kind == "u":
            values = values.astype(np.float32) / np.iinfo(values.dtype).max
        if self.kind == "mask":
            flat = values.max(axis=2) if values.ndim == 3 else values
            return Mask(flat > (0.5 if path.suffix == ".png" else 0))
        return Heatmap(values, signed=bool((values < 0).any()))

    def _files(self, case: str, target: int | None) -> Iterator[Path]:
        base = case_path(Path(self.folder).expanduser(), case)
        return (path for ending in ENDINGS if (path := base / f"{target}{ending}").is_file())
