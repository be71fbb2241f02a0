"""A worker: a child process that computes the units it is told to, and says before every step what it is about to do.

Orders come as lines of JSON, reports go back the same way. When the supervisor has gone, orders end and so does the worker.
"""

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from diorama.core.device import one_thread
from diorama.core.gallery import illustrate
from diorama.core.guard import attempt
from diorama.core.plan import Plan
from diorama.core.run import Run, Step, Watch, work_unit


class Stopped(KeyboardInterrupt):
    """The supervisor wants this process to end: finished cases are written on the way out."""


def serve(run: Run, orders: BinaryIO, reports: BinaryIO) -> None:
    """Carry out orders until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts the supervisor too, which then ends us
    signal.signal(signal.SIGTERM, _stop)
    waiting = _listen(orders)
    with one_thread():
        while order := waiting.get():
            _report(reports, *_carry_out(run, order, reports))


def _stop(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the writing that follows must not be interrupted
    raise Stopped


def _listen(orders: BinaryIO) -> "queue.SimpleQueue[dict[str, Any]]":
    """Orders as they come in. Their end is the end of the supervisor: whatever this process does then is in vain."""
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        for line in orders:
            waiting.put(json.loads(line))
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return waiting


def _carry_out(run: Run, order: dict[str, Any], reports: BinaryIO) -> tuple[Any, ...]:
    """Do what is asked for; what is reported of it in the end."""
    watch = Watch(
        lambda step: _report(reports, "begin", step.what, step.cell, step.index),
        lambda: _report(reports, "finished"),
        {Step(*step): why for *step, why in order["lost"]},
    )
    unit = order["unit"]
    outcome = attempt(lambda: illustrate(run, watch) if unit is None else work_unit(run, unit, watch))
    if isinstance(outcome.error, OSError):  # a full disk: nothing that a component did
        return (
            "broken",
            outcome.error.errno,
            outcome.error.strerror or outcome.reason,
            str(outcome.error.filename or ""),
        )
    return ("failed", outcome.reason) if outcome.error else ("done",)


def _report(reports: BinaryIO, *words: Any) -> None:
    reports.write(json.dumps(words).encode() + b"\n")
    reports.flush()


def start_anew(orders: BinaryIO, reports: BinaryIO) -> None:
    """Be a worker in a process of its own: the first order names the run and its plan."""
    first = json.loads(orders.readline())
    serve(Run(Path(first["folder"]), Plan.from_table(first["plan"], "the plan")), orders, reports)


def private(descriptor: int, instead: int) -> int:
    """A descriptor of our own, so that a component that reads stdin or prints does not come between us."""
    ours = os.dup(descriptor)
    os.dup2(instead, descriptor)
    return ours


if __name__ == "__main__":
    with open(os.devnull, "rb") as nothing:
        given = os.fdopen(private(0, nothing.fileno()), "rb")
    taken = os.fdopen(private(1, 2), "wb")
    sys.stdout = sys.stderr
    start_anew(given, taken)
