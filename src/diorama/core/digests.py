"""Digests of files, so that keys follow their content and not their place."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def file_digest(path: Path) -> str:
    """The digest of a file's bytes, as 32 hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def files_digest(paths: Iterable[Path], base: Path) -> str:
    """The digest of the names below `base` and of the contents of some files, whatever their order."""
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(paths):
        total.update(f"{path.relative_to(base)}\0{file_digest(path)}".encode())
    return total.hexdigest()
