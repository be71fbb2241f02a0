"""Arrays that were saved elsewhere: NumPy, PNG and EXR files, and the digest of a folder of them. Never pickle."""

from pathlib import Path

import numpy as np

from diorama.core.digests import files_digest
from diorama.core.errors import InputError
from diorama.core.exr import read_exr
from diorama.core.images import read_png

ENDINGS = (".npy", ".png", ".exr")


def read_array(path: Path) -> np.ndarray:
    """The array of a file; a damaged one is named."""
    if path.suffix == ".png":
        return read_png(path)
    if path.suffix == ".exr":
        return read_exr(path)
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def digest_of(base: Path, endings: tuple[str, ...]) -> str:
    """The digest of names and contents of every such file under a folder."""
    return files_digest((path for path in base.rglob("*") if path.suffix in endings), base)
