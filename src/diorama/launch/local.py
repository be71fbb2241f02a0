"""The launcher for this machine: as many worker processes as physical cores and memory allow, or `local:2` for two."""

from collections.abc import Sequence

from diorama.core.errors import InputError, count
from diorama.core.gallery import pending, tidy
from diorama.core.progress import Progress
from diorama.core.record import record
from diorama.core.run import Run, missing_of, silent, work
from diorama.io.locks import locked
from diorama.launch import contract, machine
from diorama.launch.contract import Need, Tracker
from diorama.launch.supervise import Supervisor

#: The lock for computing a whole run.
WHOLE = "shard-0-of-1"
#: Bytes for a worker if --memory is not given: enough for torch, a network, a batch and its gradients.
USUAL = 2 * 2**30


class Launcher(contract.Launcher):
    """Supervised worker processes that take units from one queue, so that they finish at about the same time."""

    def __init__(self, argument: str, need: Need, lock: str = WHOLE) -> None:
        super().__init__(argument, need)
        self.lock = lock
        if argument and (not argument.isdecimal() or int(argument) < 1):
            raise InputError(f"cannot run on 'local:{argument}': write local, or local:2 for two processes")
        self.workers = int(argument) if argument else fitting(need)
        self.own = _gpu_shares(need.gpus, self.workers) if need.gpus else []

    def describe(self, run: Run) -> str:
        """How many workers, and why that many."""
        if self.argument:
            return f"on this machine: {count(self.workers, 'worker')}"
        memory, has = (self.need.memory or USUAL) / 2**30, machine.memory() / 2**30
        return (
            f"on this machine: {count(self.workers, 'worker')}, for {machine.cores()} physical cores and"
            f" {has:.0f} GB of free memory at {memory:.3g} GB each (--on local:1 for one)"
        )

    def drawers(self) -> int:
        """The number of workers."""
        return self.workers

    def work(self, run: Run, units: Sequence[int], tracker: Tracker) -> bool:
        """Hand the units to worker processes. If they computed a whole run, they draw its pictures from their caches."""
        tracker.workers = min(self.workers, len(units)) or 1
        supervisor = Supervisor(run, self.workers, self.need.timeout, own=self.own)
        with locked(run.folder / "locks" / self.lock), supervisor:
            supervisor.work(units, tracker)
            if self.lock == WHOLE:
                supervisor.work(_to_draw(run, self.workers), Tracker(silent, 0, 0))
        return True


def fitting(need: Need) -> int:
    """As many workers as this machine's cores, memory and GPUs allow; one at least."""
    limits = [machine.cores() // max(need.cpus, 1), machine.memory() // (need.memory or USUAL)]
    if need.gpus:
        limits.append(len(machine.gpus()) // need.gpus)
    return max(1, min(limits))


def _gpu_shares(each: int, workers: int) -> list[dict[str, str]]:
    """The environment variable that gives each worker its GPUs."""
    found = machine.gpus()
    if len(found) < each * workers:
        raise InputError(f"--gpus {each}: {workers} workers need {each * workers}, and this machine has {len(found)}")
    return [{"CUDA_VISIBLE_DEVICES": ",".join(found[i * each : (i + 1) * each])} for i in range(workers)]


def launch(run: Run, count: int, progress: Progress = silent) -> None:
    """Do all the missing work of a run in `count` processes (1: in this process), and write its records."""
    if count == 1:
        work(run, 0, 1, progress)
    else:
        on(Launcher(str(count), Need()), run, progress)
    record(run)


def on(launcher: contract.Launcher, run: Run, show: Progress, units: Sequence[int] | None = None) -> bool:
    """Have a launcher do the missing work of a run, or of some of its units; False if it continues elsewhere."""
    missing = {k: len(missing_of(run, k)) for k in (range(len(run.units)) if units is None else units)}
    weights = {k: cases * (1000 if run.units[k].cells[0].model else 1) for k, cases in missing.items() if cases}
    # long units (those with a model) first, so that workers finish at about the same time
    todo = sorted(weights, key=lambda k: -weights[k])
    return not todo or launcher.work(run, todo, Tracker(show, sum(missing.values()), len(todo)))


def draw(run: Run, count: int = 1, timeout: float | None = None) -> None:
    """Draw the missing pictures of a run in worker processes; those that cannot be drawn are left out."""
    with Supervisor(run, count, timeout) as supervisor:
        supervisor.work(_to_draw(run, count, bool(run.plan.keep)), Tracker(silent, 0, 0))


def _to_draw(run: Run, count: int, always: bool = False) -> list[tuple[int, int]]:
    """The shares of missing pictures, one per worker, if there are any; pictures that are not shown are removed."""
    tidy(run)
    return [(i, count) for i in range(count)] if always or pending(run) else []
