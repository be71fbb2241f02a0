"""The one place where any failure of a user's component is caught and turned into a reason."""

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class Note(UserWarning):
    """Something a component wants the reader of its rows to know, though the value stands."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call gave: a value, or the exception it raised; the notes it left either way."""

    value: Any
    error: Exception | None
    notes: tuple[str, ...]

    @property
    def reason(self) -> str:
        """The failure in one line."""
        if self.error is None:
            return ""
        text = " ".join(str(self.error).split())
        return f"{type(self.error).__name__}: {text}"[:400]

    @property
    def trace(self) -> str:
        """The failure in full."""
        return "".join(traceback.format_exception(self.error)) if self.error else ""


def attempt(call: Callable[[], Any]) -> Outcome:
    """Call a user's component and catch whatever it raises; notes are collected, other warnings pass.

    >>> attempt(lambda: 1 / 0).reason
    'ZeroDivisionError: division by zero'
    """
    value, error = None, None
    with noting() as notes:
        try:
            value = call()
        except Exception as raised:  # noqa: BLE001 - the one broad except: a component may fail in any way
            error = raised
    return Outcome(value, error, tuple(dict.fromkeys(notes)))


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collect the notes that are raised inside; other warnings pass."""
    notes: list[str] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", Note)
            yield notes
    finally:
        notes += [str(w.message) for w in caught if issubclass(w.category, Note)]
        for w in caught:
            if not issubclass(w.category, Note):
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
