"""Keeps stdout for results: what components print goes to stderr, so that `--json` stays one document."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def apart() -> Iterator[TextIO]:
    """Redirect stdout to stderr inside, for Python and C code; yields the real stdout."""
    if sys.stdout is None or sys.stderr is None:  # closed by the caller
        yield open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - closed with the process
        return
    with os.fdopen(_move_stdout(), "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors) as ours:
        try:
            with redirect_stdout(sys.stderr):
                yield ours
        finally:
            _flush()
            os.dup2(ours.fileno(), 1)


def _move_stdout() -> int:
    """Duplicate the descriptor of stdout, and point stdout to stderr."""
    _flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    return ours


def _flush() -> None:
    """Empty the buffers of Python and of C."""
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
