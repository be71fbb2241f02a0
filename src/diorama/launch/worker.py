"""A worker: a child process that computes the units it is told to, and says before every step what it is about to do.

Orders come as lines of JSON, reports go back the same way. When the supervisor has gone, orders end and so does the worker.
"""

import json
import os
import queue
import shutil
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from diorama.core.device import one_thread
from diorama.core.errors import InputError
from diorama.core.gallery import Sketches, illustrate
from diorama.core.guard import attempt
from diorama.core.plan import Plan
from diorama.core.run import Ended, Run, Step, Watch, work_unit
from diorama.launch.parcel import difference


class Stopped(KeyboardInterrupt):
    """The supervisor wants this process to end: finished cases are written on the way out."""


def serve(run: Run, orders: BinaryIO, reports: BinaryIO, scratch: str = "") -> None:
    """Carry out orders until they end: then the supervisor is gone, and `scratch`, the folder they shared, is removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts the supervisor too, which then ends us
    signal.signal(signal.SIGTERM, _stop)
    waiting, sketches = _listen(orders, scratch), Sketches()
    with one_thread():
        while order := waiting.get():
            _report(reports, *_carry_out(run, order, reports, sketches.unit_ended))


def _stop(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the writing that follows must not be interrupted
    raise Stopped


def _listen(orders: BinaryIO, scratch: str) -> "queue.SimpleQueue[dict[str, Any]]":
    """Orders as they come in. When they end, the supervisor is gone: nobody needs what this process still computes."""
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        for line in orders:
            waiting.put(json.loads(line))
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return waiting


def _carry_out(run: Run, order: dict[str, Any], reports: BinaryIO, ended: Ended) -> tuple[Any, ...]:
    """Do what is asked for; what is reported of it in the end."""
    watch = Watch(
        lambda step: _report(reports, "begin", step.what, step.cell, step.index),
        lambda failure: _report(reports, "finished", failure),
        {Step(*step): why for *step, why in order["lost"]},
    )
    unit = order["unit"]
    of_unit, of_pictures = partial(work_unit, run, unit, watch, ended), partial(illustrate, run, watch, unit)
    outcome = attempt(of_unit if isinstance(unit, int) else of_pictures)
    error = outcome.error
    if isinstance(error, OSError):  # a full disk: nothing that a component did
        return ("broken", error.errno, error.strerror or outcome.reason, str(error.filename or ""))
    if isinstance(error, InputError):  # a network that the plan's engine cannot compute
        return ("unfit", str(error))
    return ("failed", outcome.reason) if error else ("done",)


def _report(reports: BinaryIO, *words: Any) -> None:
    reports.write(json.dumps(words).encode() + b"\n")
    reports.flush()


def start_anew(orders: BinaryIO, reports: BinaryIO) -> None:
    """Be a worker in a new interpreter: the first order names the run, its plan and the keys that it must have."""
    first = json.loads(orders.readline())
    os.chdir(first.get("cwd", "."))
    run = Run(Path(first["folder"]), Plan.from_table(first["plan"], "the plan"))
    if "expected" in first:
        outcome = attempt(lambda: difference(run, first["expected"]))
        if why := outcome.text if outcome.error else outcome.value:
            _report(reports, "refused", why)
            return
    serve(run, orders, reports, first.get("scratch", ""))


def pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take the standard streams for orders and reports: a component that reads stdin or prints cannot mix them up."""
    with open(os.devnull, "rb") as nothing:
        given = os.fdopen(_private(0, nothing.fileno()), "rb")
    taken = os.fdopen(_private(1, 2), "wb")
    sys.stdout = sys.stderr
    return given, taken


def _private(descriptor: int, instead: int) -> int:
    ours = os.dup(descriptor)
    os.dup2(instead, descriptor)
    return ours


if __name__ == "__main__":
    try:
        start_anew(*pipes())
    except Stopped:  # asked for by the supervisor: nobody wants to read a traceback
        sys.exit(1)
