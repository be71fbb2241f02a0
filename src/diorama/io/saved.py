"""Reads arrays from NumPy, PNG and EXR files; never pickle."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from diorama.core.errors import InputError
from diorama.io.exr import read_exr
from diorama.io.files import check_memory, check_regular
from diorama.io.images import read_png

ENDINGS = (".npy", ".png", ".exr")
#: Exceptions that damaged NumPy or ZIP files raise.
_DAMAGE = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def read_array(path: Path) -> np.ndarray:
    """The array of an .npy, .png or .exr file; InputError names a damaged one."""
    if path.suffix == ".png":
        return read_png(path)
    if path.suffix == ".exr":
        return read_exr(path)
    check_regular(path)
    with damage_named(path), open(path, "rb") as file:
        return read_npy(file, path)


def read_archive(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Those of the named arrays that an .npz file holds; InputError names a damaged one."""
    check_regular(path)
    found = {}
    with damage_named(path), zipfile.ZipFile(path) as archive:
        held = set(archive.namelist())
        for name in (name for name in names if f"{name}.npy" in held):
            with archive.open(f"{name}.npy") as file:
                found[name] = read_npy(file, f"{name} in {path}")
    return found


def read_npy(file: IO[bytes], where: object) -> np.ndarray:
    """The array of an open .npy file, if it fits into the memory that one file may take."""
    shape, fortran, kind = read_header(file, where)
    check_memory(math.prod(shape) * kind.itemsize, where)
    data = file.read(math.prod(shape) * kind.itemsize)
    if len(data) < math.prod(shape) * kind.itemsize:
        raise InputError(f"{where} ends early: fetch or save it again")
    return np.frombuffer(data, kind).reshape(shape, order="F" if fortran else "C")


def read_header(file: IO[bytes], where: object) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of the array that follows in an open .npy file."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise InputError(f"{where} is a NumPy file of version {version}: save it again with np.save")
    try:
        shape, fortran, kind = _HEADERS[version](file)
    except (tokenize.TokenError, SyntaxError, TypeError) as error:  # numpy reads the header as Python literals
        raise InputError(f"{where} has a damaged header: fetch or save it again") from error
    if kind.hasobject:
        raise InputError(f"{where} holds Python objects, which are not read: save numbers with np.save")
    if any(side < 0 for side in shape):
        raise InputError(f"{where} has the shape {shape}: save it again")
    return shape, fortran, kind


@contextmanager
def damage_named(where: object) -> Iterator[None]:
    """Turn the exceptions of a damaged NumPy or ZIP file into an InputError that names it."""
    try:
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        why = " ".join((str(error) or type(error).__name__).split())[:120]
        raise InputError(f"{where} cannot be read as arrays ({why}): fetch or save it again") from error
