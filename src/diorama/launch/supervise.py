"""Supervision: units are handed to worker processes, so that a component that exits, aborts or hangs costs one case.

What ends a worker twice in the same step is given up: the case becomes an error row that says why, and the rest goes on.
"""

import select
import signal
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from diorama.core.errors import WorkerError
from diorama.core.run import BLOCK, Progress, Run, Step
from diorama.launch.children import Child

#: Seconds between two looks at processes that say nothing.
_TICK = 0.2
#: How often a step is tried.
_TRIES = 2


@dataclass(slots=True)
class Worker:
    """A child with what it is doing; a unit of None means drawing the pictures."""

    child: Child
    unit: int | None
    step: Step | None = None
    since: float = field(default_factory=time.monotonic)
    late: bool = False


class Supervisor:
    """Hands out units of a run to `count` processes until all are done. `timeout` is in seconds per case."""

    def __init__(self, run: Run, units: Iterable[int | None], count: int, timeout: float | None = None) -> None:
        self.run, self.todo, self.count, self.timeout = run, deque(units), count, timeout
        self.workers: list[Worker] = []
        self.deaths: Counter[Step | None] = Counter()
        self.lost: dict[Step, str] = {}
        self.finished: set[Step] = set()

    def work(self, progress: Progress, total: int) -> None:
        """Do all the work; however this ends, no worker stays behind."""
        try:
            while self.todo or self.workers:
                self._hand_out()
                self._listen()
                doing = next((w.step.cell for w in self.workers if w.step), "")
                progress(min(len(self.finished), total), total, self.run.title(doing) if doing else "")
        finally:
            self._end()

    def _hand_out(self) -> None:
        while self.todo and len(self.workers) < self.count:
            self._order(Worker(Child(self.run), self.todo.popleft()))

    def _order(self, worker: Worker) -> None:
        if worker not in self.workers:
            self.workers.append(worker)
        worker.step, worker.since = None, time.monotonic()
        lost = [[step.what, step.cell, step.index, why] for step, why in self.lost.items()]
        worker.child.order({"unit": worker.unit, "lost": lost})

    def _listen(self) -> None:
        by_pipe = {worker.child.reports: worker for worker in self.workers}
        ready, _, _ = select.select(list(by_pipe), [], [], _TICK)
        for pipe in ready:
            for report in by_pipe[pipe].child.read():
                self._take(by_pipe[pipe], report)
        for worker in list(self.workers):
            if self._late(worker):
                worker.late = True
                worker.child.stop(grace=0)
            if worker.child.ended():
                self._bury(worker)

    def _take(self, worker: Worker, report: list[Any]) -> None:
        match report:
            case ["begin", what, cell, index]:
                worker.step, worker.since = Step(what, cell, index), time.monotonic()
            case ["finished"] if worker.step:
                self.finished.add(worker.step)
                worker.since = time.monotonic()
            case ["done"]:
                self._next(worker)
            case ["broken", number, text, name]:
                raise OSError(number, text, name)
            case ["failed", reason]:
                raise WorkerError(f"a worker failed: {reason}; the same command goes on from here")

    def _next(self, worker: Worker) -> None:
        if self.todo:
            worker.unit = self.todo.popleft()
            self._order(worker)
        else:
            self._dismiss(worker)

    def _dismiss(self, worker: Worker) -> None:
        self.workers.remove(worker)
        worker.child.stop(grace=0)
        worker.child.close()

    def _late(self, worker: Worker) -> bool:
        if self.timeout is None or worker.step is None or worker.step.what not in ("case", "prepare", "picture"):
            return False
        allowed = self.timeout * (BLOCK if worker.step.what == "prepare" else 1)
        return time.monotonic() - worker.since > allowed and not worker.child.ended()

    def _bury(self, worker: Worker) -> None:
        """A worker has ended in the middle of its work: its unit is done again, without the step if that was too much."""
        for report in worker.child.read():  # its last words
            self._take(worker, report)
        self.deaths[worker.step] += 1
        why = self._cause(worker)
        if self.deaths[worker.step] >= _TRIES:
            if worker.step is None:
                raise WorkerError(f"a worker {why} before its work began; the same command goes on from here")
            self.lost[worker.step] = f"in {_TRIES} attempts the process that computed this {why}"
        self.todo.appendleft(worker.unit)
        self.workers.remove(worker)
        worker.child.close()

    def _cause(self, worker: Worker) -> str:
        code = worker.child.code or 0
        if worker.late:
            return f"took longer than the {self.timeout:g} s of --timeout"
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}, as sys.exit or os._exit do"

    def _end(self) -> None:
        """End workers that are left, after a failure or an interruption; they write what they have finished."""
        for worker in self.workers:
            worker.child.ask_to_end()
        for worker in self.workers:
            worker.child.stop()
            worker.child.close()
        self.workers.clear()
