"""Worker processes on this machine, as many as its physical cores and memory allow: `local`, or `local:2` for two."""

from collections.abc import Sequence

from diorama.core.errors import InputError
from diorama.core.gallery import pending, tidy
from diorama.core.progress import Progress
from diorama.core.record import record
from diorama.core.run import Run, missing_of, silent, work
from diorama.io.locks import locked
from diorama.launch import contract, machine
from diorama.launch.contract import Need, Seen
from diorama.launch.supervise import Supervisor

#: The lock of whoever computes all of a run.
WHOLE = "shard-0-of-1"
#: Bytes that a worker is assumed to need without --memory: for torch, a network, a batch and its gradients.
USUAL = 2 * 2**30


class Launcher(contract.Launcher):
    """Supervised worker processes that take units from one list, so that they end together."""

    def __init__(self, argument: str, need: Need, lock: str = WHOLE) -> None:
        super().__init__(argument, need)
        self.lock = lock
        if argument and (not argument.isdecimal() or int(argument) < 1):
            raise InputError(f"cannot run on 'local:{argument}': write local, or local:2 for two processes")
        self.workers = int(argument) if argument else fitting(need)
        self.own = _shares(need.gpus, self.workers) if need.gpus else []

    def describe(self, run: Run) -> str:
        """How many workers, and why that many."""
        if self.argument:
            return f"on this machine: {contract.counted(self.workers, 'worker')}"
        memory, has = (self.need.memory or USUAL) / 2**30, machine.memory() / 2**30
        return (
            f"on this machine: {contract.counted(self.workers, 'worker')}, for {machine.cores()} physical cores and"
            f" {has:.0f} GB of free memory at {memory:.3g} GB each (--on local:1 for one)"
        )

    def drawers(self) -> int:
        """All workers."""
        return self.workers

    def work(self, run: Run, units: Sequence[int], seen: Seen) -> bool:
        """Hand the units to worker processes. Those of a whole run then draw its pictures: they have all in memory."""
        seen.workers = min(self.workers, len(units)) or 1
        all_ = Supervisor(run, self.workers, self.need.timeout, own=self.own)
        with locked(run.folder / "locks" / self.lock), all_:
            all_.work(units, seen)
            if self.lock == WHOLE:
                all_.work(_to_draw(run, self.workers), Seen(silent, 0, 0))
        return True


def fitting(need: Need) -> int:
    """As many workers as this machine's cores, memory and graphics processors allow; one at least."""
    limits = [machine.cores() // max(need.cpus, 1), machine.memory() // (need.memory or USUAL)]
    if need.gpus:
        limits.append(len(machine.gpus()) // need.gpus)
    return max(1, min(limits))


def _shares(each: int, workers: int) -> list[dict[str, str]]:
    """The graphics processors of every worker."""
    found = machine.gpus()
    if len(found) < each * workers:
        raise InputError(f"--gpus {each}: {workers} workers need {each * workers}, and this machine has {len(found)}")
    return [{"CUDA_VISIBLE_DEVICES": ",".join(found[i * each : (i + 1) * each])} for i in range(workers)]


def launch(run: Run, count: int, progress: Progress = silent) -> None:
    """Do all the missing work of a run in `count` processes, and record what its rows come to; 1 means this process."""
    if count == 1:
        work(run, 0, 1, progress)
    else:
        on(Launcher(str(count), Need()), run, progress)
    record(run)


def on(launcher: contract.Launcher, run: Run, show: Progress, units: Sequence[int] | None = None) -> bool:
    """Have a launcher do the missing work of a run, or of some of its units; False if it goes on elsewhere."""
    missing = {k: len(missing_of(run, k)) for k in (range(len(run.units)) if units is None else units)}
    weights = {k: cases * (1000 if run.units[k].cells[0].model else 1) for k, cases in missing.items() if cases}
    todo = sorted(
        weights, key=lambda k: -weights[k]
    )  # long units first, so that workers end together: those with a model
    return not todo or launcher.work(run, todo, Seen(show, sum(missing.values()), len(todo)))


def draw(run: Run, count: int = 1, timeout: float | None = None) -> None:
    """Draw the pictures of a run that are not there, in worker processes; those that cannot be drawn are left out."""
    with Supervisor(run, count, timeout) as all_:
        all_.work(_to_draw(run, count, bool(run.plan.keep)), Seen(silent, 0, 0))


def _to_draw(run: Run, count: int, always: bool = False) -> list[tuple[int, int]]:
    """The shares of the pictures that are lacking, one per worker; pictures that are not shown are removed."""
    tidy(run)
    return [(i, count) for i in range(count)] if always or pending(run) else []
