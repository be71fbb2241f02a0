"""A SLURM job array on a folder that all machines share: `slurm:16` for sixteen jobs that call `diorama work`.

The script is plain text in RUN/slurm. A job that is killed or loses its machine is put into the queue again, and computes
what is missing then.
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

from diorama.core.device import THREADS, of_workers
from diorama.core.errors import InputError, WorkerError
from diorama.core.run import Run, missing_of
from diorama.io.store import write_whole
from diorama.launch import contract
from diorama.launch.contract import Need, Seen, counted
from diorama.launch.units import spelt

#: Seconds between two looks at the folder.
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
# {count} of {folder}, computed by {jobs}; submit it again to go on: what is there is not computed again.
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
        return f"on SLURM: an array of {counted(self.jobs, 'job')} on {run.folder}, which all machines must share"

    def device(self) -> str:
        """A graphics processor where one is asked for."""
        return "gpu" if self.need.gpus else "cpu"

    def work(self, run: Run, units: Sequence[int], seen: Seen) -> bool:
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
            seen.workers = min(self.jobs, len(units))
            _wait(run, units, job, seen)
        else:
            look = f"`diorama report {run.folder}` says what is missing"
            self.output = f"submitted as job {job}; {look}, `scancel {job}` stops it\n"
        return self.need.wait


def script(run: Run, units: Sequence[int], jobs: int, need: Need) -> str:
    """The job array: every job has a list of units."""
    lists = [spelt(units[i::jobs]) for i in range(jobs)]
    more = [f"--gpus-per-task={need.gpus}"] if need.gpus else []
    more += [f"--mem={math.ceil(need.memory / 2**20)}M"] if need.memory else []
    variables = dict.fromkeys(THREADS, "1") | {k: v for k, v in os.environ.items() if k.startswith("DIORAMA_")}
    if not need.gpus and of_workers() == "cpu":
        variables["DIORAMA_DEVICE"] = "cpu"  # also on a machine that has another
    return _SCRIPT.format(
        last=jobs - 1,
        cpus=need.cpus,
        more="".join(f"#SBATCH {line}\n" for line in more),
        log=run.folder.resolve() / "slurm" / "%A_%a.log",
        count=counted(len(units), "unit"),
        jobs=counted(jobs, "job"),
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
    """Submit a script: the number of the job."""
    for name in ("sbatch", "squeue"):
        if not shutil.which(name):
            raise InputError(f"--on slurm: there is no {name} here; submit {path} where there is, or use --on local")
    done = subprocess.run(["sbatch", "--parsable", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise WorkerError(f"sbatch refused {path}: {' '.join(done.stderr.split()) or f'exit code {done.returncode}'}")
    return done.stdout.strip().partition(";")[0]


def _wait(run: Run, units: Sequence[int], job: str, seen: Seen) -> None:
    """Look at the folder until all rows are there, or the array has left the queue; stop it if we are stopped."""
    left = {k: len(missing_of(run, k)) for k in units}
    ended = False
    try:
        while any(left.values()) and _queued(job):
            time.sleep(_TICK)
            _look(run, left, seen)
        ended = True
    finally:
        if not ended:
            subprocess.run(["scancel", job], check=False, capture_output=True)
    _look(run, left, seen)


def _look(run: Run, left: dict[int, int], seen: Seen) -> None:
    for k in [k for k, cases in left.items() if cases]:
        now = len(missing_of(run, k))
        seen.finished(left[k] - now)
        if not now:
            seen.unit_finished()
        left[k] = now


def _queued(job: str) -> bool:
    asked = subprocess.run(["squeue", "-h", "-j", job], capture_output=True, text=True, check=False)
    return asked.returncode == 0 and bool(asked.stdout.strip())
