"""Processes on this machine: the work of a run in this process, or in supervised worker processes."""

from diorama.core.errors import InputError
from diorama.core.gallery import pending
from diorama.core.record import record
from diorama.core.run import Progress, Run, missing_of, work
from diorama.io.locks import locked
from diorama.launch.supervise import Supervisor


def processes(on: str) -> int:
    """The number of processes in `local` or `local:n`.

    >>> processes("local"), processes("local:4")
    (1, 4)
    """
    name, _, count = on.partition(":")
    if name != "local" or not (count or "1").isdecimal() or int(count or 1) < 1:
        raise InputError(
            f"cannot run on {on!r}: write local or local:2 (a job array can call `diorama work RUN --shard i/n`)"
        )
    return int(count or 1)


def launch(run: Run, count: int, progress: Progress) -> None:
    """Do all the missing work of a run in `count` processes, and record what its rows come to; 1 means this process."""
    if count == 1:
        work(run, 0, 1, progress)
    else:
        supervised(run, (0, 1), count, progress)
    record(run)


def supervised(run: Run, shard: tuple[int, int], count: int, progress: Progress, timeout: float | None = None) -> int:
    """Do the missing work of shard i of n in `count` worker processes, and say how many cases that were."""
    with locked(run.folder / "locks" / f"shard-{shard[0]}-of-{shard[1]}"):
        missing = {k: len(missing_of(run, k)) for k in range(shard[0], len(run.units), shard[1])}
        total = sum(missing.values())
        Supervisor(run, [k for k, cases in missing.items() if cases], count, timeout).work(progress, total)
    return total


def draw(run: Run, timeout: float | None = None) -> None:
    """Draw the pictures of a run in a worker process; those that cannot be drawn are left out."""
    if pending(run):
        Supervisor(run, [None], 1, timeout).work(lambda done, total: None, 0)
