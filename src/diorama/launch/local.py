"""Local processes: one `diorama work RUN --shard i/n` each, with one thread, watched until all have ended."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable

from diorama.core.errors import InputError, WorkerError
from diorama.core.run import Run, work

Progress = Callable[[int, int], None]
#: Two processes with one thread each beat one with two.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


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
    """Do all the missing work of a run in `count` processes; one process means this one."""
    if count == 1:
        work(run, 0, 1, progress)
        return
    state: dict[int, tuple[int, int]] = {}
    workers = [_start(run, i, count) for i in range(count)]
    watchers = [
        threading.Thread(target=_watch, args=(w, i, state, progress), daemon=True) for i, w in enumerate(workers)
    ]
    try:
        for thread in watchers:
            thread.start()
        for worker in workers:
            worker.wait()
    except KeyboardInterrupt:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
        raise
    for thread in watchers:
        thread.join()
    _check(workers)


def _start(run: Run, shard: int, shards: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "diorama", "work", str(run.folder), "--shard", f"{shard}/{shards}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **_ONE_THREAD})


def _watch(worker: subprocess.Popen[str], shard: int, state: dict[int, tuple[int, int]], progress: Progress) -> None:
    """Read `done/total` lines from a worker and add up what all of them report."""
    assert worker.stdout is not None
    with worker.stdout as lines:
        for line in lines:
            done, _, total = line.strip().partition("/")
            if done.isdecimal() and total.isdecimal():
                state[shard] = (int(done), int(total))
                progress(sum(d for d, _ in state.values()), sum(t for _, t in state.values()))


def _check(workers: list[subprocess.Popen[str]]) -> None:
    for shard, worker in enumerate(workers):
        if worker.returncode < 0:
            raise WorkerError(
                f"worker {shard} was killed by signal {-worker.returncode}; the same command goes on from here"
            )
        if worker.returncode:
            raise WorkerError(
                f"worker {shard} failed with exit code {worker.returncode}; the same command goes on from here"
            )
