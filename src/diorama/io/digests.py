"""Digests of files and arrays: keys depend on the content of files, not on their paths."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from diorama.core.errors import InputError
from diorama.io.files import check_regular


def file_digest(path: Path) -> str:
    """The digest of a file's bytes, as 32 hexadecimal digits."""
    check_regular(path)
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def files_digest(paths: Iterable[Path], base: Path) -> str:
    """The digest of the names below `base` and of the contents of some files, whatever their order."""
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        total.update(f"{_name_below(path, base)}\0{file_digest(path)}".encode())
    return total.hexdigest()


def _name_below(path: Path, base: Path) -> str:
    """The name of a file below `base`; it becomes part of rows and pages, so it must be text."""
    name = str(path.relative_to(base))
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the file name {name!r} in {base} is not UTF-8: rename it") from error
    return name


def array_digest(array: np.ndarray) -> str:
    """The digest of an array's values."""
    return hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).hexdigest()
