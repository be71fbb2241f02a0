"""The base classes of launchers: a launcher has the units of a run computed, here or elsewhere, and their rows written.

Derive from `Launcher` and write `work`; or, if workers share no folder with this process, from `Remote` and write its small
methods: retries elsewhere, counts and progress are then done for you.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from diorama.core.errors import InputError, WorkerError, count, tell
from diorama.core.progress import Progress
from diorama.core.run import Run, Step, give_up, missing_of
from diorama.launch.parcel import Answer, opening, order, write_answer

#: How often a unit is tried if its worker ends, and how often if the machine vanishes, which is not the unit's fault.
TRIES, NODES = 2, 6


@dataclass(frozen=True, slots=True)
class Need:
    """The resources of every worker, and options of launchers.

    cpus: cores reserved for a worker. It computes with one thread anyway, so that sums are the same everywhere.
    gpus: GPUs reserved for a worker.
    memory: bytes that a worker may use; None for the launcher's default.
    timeout: seconds after which a case is given up; None for never.
    wait: whether to wait until all is done.
    dry_run: whether to only print what would be submitted.
    """

    cpus: int = 1
    gpus: int = 0
    memory: int | None = None
    timeout: float | None = None
    wait: bool = True
    dry_run: bool = False


@dataclass(slots=True)
class Tracker:
    """Counts finished cases and shows progress, in the same way for all launchers."""

    show: Progress
    cases: int
    units: int
    workers: int = 1
    done: int = 0
    units_done: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    since: float = field(default_factory=time.monotonic)

    def finished(self, cases: int = 1, failures: Iterable[str] = ()) -> None:
        """Count finished cases; `failures` are the reasons of those that failed."""
        self.done = min(self.done + cases, self.cases)
        self.failures.update(failures)
        self.refresh()

    def unit_finished(self) -> None:
        """Count a finished unit."""
        self.units_done += 1
        self.refresh()

    def refresh(self) -> None:
        """Show the progress."""
        self.show(self.done, self.cases, self.line())

    def line(self) -> str:
        """Units, workers, speed and failures.

        >>> Tracker(print, cases=48, units=6, workers=2, since=time.monotonic()).line()
        '0 of 6 units, 2 workers'
        """
        minutes = (time.monotonic() - self.since) / 60
        speed = f" with {self.done / minutes / self.workers:.3g} cases a minute each" if self.done else ""
        text = f"{self.units_done} of {self.units} units, {count(self.workers, 'worker')}{speed}"
        often = self.failures.most_common(1)
        return text + (f"; {self.failures.total()} failed, most often: {often[0][0][:120]}" if often else "")


def read_size(text: str | None) -> int | None:
    """Bytes from a size like 4G.

    >>> read_size("4G"), read_size("500M"), read_size(None)
    (4294967296, 524288000, None)
    """
    if text is None:
        return None
    number, unit = text.strip()[:-1], text.strip()[-1:].upper()
    try:
        size = int(float(number) * {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size < 1:
        raise InputError(f"--memory {text}: write a size such as 500M or 4G")
    return size


class Launcher(ABC):
    """Has units of a run computed. `argument` is that of `--on NAME:ARGUMENT`."""

    def __init__(self, argument: str, need: Need) -> None:
        self.argument, self.need = argument, need
        self.workers = 1
        self.output = ""  # the output of the command if `work` returns False

    def describe(self, run: Run) -> str:
        """One line for the user before the work starts: where, and with how many workers."""
        return ""

    def device(self) -> str:
        """The device of workers elsewhere, `cpu` or `gpu`; empty if they use the device of this process."""
        return ""

    def drawers(self) -> int:
        """How many processes on this machine may draw the pictures when all rows are written."""
        return 1

    @abstractmethod
    def work(self, run: Run, units: Sequence[int], tracker: Tracker) -> bool:
        """Have the units computed and their rows written to the run's folder; report to `tracker`; leave no worker running.

        False if the work continues elsewhere without this process.
        """


@dataclass(frozen=True, slots=True)
class Lost:
    """A unit without its rows: its worker ended, or (`vanished`) the machine did."""

    unit: int
    why: str
    vanished: bool = False


class Remote(Launcher):
    """A launcher whose workers share no folder with this process: they send answers, and this process writes the rows.

    A worker calls `diorama.launch.place.carry_out(opening, order)`, which takes texts and returns a text; or it is a process
    `python -m diorama.launch.place`, which does so for every line that it reads.
    """

    @abstractmethod
    def start(self, opening: str) -> None:
        """Start workers; each of them needs the text `opening` once."""

    @abstractmethod
    def room(self) -> int:
        """How many units may be sent out at the same time."""

    @abstractmethod
    def send(self, unit: int, order: str, avoid: Sequence[str]) -> None:
        """Give a unit to a worker, if possible not on one of the places to avoid."""

    @abstractmethod
    def receive(self) -> "list[Answer | Lost]":
        """The answers that have arrived; waits a second at most."""

    @abstractmethod
    def stop(self) -> None:
        """End all workers."""

    def device(self) -> str:
        """`gpu` if GPUs are asked for; otherwise `cpu`, whatever this machine has."""
        return "gpu" if self.need.gpus else "cpu"

    def work(self, run: Run, units: Sequence[int], tracker: Tracker) -> bool:
        """Send out units until all answers have arrived."""
        returns = _Returns(run, tracker)
        todo, out = deque(units), set[int]()
        try:
            self.start(opening(run, self.need.timeout, self.need.gpus))
            while todo or out:
                while todo and len(out) < self.room():
                    out.add(todo[0])
                    self.send(todo[0], order(run, todo[0], returns.deaths[todo[0]]), returns.avoided(todo.popleft()))
                tracker.workers = self.workers
                for one in self.receive():
                    out.discard(one.unit)
                    if not returns.take(one):
                        todo.append(one.unit)
                tracker.refresh()
        finally:
            self.stop()
        return True


class _Returns:
    """Handles answers: writes rows, and decides whether lost units are tried again or given up."""

    def __init__(self, run: Run, tracker: Tracker) -> None:
        self.run, self.tracker = run, tracker
        self.deaths: dict[int, list[Step]] = {k: [] for k in range(len(run.units))}
        self.tried: Counter[tuple[int, bool]] = Counter()
        self.refused: list[str] = []
        self.avoid: dict[int, str] = {}
        self.avoiding: dict[int, list[str]] = {}

    def avoided(self, unit: int) -> list[str]:
        """The places that a unit should not be sent to."""
        self.avoiding[unit] = [*self.refused, *([self.avoid[unit]] if unit in self.avoid else [])]
        return self.avoiding[unit]

    def take(self, one: "Answer | Lost") -> bool:
        """Write the rows of an answer; returns whether the unit is done."""
        if isinstance(one, Lost):
            return self._lost(one)
        asked = len(missing_of(self.run, one.unit))
        brought, failures = write_answer(self.run, one)
        self.tracker.finished(brought, failures)
        match one.end:
            case {"refused": why}:
                self._refuse(one.unit, one.place, why)
                return False
            case {"failed": why}:
                raise WorkerError(f"a worker on {one.place} failed: {why}; run the same command again to continue")
            case {"died": why, "step": step}:
                self.deaths[one.unit].append(Step(*step))
                self.avoid[one.unit] = one.place
                tell(f"a worker on {one.place} {why}; what it was computing is tried once more")
                return False
        if brought < asked:
            return self._lost(Lost(one.unit, f"came back from {one.place} without all its rows"))
        self.tracker.unit_finished()
        return True

    def _lost(self, one: Lost) -> bool:
        self.tried[one.unit, one.vanished] += 1
        if self.tried[one.unit, one.vanished] < (NODES if one.vanished else TRIES):
            tell(f"unit {one.unit} {one.why}: it is tried again elsewhere")
            return False
        why = f"in {self.tried[one.unit, one.vanished]} attempts the unit of this case {one.why}"
        lost = give_up(self.run, one.unit, why)
        self.tracker.finished(lost, [why] * lost)
        self.tracker.unit_finished()
        return True

    def _refuse(self, unit: int, place: str, why: str) -> None:
        """Send no more work to a place that would compute other rows; WorkerError if there is no other place."""
        if place in self.avoiding[unit]:  # sent there again, so there is no other place
            raise WorkerError(f"no worker can be used: {why}")
        if place not in self.refused:  # it may have refused several units
            self.refused.append(place)
            tell(why)
