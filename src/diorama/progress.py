"""Shows the progress of long commands on stderr: a bar on a terminal, occasional lines in a log file."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from diorama.core.progress import Progress

#: Seconds between two lines if stderr is no terminal.
EVERY = 15.0
#: Seconds between two updates of the bar in a notebook.
REDRAWN = 0.25


def say(line: str) -> None:
    """Print a line to stderr."""
    print(line, file=sys.stderr, flush=True)


def shown(what: str, units: str) -> AbstractContextManager[Progress]:
    """Show the progress of `what` until the end of the block: a bar in a notebook and on a terminal.

    `units` is what is counted; "" if that changes on the way, as from images to steps.
    """
    if in_notebook():
        return _cell(what, units)
    return _bar(what) if sys.stderr.isatty() else _lines(what, units)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class Estimate:
    """The progress of a piece of work, with an estimate of the time left."""

    def __init__(self, what: str, units: str, now: Callable[[], float] = time.monotonic):
        self._what, self._units, self._now = what, units, now
        self._start = self._since = now()
        self._first, self._done, self._total, self._doing = 0, 0, 0, ""

    def __call__(self, done: int, total: int, doing: str = "") -> None:
        """Update the progress. The pace is measured from the first call on: earlier results may have been known.

        If the total changes, or less is done than before, a new piece of work has begun, whose pace is measured anew.
        """
        if total != self._total or done < self._done:
            self._since, self._first = self._now(), done
        self._done, self._total, self._doing = done, total, doing

    @property
    def share(self) -> float:
        """The share that is done, 0 to 1."""
        return self._done / self._total if self._total else 0.0

    def line(self) -> str:
        """One line: what is done, the time it took, and the time left.

        >>> Estimate("scoring", "cases").line()
        'scoring: nothing finished after 0 s'
        """
        passed = clock(self._now() - self._start)
        if not self._total:
            return f"{self._what}: nothing finished after {passed}"
        left = f", about {clock(self._left())} left" if self._done > self._first else ""
        doing = f" ({self._doing})" if self._doing else ""
        units = f" {self._units}" if self._units else ""
        return f"{self._what}: {self._done} of {self._total}{units} after {passed}{left}{doing}"

    def _left(self) -> float:
        pace = (self._now() - self._since) / (self._done - self._first)
        return pace * (self._total - self._done)


def clock(seconds: float) -> str:
    """A duration in words.

    >>> clock(41.2), clock(184), clock(7380)
    ('41 s', '3 min 04 s', '2 h 03 min')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02d} s" if whole < 3600 else f"{whole // 3600} h {whole // 60 % 60:02d} min"


@contextmanager
def _lines(what: str, units: str) -> Iterator[Progress]:
    """Print a line every `EVERY` seconds, from a thread, so that it also appears while the first case takes minutes."""
    state, ended = Estimate(what, units), threading.Event()

    def tell() -> None:
        while not ended.wait(EVERY):
            say(state.line())

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield state
    finally:
        ended.set()
        teller.join()


@contextmanager
def _bar(what: str) -> Iterator[Progress]:
    from rich import progress as rich
    from rich.console import Console
    from rich.markup import escape

    left = rich.TextColumn("left"), rich.TimeRemainingColumn(), rich.TextColumn("{task.fields[doing]}", style="dim")
    columns = rich.TextColumn(what), rich.BarColumn(), rich.MofNCompleteColumn(), rich.TimeElapsedColumn(), *left
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(what, total=None, doing="")
        yield lambda done, total, doing="": drawn.update(task, completed=done, total=total, doing=escape(doing))


@contextmanager
def _cell(what: str, units: str) -> Iterator[Progress]:
    """A bar in a notebook cell, updated at most four times a second and removed when the work is done."""
    from html import escape as escaped

    from IPython.display import HTML, display

    state, drawn, last = Estimate(what, units), display(HTML(""), display_id=True), 0.0

    def tell(done: int, total: int, doing: str = "") -> None:
        nonlocal last
        state(done, total, doing)
        if time.monotonic() - last > REDRAWN:
            last = time.monotonic()
            bar = f'<progress value="{state.share:.3f}" style="width:20rem;vertical-align:middle"></progress>'
            drawn.update(HTML(f"{bar} <small>{escaped(state.line())}</small>"))

    try:
        yield tell
    finally:
        drawn.update(HTML(""))
