"""The cache of a process: one for all cells of a run, with a budget in bytes.

Every value belongs to a scope, at whose end it is dropped: a case, a unit of work, or the run. When the budget is exceeded
the least recently used value is dropped, and computed again when it is asked for: the key must determine the value.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

import numpy as np
from numpy import memmap

from diorama.core.guard import Note, noting
from diorama.core.scene import Scene

Scope = Literal["case", "unit", "run"]
#: Scopes from the shortest to the longest.
SCOPES: tuple[Scope, ...] = ("case", "unit", "run")
#: The default budget in bytes.
BUDGET = 1 << 30
#: Bytes that are assumed for an object that is not an array.
_SMALL = 100
#: Values of at most so many bytes are dropped last: dropping them frees hardly any memory.
_LITTLE = 1000

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    value: Any
    scope: Scope
    size: int
    notes: tuple[str, ...]
    number: int


class Memory:
    """Values by key. A value larger than the whole budget is cached alone, until the next value is added."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget, self.size = budget, 0
        self._entries: dict[Key, _Entry] = {}  # the least recently used first
        self._number = 0

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, scope: Scope, key: Key, compute: Callable[[], Any]) -> Any:
        """The value of a key, computed now if it is not cached. Its notes are raised on every call."""
        return self.keep_all(scope, {key: None}, lambda missing: [compute()])[key]

    def keep_all(
        self, scope: Scope, asked: Mapping[Key, Any], compute: Callable[[dict[Key, Any]], Iterable[Any]]
    ) -> dict[Key, Any]:
        """The values of several keys; `compute` is called with the missing entries of `asked` and returns their values."""
        found = {key: self._touch(key) for key in asked if key in self._entries}
        missing = {key: question for key, question in asked.items() if key not in found}
        if missing:
            with noting() as notes:
                values = list(compute(missing))
            found |= {k: self._add(scope, k, v, tuple(notes)) for k, v in zip(missing, values, strict=True)}
        for note in dict.fromkeys(note for key in asked for note in found[key].notes):
            warnings.warn(note, Note, stacklevel=3)
        return {key: found[key].value for key in asked}

    def drop(self, keys: Iterable[Key]) -> None:
        """Drop the values of some keys."""
        for key in [key for key in keys if key in self._entries]:
            self.size -= self._entries.pop(key).size

    def end(self, scope: Scope) -> None:
        """Drop the values of a scope that has ended, and of shorter ones."""
        ended = SCOPES[: SCOPES.index(scope) + 1]
        self.drop([key for key, kept in self._entries.items() if kept.scope in ended])

    @contextmanager
    def passing(self) -> Iterator[None]:
        """At the end of the block, drop the values added in it, except for those of the whole run."""
        first = self._number
        try:
            yield
        finally:
            self.drop([key for key, kept in self._entries.items() if kept.number >= first and kept.scope != "run"])

    def _touch(self, key: Key) -> _Entry:
        kept = self._entries[key] = self._entries.pop(key)  # now the last
        return kept

    def _add(self, scope: Scope, key: Key, value: Any, notes: tuple[str, ...]) -> _Entry:
        self.drop([key])  # where `compute` itself has kept it in the meantime
        kept = _Entry(value, scope, size_of(value), notes, self._number)
        self._number += 1
        self._make_room(kept.size)
        self._entries[key], self.size = kept, self.size + kept.size
        return kept

    def _make_room(self, size: int) -> None:
        """Drop the least recently used values, large ones first: small ones (and arrays mapped from a file) free nothing."""
        if self.size + size <= self.budget:
            return
        for little in (False, True):
            for key in [k for k, kept in self._entries.items() if (kept.size <= _LITTLE) == little]:
                if self.size + size <= self.budget:
                    return
                self.drop([key])


def size_of(value: Any) -> int:
    """The bytes of the arrays in a value, and a little for everything else, also for arrays mapped from a file.

    >>> size_of({"a": np.zeros(1000), "b": [np.zeros(10, np.float32)]})
    8240
    """
    if isinstance(value, np.ndarray):
        return _SMALL if isinstance(value, memmap) else value.nbytes
    if isinstance(value, Scene):
        return 10 * _SMALL
    if isinstance(value, Mapping):
        return _SMALL + sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return _SMALL + sum(map(size_of, value))
    if is_dataclass(value) and not isinstance(value, type):
        return _SMALL + sum(size_of(getattr(value, field.name)) for field in fields(value))
    return _SMALL
