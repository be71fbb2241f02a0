"""Worker processes: forked if that is safe, which takes no time, otherwise new interpreters."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress
from typing import Any, BinaryIO

from diorama.core.device import start_with_one_thread
from diorama.core.run import Run
from diorama.io.locks import release_in_child
from diorama.launch import worker

#: Seconds that a worker has to write finished cases when it is told to end.
_GRACE = 5.0
#: The parent's ends of all pipes: a forked worker closes them, so that workers do not keep each other's pipes open.
_ours: set[int] = set()


class Child:
    """A worker process with a pipe to it and one from it.

    `start` is added to the first order, and `variables` to its environment; with either, the worker is not forked.
    """

    def __init__(self, run: Run, start: dict[str, Any] | None = None, variables: dict[str, str] | None = None) -> None:
        self.variables = variables or {}
        self.forked = start is None and not variables and may_fork()
        orders_out, self._orders = os.pipe()
        self.reports, reports_in = os.pipe()
        _ours.update((self._orders, self.reports))
        self.code: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        if self.forked:
            self.pid = _fork(run, orders_out, reports_in)
        else:
            self._process = _spawn(orders_out, reports_in, self.variables)
            self.pid = self._process.pid
        os.close(orders_out)
        os.close(reports_in)
        self._unread = b""
        if not self.forked:
            self.order({"folder": str(run.folder), "plan": run.plan.table()} | (start or {}))

    def order(self, value: dict[str, Any]) -> None:
        """Send an order; if the worker has died, `ended` will tell."""
        with suppress(BrokenPipeError):
            os.write(self._orders, json.dumps(value).encode() + b"\n")

    def read(self) -> list[list[Any]]:
        """The reports that have arrived, without waiting."""
        if not select.select([self.reports], [], [], 0)[0]:
            return []
        *lines, self._unread = (self._unread + os.read(self.reports, 1 << 16)).split(b"\n")
        return [json.loads(line) for line in lines]

    def ended(self) -> bool:
        """Whether the process has ended; `code` is then its exit code, negative for a signal."""
        if self.code is None and self._process:
            self.code = self._process.poll()
        elif self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def ask_to_end(self) -> None:
        """Ask the process to write finished cases and to end."""
        if not self.ended():
            os.kill(self.pid, signal.SIGTERM)

    def stop(self, grace: float = _GRACE) -> None:
        """Wait for the process to end, and kill it after `grace` seconds."""
        deadline = time.monotonic() + grace
        while not self.ended() and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
        while not self.ended():
            time.sleep(0.001)

    def close(self) -> None:
        """Close the pipes."""
        for descriptor in (self._orders, self.reports):
            _ours.discard(descriptor)
            os.close(descriptor)


def may_fork() -> bool:
    """Whether all threads of this process are Python's: those of CUDA, BLAS or ONNX Runtime do not survive a fork."""
    try:
        return len(os.listdir("/proc/self/task")) <= threading.active_count()
    except OSError:
        return False


def _spawn(orders: int, reports: int, variables: dict[str, str]) -> "subprocess.Popen[bytes]":
    start_with_one_thread()
    command = [sys.executable, "-m", "diorama.launch.worker"]
    return subprocess.Popen(command, stdin=orders, stdout=reports, env={**os.environ, **variables})


def _fork(run: Run, orders: int, reports: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking with threads: ours only print progress
        pid = os.fork()
    if pid:
        return pid
    try:
        _run_worker(run, os.fdopen(orders, "rb"), os.fdopen(reports, "wb"))
    finally:  # never return into the parent's code
        os._exit(1)


def _run_worker(run: Run, orders: BinaryIO, reports: BinaryIO) -> None:
    for descriptor in _ours:
        os.close(descriptor)
    release_in_child()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - new objects: at the fork, a thread may have held locks of the old ones
    sys.stderr = sys.stdout = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    worker.serve(run, orders, reports)
