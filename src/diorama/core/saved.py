"""Arrays that were saved elsewhere: NumPy, PNG and EXR files. Never pickle."""

from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.core.exr import read_exr
from diorama.core.images import read_png

ENDINGS = (".npy", ".png", ".exr")


def read_array(path: Path) -> Any:
    """The array of a file (of an .npz its open archive); a damaged one is named."""
    if path.suffix == ".png":
        return read_png(path)
    if path.suffix == ".exr":
        return read_exr(path)
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
