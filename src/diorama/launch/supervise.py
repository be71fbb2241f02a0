"""Supervision: units are handed to worker processes, so that a component that exits, aborts or hangs costs one case.

A step that ends a worker twice is given up: its case gets error rows with the reason, and the other cases are computed.
"""

import select
import signal
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from diorama.core.errors import InputError, WorkerError
from diorama.core.run import BLOCK, Run, Step
from diorama.launch.children import Child

if TYPE_CHECKING:
    from diorama.launch.contract import Tracker

#: Seconds between two checks of silent processes.
_TICK = 0.2
#: How often a step is tried.
_TRIES = 2
#: A unit, or a share (i, n) of the pictures.
Work = int | tuple[int, int]
#: World and model of a unit, which a worker loads once.
Kind = tuple[str, str]


class DiedError(WorkerError):
    """A worker ended in the middle of a step, which should be tried again elsewhere."""

    def __init__(self, step: Step, why: str) -> None:
        super().__init__(why)
        self.step, self.why = step, why


class RefusedError(WorkerError):
    """A worker cannot compute for this run: it would give other rows, or lacks something."""


@dataclass(slots=True)
class Worker:
    """A worker process and its current unit and step; None when it waits for work."""

    child: Child
    unit: Work | None = None
    kind: Kind | None = None
    step: Step | None = None
    since: float = field(default_factory=time.monotonic)
    late: bool = False


class Supervisor:
    """Hands out units of a run to `count` processes until all are done. `timeout` is in seconds per case.

    start  additions to the first order of workers without access to the run's folder. With it, a step that ends a worker
           is not tried again here but raises a `DiedError`
    own    environment variables, a dictionary for each worker: the GPUs that it may use
    """

    def __init__(
        self,
        run: Run,
        count: int,
        timeout: float | None = None,
        start: dict[str, Any] | None = None,
        own: Sequence[dict[str, str]] = (),
    ) -> None:
        self.run, self.count, self.timeout, self.start, self.own = run, count, timeout, start, own
        self.todo: deque[Work] = deque()
        self.workers: list[Worker] = []
        self.deaths: Counter[Step | None] = Counter()
        self.lost: dict[Step, str] = {}
        self.finished: set[Step] = set()

    def __enter__(self) -> "Supervisor":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def work(self, units: Sequence[Work], tracker: "Tracker") -> None:
        """Do all the work; idle workers stay alive until `end`."""
        self.todo.extend(units)
        while self.todo or self._busy():
            self.hand_out()
            self._listen(tracker)

    def _busy(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.unit is not None]

    def hand_out(self) -> None:
        """Give work to idle workers."""
        while self.todo and (worker := self._idle()):
            worker.unit, worker.step, worker.since = self._next_work(worker), None, time.monotonic()
            lost = [[step.what, step.cell, step.index, why] for step, why in self.lost.items()]
            worker.child.order({"unit": worker.unit, "lost": lost})

    def _next_work(self, worker: Worker) -> Work:
        others = {other.kind for other in self._busy() if other is not worker}
        place = choose(map(self._kind, self.todo), worker.kind, others)
        found = self.todo[place]
        del self.todo[place]
        worker.kind = self._kind(found)
        return found

    def _kind(self, work: Work) -> Kind | None:
        if not isinstance(work, int) or self.start:  # with `start`, only workers build the run's units
            return None
        cell = self.run.units[work].cells[0]
        return cell.world.digest, cell.model.digest if cell.model else ""

    def _idle(self) -> Worker | None:
        """An idle worker, or a new one if there may be more."""
        waiting = next((worker for worker in self.workers if worker.unit is None), None)
        if waiting or len(self.workers) >= self.count:
            return waiting
        own = next((one for one in self.own if one not in [worker.child.variables for worker in self.workers]), {})
        self.workers.append(Worker(Child(self.run, self.start, own)))
        return self.workers[-1]

    def _listen(self, tracker: "Tracker") -> None:
        by_pipe = {worker.child.reports: worker for worker in self.workers}
        ready, _, _ = select.select(list(by_pipe), [], [], _TICK)
        for pipe in ready:
            for report in by_pipe[pipe].child.read():
                self._handle_report(by_pipe[pipe], report, tracker)
        for worker in list(self.workers):
            if self._is_late(worker):
                worker.late = True
                worker.child.stop(grace=0)
            if worker.child.ended():
                self._handle_death(worker, tracker)
        tracker.refresh()

    def _handle_report(self, worker: Worker, report: list[Any], tracker: "Tracker") -> None:
        match report:
            case ["begin", what, cell, index]:
                worker.step, worker.since = Step(what, cell, index), time.monotonic()
            case ["finished", failure] if worker.step:
                new = worker.step not in self.finished
                self.finished.add(worker.step)
                worker.since = time.monotonic()
                if new:
                    tracker.finished(1, [failure] if failure else [])
            case ["done"]:
                worker.unit = worker.step = None
                tracker.unit_finished()
            case ["broken", number, text, name]:
                raise OSError(number, text, name)
            case ["failed", reason]:
                raise WorkerError(f"a worker failed: {reason}; run the same command again to continue")
            case ["unfit", reason]:
                raise InputError(reason)
            case ["refused", reason]:
                self._remove(worker)
                raise RefusedError(reason)

    def _remove(self, worker: Worker) -> None:
        self.workers.remove(worker)
        worker.child.stop(grace=0)
        worker.child.close()

    def _is_late(self, worker: Worker) -> bool:
        if self.timeout is None or worker.step is None:
            return False
        allowed = self.timeout * self._cases_of(worker.step)
        return time.monotonic() - worker.since > allowed and not worker.child.ended()

    def _cases_of(self, step: Step) -> int:
        """How many cases a step covers: one, those of a unit if they are prepared together, or all if a method is fitted."""
        if step.what == "fit":
            return next((cell.count for cell in self.run.cells if cell.key == step.cell), 1)
        return BLOCK if step.what == "prepare" else 1

    def _handle_death(self, worker: Worker, tracker: "Tracker") -> None:
        """Requeue the unit of a worker that ended, without the step if that has ended workers too often."""
        for report in worker.child.read():  # reports sent before it died
            self._handle_report(worker, report, tracker)
        self._remove(worker)
        if worker.unit is None:
            return
        self.deaths[worker.step] += 1
        why = self._cause(worker)
        if worker.step is None and self.deaths[None] >= _TRIES:
            raise WorkerError(f"a worker {why} before its work began; run the same command again to continue")
        if worker.step and self.deaths[worker.step] >= _TRIES:
            self.lost[worker.step] = f"in {_TRIES} attempts the process that computed this {why}"
        elif worker.step and self.start:
            raise DiedError(worker.step, why)
        self.todo.appendleft(worker.unit)

    def _cause(self, worker: Worker) -> str:
        code = worker.child.code or 0
        if worker.late:
            return f"took longer than the {self.timeout:g} s of --timeout"
        if code < 0:
            return f"was killed by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}, as sys.exit or os._exit do"

    def end(self) -> None:
        """End all workers. Busy ones, after a failure or an interruption, write their finished cases first."""
        for worker in self._busy():
            worker.child.ask_to_end()
        for worker in self.workers:
            worker.child.stop() if worker.unit is not None else worker.child.stop(grace=0)
            worker.child.close()
        self.workers.clear()


def choose(kinds: Iterable[Kind | None], own: Kind | None, others: Set[Kind | None]) -> int:
    """The index of the next work for a worker: of its own kind, else of a kind that no other worker does, else the first.

    So that worlds, networks and libraries are loaded, and frames are rendered, in as few processes as possible.

    >>> birds, sprites = ("birds", "birds_cnn"), ("sprites", "")
    >>> todo = [birds, birds, sprites]
    >>> choose(todo, None, {birds}), choose(todo, birds, {birds}), choose(todo, None, {birds, sprites})
    (2, 0, 0)
    """
    free = None
    for place, kind in enumerate(kinds):
        if kind == own:
            return place
        if free is None and kind not in others:
            free = place
    return free or 0
