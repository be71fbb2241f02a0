"""A crash before and after every operation that changes a disk: writes, links, renames, removals, folders, syncs.

`crash_at(n)` makes this process vanish, as by `kill -9`, at the n-th such moment; `moments` counts them.
"""

import os
from collections.abc import Callable
from typing import Any

#: What changes a disk. Files are opened by `io.open`, which is not one of these: a write without a sync is no promise.
OPERATIONS = ("replace", "rename", "link", "unlink", "mkdir", "fsync")
GONE = 77


def _place(words: tuple[Any, ...]) -> str:
    """The file that is changed; of a sync, the file behind the descriptor."""
    return os.readlink(f"/proc/self/fd/{words[0]}") if isinstance(words[0], int) else str(words[0])


class Moments:
    """Counts the moments before and after every operation; at `last` the process is gone."""

    def __init__(self, last: int | None = None) -> None:
        self.last, self.count, self.log = last, 0, list[str]()

    def __enter__(self) -> "Moments":
        self.real = {name: getattr(os, name) for name in OPERATIONS}
        for name in OPERATIONS:
            setattr(os, name, self._counted(name, self.real[name]))
        return self

    def __exit__(self, *_: Any) -> None:
        for name, real in self.real.items():
            setattr(os, name, real)

    def _counted(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            self._moment(f"before {name} {_place(words)}")
            found = real(*words, **more)
            self._moment(f"after {name} {_place(words)}")
            return found

        return call

    def _moment(self, what: str) -> None:
        self.log.append(what)
        if self.count == self.last:
            os._exit(GONE)
        self.count += 1


def vanish_at(moment: int, work: Callable[[], Any]) -> int:
    """Do some work in a forked process that is gone at a moment; its exit code (0 if the work ended before)."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with Moments(moment):
                work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
