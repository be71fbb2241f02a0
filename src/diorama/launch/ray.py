"""A Ray cluster: `ray` starts one on this machine, `ray:ADDRESS` joins one. No shared folder is needed.

A separate process (`ray_driver`) talks to Ray; it gets orders as lines of JSON. A cluster that goes down ends that process,
not this one, which alone writes rows.
"""

import json
import os
import queue
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from diorama.core.errors import KEPT, InputError, WorkerError, count
from diorama.core.run import Run
from diorama.launch.contract import Lost, Need, Remote
from diorama.launch.local import fitting
from diorama.launch.parcel import Answer

#: Seconds for Ray to start, and to end.
_START, _END = 180.0, 20.0


class Launcher(Remote):
    """Makes one Ray task per unit, at most about twice as many at a time as fit on the cluster."""

    def __init__(self, argument: str, need: Need) -> None:
        super().__init__(argument, need)
        if find_spec("ray") is None:
            raise InputError("--on ray needs Ray: pip install 'diorama[ray]'")
        if argument.startswith(("ray://", "//")):
            raise InputError(f"cannot run on 'ray:{argument}': Ray's client sends pickles; write ray:HOST:6379")
        self.workers, self._folder = fitting(need), ""
        self._process: subprocess.Popen[bytes] | None = None
        self._reports: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._early: list[Answer | Lost] = []

    def describe(self, run: Run) -> str:
        """Which cluster."""
        if self.argument:
            return f"on the Ray cluster at {self.argument}"
        return f"on Ray, started on this machine for {count(self.workers, 'worker')}"

    def start(self, opening: str) -> None:
        """Start the process that talks to Ray, and wait until it has a cluster."""
        self._folder = tempfile.mkdtemp(prefix="diorama-ray-") if not self.argument else ""
        command = [sys.executable, "-m", "diorama.launch.ray_driver"]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - Ray's output; its end is shown if Ray fails
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=self._environment(),
            start_new_session=True,  # a Ctrl-C must not reach it before `stop`
        )
        threading.Thread(target=self._read_reports, args=(self._process.stdout,), daemon=True).start()
        each = {"cpus": self.need.cpus, "gpus": self.need.gpus, "memory": self.need.memory}
        where = {"address": self.argument, "folder": self._folder, "workers": self.workers}
        self._send_order({"opening": opening, **where, **each})
        self._handle_report(_START)

    def _environment(self) -> dict[str, str]:
        """Ray's environment: no usage statistics; on this machine, only local connections with a new token."""
        usual = {"RAY_gcs_rpc_server_reconnect_timeout_s": "20"}  # after which a silent head node counts as gone
        ours = {"RAY_USAGE_STATS_ENABLED": "0"}
        if not self.argument:
            ours |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
            ours |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # 0: listen on 127.0.0.1 only, on Linux too
            ours |= {"TMPDIR": self._folder}  # so that files of killed workers are removed with the folder
        return {**usual, **os.environ, **ours}

    def _read_reports(self, reports: Any) -> None:
        for line in reports:
            self._reports.put(json.loads(line))
        self._reports.put({"gone": True})

    def _send_order(self, order: dict[str, Any]) -> None:
        assert self._process and self._process.stdin
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._handle_report(_END)  # raises an error with the reason

    def room(self) -> int:
        """Twice what fits, so that workers never wait for the next unit."""
        return 2 * self.workers + 1

    def send(self, unit: int, order: str, avoid: Sequence[str]) -> None:
        """Have the driver make a task of a unit."""
        self._send_order({"unit": unit, "order": order, "avoid": list(avoid)})

    def receive(self) -> list[Answer | Lost]:
        """The answers that have arrived."""
        self._handle_report(1.0)
        found, self._early = self._early, []
        return found

    def _handle_report(self, seconds: float) -> None:
        """Wait for one report and handle it."""
        try:
            report = self._reports.get(timeout=seconds)
        except queue.Empty:
            if seconds == _START:
                raise WorkerError(f"Ray did not start within {seconds:g} s: {self._last_words()}") from None
            return
        match report:
            case {"slots": slots}:
                self.workers = max(1, slots)
            case {"unit": unit, "lost": why, "vanished": vanished}:
                self._early.append(Lost(unit, why, vanished))
            case {"unit": unit, "answer": text}:
                self._early.append(_answer(unit, text))
            case {"failed": why}:
                raise WorkerError(f"{why}; {KEPT}")
            case {"gone": _}:
                raise WorkerError(f"Ray has gone ({self._last_words()}); {KEPT}")

    def _last_words(self) -> str:
        """The end of Ray's output."""
        self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - 4000))
        lines = [line for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
        return re.sub(r"^\[.*?\] \S+: ", "", " ".join(lines[-1].split()))[:120] if lines else "it said nothing"

    def stop(self) -> None:
        """End the driver, and with it our tasks, and Ray if we started it."""
        if self._process is None:
            return
        if self._process.stdin:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._process = None


def _answer(unit: int, text: str) -> Answer | Lost:
    try:
        return Answer.read(text)
    except ValueError as error:
        return Lost(unit, f"came back damaged ({error})")
