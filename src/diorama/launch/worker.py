"""A worker process: computes the units it is ordered to, and reports every step before it begins.

Orders and reports are lines of JSON. When the supervisor dies, its pipe is closed, and the worker ends too.
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
    """Raised when the supervisor tells this process to end; finished cases are written before it does."""


def serve(run: Run, orders: BinaryIO, reports: BinaryIO, scratch: str = "") -> None:
    """Carry out orders until the supervisor is gone; then the shared folder `scratch` is removed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the supervisor too, which then ends this process
    signal.signal(signal.SIGTERM, _on_sigterm)
    waiting, sketches = _order_queue(orders, scratch), Sketches()
    with one_thread():
        while order := waiting.get():
            _report(reports, *_carry_out(run, order, reports, sketches.unit_ended))


def _on_sigterm(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the writing that follows
    raise Stopped


def _order_queue(orders: BinaryIO, scratch: str) -> "queue.SimpleQueue[dict[str, Any]]":
    """A queue of orders. When the pipe is closed, the supervisor is gone, and this process exits at once."""
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
    """Carry out an order; returns the final report."""
    watch = Watch(
        lambda step: _report(reports, "begin", step.what, step.cell, step.index),
        lambda failure: _report(reports, "finished", failure),
        {Step(*step): why for *step, why in order["lost"]},
    )
    unit = order["unit"]
    of_unit, of_pictures = partial(work_unit, run, unit, watch, ended), partial(illustrate, run, watch, unit)
    outcome = attempt(of_unit if isinstance(unit, int) else of_pictures)
    error = outcome.error
    if isinstance(error, OSError):  # e.g. a full disk; no component's fault
        return ("broken", error.errno, error.strerror or outcome.reason, str(error.filename or ""))
    if isinstance(error, InputError):  # the engine cannot convert the network
        return ("unfit", str(error))
    return ("failed", outcome.reason) if error else ("done",)


def _report(reports: BinaryIO, *words: Any) -> None:
    reports.write(json.dumps(words).encode() + b"\n")
    reports.flush()


def serve_new_process(orders: BinaryIO, reports: BinaryIO) -> None:
    """`serve` in a new interpreter: the first order has the run's folder, its plan and the keys that it must have."""
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
    """Move stdin and stdout to private descriptors for orders and reports, out of reach of components that read or print."""
    with open(os.devnull, "rb") as nothing:
        given = os.fdopen(_move_descriptor(0, nothing.fileno()), "rb")
    taken = os.fdopen(_move_descriptor(1, 2), "wb")
    sys.stdout = sys.stderr
    return given, taken


def _move_descriptor(descriptor: int, instead: int) -> int:
    ours = os.dup(descriptor)
    os.dup2(instead, descriptor)
    return ours


if __name__ == "__main__":
    try:
        serve_new_process(*pipes())
    except Stopped:  # no traceback: the supervisor asked for it
        sys.exit(1)
