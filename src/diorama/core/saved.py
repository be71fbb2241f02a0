"""Arrays that were saved elsewhere: NumPy, PNG and EXR files, and the digest of a folder of them. Never pickle."""

import hashlib
from pathlib import Path

import numpy as np

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
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in base.rglob("*") if p.suffix in endings):
        total.update(f"{path.relative_to(base)}\0".encode() + hashlib.blake2b(path.read_bytes()).digest())
    return total.hexdigest()
