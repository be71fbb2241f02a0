"""The disk cache for arrays that take long to compute: one file per entry, named by the hash of the cache key, the
processor and the library versions.

Files may be deleted at any time. `DIORAMA_FRAMES_MB` (default 2048; 0 turns the cache off) bounds the disk space: the least
recently used files are removed first. Files are written atomically, so that several processes may share the folder; no code
in them is run, and a damaged file counts as absent.
"""

import importlib.metadata
import math
import os
import platform
import zipfile
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.core.scene import digest
from diorama.io.files import bytes_of, cache_folder, check_memory
from diorama.io.saved import damage_named, read_npy
from diorama.io.store import remove_leftovers, write_whole

VARIABLE, DEFAULT_MB = "DIORAMA_FRAMES_MB", 2048.0
#: Libraries on which the last bits of a rendered frame depend.
_LIBRARIES = ("numpy", "numba", "llvmlite", "embreex", "opencv-python-headless")
#: After a process has written this share of the budget, it measures the whole folder again.
_SHARE = 1 / 64


def budget() -> float:
    """The most bytes that the cache may take.

    >>> budget() / 2**20 if VARIABLE not in os.environ else 2048.0
    2048.0
    """
    hint = "give the disk space for rendered frames in megabytes, 0 for none"
    return bytes_of(VARIABLE, DEFAULT_MB, lambda megabytes: 0 <= megabytes < math.inf, hint)


class DiskCache:
    """The cache as one process uses it."""

    def __init__(self) -> None:
        self._unchecked = math.inf  # bytes written since the folder was last measured

    def recall(self, key: Any) -> dict[str, np.ndarray] | None:
        """The arrays of a key, a JSON value; None if they are not cached."""
        path = _file(key)
        if not budget() or not path.is_file():
            return None
        try:
            found = _read(path)
            os.utime(path)  # marks it as recently used
        except (InputError, OSError):
            return None
        return found

    def keep(self, key: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Add the arrays of a key; does nothing if they cannot be written."""
        if not budget():
            return
        data = _to_npz(arrays)
        try:
            write_whole(_file(key), data)
            self._unchecked += len(data)
            if self._unchecked > _SHARE * budget():
                _trim(_folder(), budget())
                self._unchecked = 0
        except OSError:
            return


DISK_CACHE = DiskCache()


def _folder() -> Path:
    return cache_folder() / "frames"


def _file(key: Any) -> Path:
    return _folder() / f"{digest([key, _machine()])}.npz"


@cache
def _machine() -> list[str]:
    """The processor and the full versions of the libraries that render."""
    return [platform.machine(), _processor(), *(f"{name} {_version(name)}" for name in _LIBRARIES)]


def _version(library: str) -> str:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _read(path: Path) -> dict[str, np.ndarray]:
    with damage_named(path), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            check_memory(member.file_size, path)
        # read to the end, where zipfile compares the checksum; copied, so that arrays are aligned like new ones
        read = {name: read_npy(BytesIO(archive.read(name)), path).copy() for name in archive.namelist()}
    return {name.removesuffix(".npy"): array for name, array in read.items()}


def _to_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def _trim(folder: Path, most: float) -> None:
    """Remove the least recently used files until the others fit, and temporary files of processes that died."""
    remove_leftovers(folder)
    found = []
    for path in folder.glob("*.npz"):
        try:
            seen = path.stat()
        except FileNotFoundError:  # removed by another process
            continue
        found.append((seen.st_mtime_ns, seen.st_size, path))
    size = sum(each for _, each, _ in found)
    for _, each, path in sorted(found):
        if size <= most:
            break
        path.unlink(missing_ok=True)
        size -= each
