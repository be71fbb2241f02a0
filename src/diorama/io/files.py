"""Reads files of unknown origin: regular files only, and within a memory limit.

The limit is the same for all readers: `DIORAMA_MAX_MB` (default 1024) is the memory in megabytes that one file may take,
stored or decoded. It is checked before anything is decoded.
"""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError

VARIABLE, DEFAULT_MB = "DIORAMA_MAX_MB", 1024.0
#: Bytes of a pixel of a frame: three channels of float32.
PIXEL = 12


def limit() -> float:
    """How many bytes one file may take, stored or decoded.

    >>> limit() / 2**20 if VARIABLE not in os.environ else 1024.0
    1024.0
    """
    hint = "give the memory that one file may take in megabytes, e.g. 4096"
    return bytes_of(VARIABLE, DEFAULT_MB, lambda megabytes: megabytes > 0, hint)


def bytes_of(variable: str, usual: float, allowed: Callable[[float], bool], hint: str) -> float:
    """The bytes that an environment variable gives in megabytes; `usual` megabytes if it is not set."""
    value = os.environ.get(variable, "")
    try:
        megabytes = float(value) if value else usual
    except ValueError:
        megabytes = math.nan
    if not allowed(megabytes):
        raise InputError(f"{variable}={value[:40]!r}: {hint}")
    return megabytes * 2**20


def check_memory(size: float, what: object) -> None:
    """Raise InputError if `size` bytes are more than one file may take."""
    if size > limit():
        raise InputError(
            f"{what} takes {size / 2**20:,.0f} MB of memory, more than the {limit() / 2**20:,.0f} MB that are allowed;"
            f" set {VARIABLE} to allow more"
        )


def check_pixels(width: int, height: int, what: object) -> None:
    """Raise InputError if a picture has no pixels, or more than fit into the memory that one file may take."""
    if width < 1 or height < 1:
        raise InputError(f"{what} has no pixels ({width}×{height}): fetch or save it again")
    check_memory(width * height * PIXEL, f"{what} of {width}×{height} pixels")


def check_regular(path: Path) -> None:
    """Raise InputError unless this is a regular file or a link to one: not a folder, a pipe or a device."""
    try:
        there = path.exists()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if not there:
        raise InputError(f"{path} is missing")
    if not path.is_file():
        raise InputError(f"{path} is not a regular file: a folder, a pipe or a device cannot be read as one")


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    check_regular(path)
    try:
        with open(path, "rb") as file:
            check_memory(os.fstat(file.fileno()).st_size, path)
            return file.read()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def read_text(path: Path) -> str:
    """The content of a text file in UTF-8, with or without a byte order mark."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text in UTF-8: {error.reason} at byte {error.start}") from error


def read_json(path: Path) -> Any:
    """The JSON value of a file."""
    try:
        return json.loads(read_text(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({' '.join(str(error).split())[:100]}): fetch it again") from error


def cache_folder() -> Path:
    """The folder of caches that outlive a run: $DIORAMA_CACHE, else `diorama` in the user's cache."""
    if chosen := os.environ.get("DIORAMA_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "diorama"
