"""Locks between processes on one machine; the operating system releases them however the holder ends."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from diorama.core.errors import InputError

_held: set[TextIO] = set()


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Hold an exclusive lock on a file. Without `wait`, a lock that is taken is an error that names the holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file and cannot be locked: remove it")
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise InputError(f"{path.parent} is being written by {holder}: wait for it, or choose another -o") from None
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {os.uname().nodename} since {time.strftime('%Y-%m-%d %H:%M:%S')}")
        file.flush()
        _held.add(file)
        try:
            yield
        finally:
            _held.discard(file)


def release_in_child() -> None:
    """In a forked process, close the lock files of its parent, so that the locks end with the parent."""
    for file in _held:
        file.close()
    _held.clear()
