"""The one place where failures of a user's component are caught and turned into a reason."""

import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from diorama.core.errors import missing_package
from diorama.io.names import readable


class Note(UserWarning):
    """A warning of a component for the readers of its rows; the value stays valid."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a call: its value or the exception it raised, and its notes."""

    value: Any
    error: BaseException | None
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The message of the exception, in one line."""
        if isinstance(self.error, ModuleNotFoundError):
            return one_line(missing_package(self.error))
        return "" if self.error is None else one_line(self.error)

    @property
    def reason(self) -> str:
        """The failure in one line."""
        return "" if self.error is None else f"{type(self.error).__name__}: {self.text}"[:400]

    @property
    def trace(self) -> str:
        """The failure in full."""
        if self.error is None:
            return ""
        return attempt(lambda: readable("".join(traceback.format_exception(self.error)))).value or self.reason


def one_line(value: Any) -> str:
    """A text of one line and at most 400 characters for any object, even if its `str` fails or holds characters that
    cannot be encoded.
    """
    shown = attempt(lambda: " ".join(readable(value).split())[:400])  # `__str__` is the component's own code
    return f"({type(value).__name__} cannot be shown)" if shown.error else shown.value


def attempt(call: Callable[[], Any]) -> Outcome:
    """Call a user's component and catch whatever it raises; notes are collected, other warnings are issued again.

    `sys.exit` and every BaseException are failures too; only Ctrl-C ends the run.

    >>> attempt(lambda: 1 / 0).reason
    'ZeroDivisionError: division by zero'
    """
    value: Any = None
    error: BaseException | None = None
    with noting() as notes:
        try:
            value = call()
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # noqa: BLE001 - the one broad except: a component may fail in any way
            error = raised
    return Outcome(value, error, tuple(dict.fromkeys(notes)))


@contextmanager
def no_exit() -> Iterator[None]:
    """Make `os._exit` raise an error inside: a user's file that is imported there must not end the command."""
    real, here = os._exit, os.getpid()

    def refused(code: int = 0) -> NoReturn:
        if os.getpid() == here:
            raise RuntimeError(f"it called os._exit({code})")
        real(code)  # a process that the component forked may exit

    os._exit = refused  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = real


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collect the notes that are raised inside; other warnings are issued again."""
    notes: list[str] = []
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", Note)
            yield notes
    finally:
        notes += [one_line(w.message) for w in caught if issubclass(w.category, Note)]
        for w in caught:
            if not issubclass(w.category, Note):
                warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
