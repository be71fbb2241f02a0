"""Arrays that took long to make, kept between runs: a file each in the cache folder, named by all that they follow from
and by the processor and the libraries that made them.

They may be deleted at any time and are made again. `DIORAMA_FRAMES_MB` (default 2048; 0 keeps none) bounds what all of
them take on the disk: the longest unused go first. A file is written whole and renamed, so that several processes may use
one folder; it is read without running anything in it, and a damaged one counts as absent.
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
#: What last bits of a rendered frame depend on, beside the source and the processor.
_LIBRARIES = ("numpy", "numba", "llvmlite", "embreex", "opencv-python-headless")
#: When a process has written this share of the budget, it measures the whole folder again.
_SHARE = 1 / 64


def budget() -> float:
    """How many bytes may be kept.

    >>> budget() / 2**20 if VARIABLE not in os.environ else 2048.0
    2048.0
    """
    hint = "give the disk space for rendered frames in megabytes, 0 for none"
    return bytes_of(VARIABLE, DEFAULT_MB, lambda megabytes: 0 <= megabytes < math.inf, hint)


class Stock:
    """The arrays of the cache folder, as one process uses them."""

    def __init__(self) -> None:
        self._unchecked = math.inf  # bytes written since the last look at all files

    def recall(self, what: Any) -> dict[str, np.ndarray] | None:
        """The arrays that follow from `what`, a JSON value; None where there are none."""
        path = _file(what)
        if not budget() or not path.is_file():
            return None
        try:
            found = _read(path)
            os.utime(path)  # used just now
        except (InputError, OSError):
            return None
        return found

    def keep(self, what: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep the arrays that follow from `what`; where there is no place for them nothing is kept."""
        if not budget():
            return
        data = _written(arrays)
        try:
            write_whole(_file(what), data)
            self._unchecked += len(data)
            if self._unchecked > _SHARE * budget():
                _trim(_folder(), budget())
                self._unchecked = 0
        except OSError:
            return


STOCK = Stock()


def _folder() -> Path:
    return cache_folder() / "frames"


def _file(what: Any) -> Path:
    return _folder() / f"{digest([what, _machine()])}.npz"


@cache
def _machine() -> list[str]:
    """The processor and the whole versions of the libraries that render."""
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
        # read to the end, where the checksum is compared; copied, so that arrays lie in memory as new ones do
        read = {name: read_npy(BytesIO(archive.read(name)), path).copy() for name in archive.namelist()}
    return {name.removesuffix(".npy"): array for name, array in read.items()}


def _written(arrays: Mapping[str, np.ndarray]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    return buffer.getvalue()


def _trim(folder: Path, most: float) -> None:
    """Remove the longest unused files until the others fit, and what dead writers left."""
    remove_leftovers(folder)
    found = []
    for path in folder.glob("*.npz"):
        try:
            seen = path.stat()
        except FileNotFoundError:  # another process has just removed it
            continue
        found.append((seen.st_mtime_ns, seen.st_size, path))
    size = sum(each for _, each, _ in found)
    for _, each, path in sorted(found):
        if size <= most:
            break
        path.unlink(missing_ok=True)
        size -= each
