"""Atomic writes: whenever a writer dies, a reader finds the old file, the new file or none.

Data are written to a temporary file in the same folder, synced, and renamed; then the folder is synced. Temporary files of
a process that died are recognised by their names and removed by the next run.
"""

import errno
import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

_numbers = count()
_TEMPORARY = re.compile(r"\.(\d+)-\d+@(.*)\.tmp")
#: Seconds after which a temporary file of another machine is a leftover: writing one takes far less.
_OLD = 3600.0


def checksum(data: bytes) -> str:
    """The checksum of a file's content.

    >>> checksum(b"")[:8]
    'b8e1dda3'
    """
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def content(path: Path) -> bytes:
    """The content of a file of a run; ValueError if the path is a pipe, a device or a folder."""
    if path.exists() and not path.is_file():
        raise ValueError("it is no regular file")
    return path.read_bytes()


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically; an existing one is replaced."""
    with _temporary_file(path, data) as temporary:
        os.replace(temporary, path)


def create_whole(path: Path, data: bytes) -> bool:
    """Write a file atomically unless it exists; False if another writer was first."""
    with _temporary_file(path, data) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            os.replace(temporary, path)
        return True


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON file."""
    write_whole(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """A value as the text of a JSON file."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="backslashreplace")


@contextmanager
def _temporary_file(path: Path, data: bytes) -> Iterator[Path]:
    """Write data to a synced temporary file; after the caller has renamed it, the folder is synced."""
    make_folder(path.parent)
    temporary = path.parent / f".{os.getpid()}-{next(_numbers)}@{os.uname().nodename}.tmp"
    try:
        with open(temporary, "xb", buffering=0) as file:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and sync each one's entry in its parent."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Sync the directory entries of a folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems sync names by themselves
            raise
    finally:
        os.close(handle)


def is_temporary(path: Path) -> bool:
    """Whether a file is a temporary file of this module."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_leftovers(folder: Path) -> int:
    """Remove the temporary files of processes that died, anywhere in a folder; returns their number."""
    found = [path for path in folder.rglob(".*.tmp") if _is_abandoned(path)]
    for path in found:
        path.unlink(missing_ok=True)
    return len(found)


def _is_abandoned(path: Path) -> bool:
    match = _TEMPORARY.fullmatch(path.name)
    if match is None:
        return False
    if match[2] == os.uname().nodename and not alive(int(match[1])):
        return True
    try:
        return time.time() - path.stat().st_mtime > _OLD
    except FileNotFoundError:  # renamed by its writer
        return False


def alive(process: int) -> bool:
    """Whether a process with this id runs on this machine."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def set_aside(path: Path, why: str) -> str:
    """Rename a damaged file to NAME.damaged, so that it is not read; returns a message."""
    os.replace(path, path.with_name(f"{path.name}.damaged"))
    sync_folder(path.parent)
    return f"{path} is damaged ({why}): set aside as {path.name}.damaged"
