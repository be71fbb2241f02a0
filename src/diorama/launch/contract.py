"""What a launcher is: something that has the units of a run computed, here or elsewhere, and brings their rows home.

Derive from `Launcher` and write `work`; or, where workers share no folder with this process, from `Remote` and write four
small methods: what is lost is then tried again elsewhere, counted and reported for you.
"""

import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from diorama.core.errors import InputError, WorkerError, tell
from diorama.core.progress import Progress
from diorama.core.run import Run, Step, give_up, missing_of
from diorama.launch.parcel import Answer, opening, order, take_home

#: How often a unit is tried if its worker ends, and how often if the machine vanishes, which is not the unit's fault.
TRIES, NODES = 2, 6


@dataclass(frozen=True, slots=True)
class Need:
    """What every worker is given, the same everywhere, and how a launcher is to go about it.

    cpus: cores that a worker has for itself. It computes with one thread all the same, so that sums come out the same.
    gpus: graphics processors that it has for itself.
    memory: bytes that it may use; None where the launcher's usual amount will do.
    timeout: seconds after which a case is given up; None for never.
    wait: whether to stay until all is done.
    dry_run: whether to show only what would be submitted.
    """

    cpus: int = 1
    gpus: int = 0
    memory: int | None = None
    timeout: float | None = None
    wait: bool = True
    dry_run: bool = False


@dataclass(slots=True)
class Seen:
    """How far the work is. Launchers call this object, so that progress looks the same for all of them."""

    show: Progress
    cases: int
    units: int
    workers: int = 1
    done: int = 0
    units_done: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    since: float = field(default_factory=time.monotonic)

    def finished(self, cases: int = 1, failures: Iterable[str] = ()) -> None:
        """Some cases are done; `failures` are the reasons of those that failed."""
        self.done = min(self.done + cases, self.cases)
        self.failures.update(failures)
        self.again()

    def unit_finished(self) -> None:
        """A unit is done."""
        self.units_done += 1
        self.again()

    def again(self) -> None:
        """Show how far the work is."""
        self.show(self.done, self.cases, self.line())

    def line(self) -> str:
        """Units, workers, speed and failures.

        >>> Seen(print, cases=48, units=6, workers=2, since=time.monotonic()).line()
        '0 of 6 units, 2 workers'
        """
        minutes = (time.monotonic() - self.since) / 60
        speed = f" with {self.done / minutes / self.workers:.3g} cases a minute each" if self.done else ""
        text = f"{self.units_done} of {self.units} units, {counted(self.workers, 'worker')}{speed}"
        often = self.failures.most_common(1)
        return text + (f"; {self.failures.total()} failed, most often: {often[0][0][:120]}" if often else "")


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "worker"), counted(2, "worker")
    ('1 worker', '2 workers')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def read_size(text: str | None) -> int | None:
    """Bytes from a size as people write it.

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
    """Has units of a run computed. Made from what follows the colon in `--on NAME:ARGUMENT`, and what a worker needs."""

    def __init__(self, argument: str, need: Need) -> None:
        self.argument, self.need = argument, need
        self.workers = 1
        self.output = ""  # what the command prints where `work` returns False

    def describe(self, run: Run) -> str:
        """One line for the user before the work starts: where, and with how many workers."""
        return ""

    def device(self) -> str:
        """What workers elsewhere compute on, `cpu` or `gpu`; empty where they compute on what this process would."""
        return ""

    def drawers(self) -> int:
        """How many processes of this machine may draw the pictures once all rows are there."""
        return 1

    @abstractmethod
    def work(self, run: Run, units: Sequence[int], seen: Seen) -> bool:
        """Have the units computed and their rows in the folder of the run; tell `seen`; leave no worker behind.

        False if the work goes on elsewhere without this process.
        """


@dataclass(frozen=True, slots=True)
class Lost:
    """A unit came back without its rows: the worker ended, or (`vanished`) the machine that it ran on did."""

    unit: int
    why: str
    vanished: bool = False


class Remote(Launcher):
    """A launcher whose workers share nothing with this process: orders go out, answers come back, this process writes.

    A worker, wherever it is, calls `diorama.launch.place.carry_out(opening, order)`, texts in and a text out; or it is a
    process `python -m diorama.launch.place`, which does so for every line that it reads.
    """

    @abstractmethod
    def start(self, opening: str) -> None:
        """Start workers; they all need this text, once."""

    @abstractmethod
    def room(self) -> int:
        """How many units may be out at the same time."""

    @abstractmethod
    def send(self, unit: int, order: str, avoid: Sequence[str]) -> None:
        """Give a unit to a worker, if possible not on one of the places to avoid."""

    @abstractmethod
    def receive(self) -> "list[Answer | Lost]":
        """What has come back, after a second at most."""

    @abstractmethod
    def stop(self) -> None:
        """End all workers."""

    def device(self) -> str:
        """A graphics processor where one is asked for; the CPU otherwise, whatever this machine has."""
        return "gpu" if self.need.gpus else "cpu"

    def work(self, run: Run, units: Sequence[int], seen: Seen) -> bool:
        """Hand out units until all have come home."""
        returns = _Returns(run, seen)
        todo, out = deque(units), set[int]()
        try:
            self.start(opening(run, self.need.timeout, self.need.gpus))
            while todo or out:
                while todo and len(out) < self.room():
                    out.add(todo[0])
                    self.send(todo[0], order(run, todo[0], returns.deaths[todo[0]]), returns.avoided(todo.popleft()))
                seen.workers = self.workers
                for one in self.receive():
                    out.discard(one.unit)
                    if not returns.take(one):
                        todo.append(one.unit)
                seen.again()
        finally:
            self.stop()
        return True


class _Returns:
    """What came back: rows are written, units that were lost are to be tried again or given up."""

    def __init__(self, run: Run, seen: Seen) -> None:
        self.run, self.seen = run, seen
        self.deaths: dict[int, list[Step]] = {k: [] for k in range(len(run.units))}
        self.tried: Counter[tuple[int, bool]] = Counter()
        self.refused: list[str] = []
        self.avoid: dict[int, str] = {}
        self.told: dict[int, list[str]] = {}

    def avoided(self, unit: int) -> list[str]:
        """The places that a unit should not go to."""
        self.told[unit] = [*self.refused, *([self.avoid[unit]] if unit in self.avoid else [])]
        return self.told[unit]

    def take(self, one: "Answer | Lost") -> bool:
        """Write what came; whether the unit is done."""
        if isinstance(one, Lost):
            return self._lost(one)
        asked = len(missing_of(self.run, one.unit))
        brought, failures = take_home(self.run, one)
        self.seen.finished(brought, failures)
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
        self.seen.unit_finished()
        return True

    def _lost(self, one: Lost) -> bool:
        self.tried[one.unit, one.vanished] += 1
        if self.tried[one.unit, one.vanished] < (NODES if one.vanished else TRIES):
            tell(f"unit {one.unit} {one.why}: it is tried again elsewhere")
            return False
        why = f"in {self.tried[one.unit, one.vanished]} attempts the unit of this case {one.why}"
        count = give_up(self.run, one.unit, why)
        self.seen.finished(count, [why] * count)
        self.seen.unit_finished()
        return True

    def _refuse(self, unit: int, place: str, why: str) -> None:
        """A place that would compute other rows gets no more work; if there is no other place, that is an error."""
        if place in self.told[unit]:  # there was no other
            raise WorkerError(f"no worker can be used: {why}")
        if place not in self.refused:  # several units may have been there already
            self.refused.append(place)
            tell(why)
