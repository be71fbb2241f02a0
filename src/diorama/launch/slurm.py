"""A SLURM job array on a folder that all machines share: `slurm:16` for sixteen jobs that call `diorama work`.

The script is RUN/slurm/array.sh. A job that is killed or loses its machine is requeued, and computes what is still missing.
"""

import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from diorama.core.device import THREADS, for_workers
from diorama.core.errors import InputError, WorkerError, count
from diorama.core.run import Run, missing_of
from diorama.io.store import write_whole
from diorama.launch import contract
from diorama.launch.contract import Need, Tracker
from diorama.launch.units import as_text

#: Seconds between two checks of the folder.
_TICK = 2.0
_SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=diorama
#SBATCH --array=0-{last}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cpus}
{more}#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={log}
# {count} of {folder}, computed by {jobs}; submit it again to continue: finished cases are not computed again.
set -euo pipefail
units=(
{units}
)
cd {cwd}
export {variables}
exec {python} -m diorama work {folder} --units "${{units[$SLURM_ARRAY_TASK_ID]}}"{timeout}
"""


class Launcher(contract.Launcher):
    """Submits one array and waits for it, or not."""

    def __init__(self, argument: str, need: Need) -> None:
        super().__init__(argument, need)
        if not argument.isdecimal() or int(argument) < 1:
            raise InputError(f"cannot run on 'slurm:{argument}': write slurm:16 for sixteen jobs")
        self.jobs = int(argument)

    def describe(self, run: Run) -> str:
        """How many jobs."""
        return f"on SLURM: an array of {count(self.jobs, 'job')} on {run.folder}, which all machines must share"

    def device(self) -> str:
        """`gpu` if GPUs are asked for, otherwise `cpu`."""
        return "gpu" if self.need.gpus else "cpu"

    def work(self, run: Run, units: Sequence[int], tracker: Tracker) -> bool:
        """Write the array, submit it, and wait until it is done."""
        text = script(run, units, min(self.jobs, len(units)), self.need)
        if self.need.dry_run:
            self.output = text
            return False
        _check_alone(run.folder)
        path = run.folder / "slurm" / "array.sh"
        write_whole(path, text.encode())
        job = _submit(path)
        write_whole(run.folder / "slurm" / "job", job.encode())
        if self.need.wait:
            tracker.workers = min(self.jobs, len(units))
            _wait(run, units, job, tracker)
        else:
            look = f"`diorama report {run.folder}` says what is missing"
            self.output = f"submitted as job {job}; {look}, `scancel {job}` stops it\n"
        return self.need.wait


def script(run: Run, units: Sequence[int], jobs: int, need: Need) -> str:
    """The job array: every job has a list of units."""
    lists = [as_text(units[i::jobs]) for i in range(jobs)]
    more = [f"--gpus-per-task={need.gpus}"] if need.gpus else []
    more += [f"--mem={math.ceil(need.memory / 2**20)}M"] if need.memory else []
    variables = dict.fromkeys(THREADS, "1") | {k: v for k, v in os.environ.items() if k.startswith("DIORAMA_")}
    if not need.gpus and for_workers() == "cpu":
        variables["DIORAMA_DEVICE"] = "cpu"  # even on machines that have a GPU
    return _SCRIPT.format(
        last=jobs - 1,
        cpus=need.cpus,
        more="".join(f"#SBATCH {line}\n" for line in more),
        log=run.folder.resolve() / "slurm" / "%A_%a.log",
        count=count(len(units), "unit"),
        jobs=count(jobs, "job"),
        units="\n".join(f'  "{one}"' for one in lists),
        cwd=shlex.quote(str(Path.cwd())),
        variables=" ".join(f"{name}={shlex.quote(value)}" for name, value in sorted(variables.items())),
        python=shlex.quote(sys.executable),
        folder=shlex.quote(str(run.folder.resolve())),
        timeout=f" --timeout {need.timeout:g}" if need.timeout else "",
    )


def _check_alone(folder: Path) -> None:
    """Refuse to submit a second array while the first one is in the queue."""
    known = folder / "slurm" / "job"
    if not known.exists() or not shutil.which("squeue"):
        return
    job = known.read_text()
    if _queued(job):
        raise InputError(f"job {job} is computing {folder}: wait for it, or stop it with `scancel {job}`")


def _submit(path: Path) -> str:
    """Submit a script; returns the number of the job."""
    for name in ("sbatch", "squeue"):
        if not shutil.which(name):
            raise InputError(f"--on slurm: there is no {name} here; submit {path} where there is, or use --on local")
    done = subprocess.run(["sbatch", "--parsable", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise WorkerError(f"sbatch refused {path}: {' '.join(done.stderr.split()) or f'exit code {done.returncode}'}")
    return done.stdout.strip().partition(";")[0]


def _wait(run: Run, units: Sequence[int], job: str, tracker: Tracker) -> None:
    """Wait until all rows are written or the array has left the queue; cancel it if this process is interrupted."""
    left = {k: len(missing_of(run, k)) for k in units}
    ended = False
    try:
        while any(left.values()) and _queued(job):
            time.sleep(_TICK)
            _look(run, left, tracker)
        ended = True
    finally:
        if not ended:
            subprocess.run(["scancel", job], check=False, capture_output=True)
    _look(run, left, tracker)


def _look(run: Run, left: dict[int, int], tracker: Tracker) -> None:
    for k in [k for k, cases in left.items() if cases]:
        now = len(missing_of(run, k))
        tracker.finished(left[k] - now)
        if not now:
            tracker.unit_finished()
        left[k] = now


def _queued(job: str) -> bool:
    asked = subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True, check=False)
    return asked.returncode == 0 and bool(asked.stdout.strip())
