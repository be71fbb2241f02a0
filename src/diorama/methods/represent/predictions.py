"""Saved codes: representations that were computed elsewhere, read from a file by the names of the frames."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from diorama.core.answers import Code
from diorama.core.contracts import Encoder, Saved
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.io.digests import file_digest
from diorama.io.saved import read_archive, read_array


@dataclass(frozen=True)
class Predictions(Saved):
    """Codes of frames, looked up by name.

    codes  .npy file (n, latents) whose row i belongs to the frame named i, or an .npz file with `names` and `codes`

    `diorama render WORLD -n N --layout flat` writes the frames of the first draws with their names; for dSprites a
    name is the row in the original file, so that codes of the whole data set in its own order can be given as they
    are.
    """

    track, example = "represent", Encoder.example
    located = ("codes",)

    codes: str

    def __post_init__(self) -> None:
        if not Path(self.codes).expanduser().is_file():
            raise InputError(f"predictions: there is no file {self.codes!r}")
        _ = self._rows

    def fingerprint(self) -> str:
        """The digest of the file."""
        return file_digest(Path(self.codes).expanduser())

    @cached_property
    def _rows(self) -> tuple[np.ndarray, dict[str, int] | None]:
        """The codes, and the row of every name unless names are row numbers."""
        path, names = Path(self.codes).expanduser(), None
        if path.suffix == ".npz":
            stored = read_archive(path, ("codes", "names"))
            if len(stored) < 2:
                raise InputError(f"predictions: {self.codes} lacks codes or names: an .npz file needs both arrays")
            codes, names = stored["codes"], {str(name): i for i, name in enumerate(stored["names"].ravel())}
        else:
            codes = read_array(path)
        if codes.ndim != 2 or codes.dtype.kind not in "fiu":
            raise InputError(
                f"predictions: codes in {self.codes} are {codes.dtype} {codes.shape}, expected (n, latents)"
            )
        if not np.isfinite(codes).all():
            raise InputError(f"predictions: codes in {self.codes} are not all finite: a latent is NaN or infinite")
        return codes, names

    def load(self, name: str, frame: Frame, target: int | None) -> Code:
        """The saved code of a frame."""
        codes, names = self._rows
        row = names.get(name) if names is not None else int(name) if name.isdecimal() else None
        if row is None or row >= len(codes):
            raise InputError(
                f"predictions: {self.codes} has no code for frame {name!r}, or names differ from the world's"
            )
        return Code(np.asarray(codes[row], np.float64))
