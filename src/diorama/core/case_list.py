"""The cases of a cell as a lazy list: only the last few are in memory, others are made again on access."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import overload

from diorama.core.cases import Case

#: Cases in the cache. A scene takes tens of kilobytes, and a unit of work needs eight cases at a time.
HELD = 64


class CaseList(Sequence[Case]):
    """The cases 0, 1, …; `keys` has the keys of all of them."""

    def __init__(self, make: Callable[[int], Case], count: int) -> None:
        self._made = lru_cache(HELD)(make)
        self.keys = [self._made(index).key for index in range(count)]

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Case: ...

    @overload
    def __getitem__(self, at: slice) -> list[Case]: ...

    def __getitem__(self, at: int | slice) -> Case | list[Case]:
        places = range(len(self))[at]
        return self._made(places) if isinstance(places, int) else [self._made(index) for index in places]
