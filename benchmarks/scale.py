"""Scale: workers on this machine and under Ray against independent processes on the same work; what a unit costs the driver;
a queueing model from these figures; passes of the full tables. `--json` and `--save` also fill docs/scale.md with the
figures; `--page` does so with those that were kept last, and measures nothing."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._print import kept, main
from benchmarks._scale_model import write_page
from benchmarks._scale_passes import passes
from diorama.core.plan import Plan
from diorama.core.rows import Row
from diorama.core.run import Run, create
from diorama.io.run_folder import cell_folder
from diorama.launch.parcel import Answer, order, write_answer

#: Seconds that one worker should take for the common work; the whole benchmark takes about five times as long.
SECONDS = float(os.environ.get("DIORAMA_BENCH_SECONDS", "60"))
BIRDS = ["-w", "birds", "-M", "birds_cnn", "-m", "integrated_gradients(steps=16)", "-p", "single_deletion"]
TINY = ["-w", "mondrian(size=20, patches=3)", "-m", "constant", "-p", "lmse"]


class Timed:
    """A run on the command line, and when its rows were written."""

    def __init__(self, words: list[str], folder: Path, *commands: list[str]) -> None:
        self.folder = folder
        first = ["run", *words, "-o", str(folder)]
        if len(commands) > 1:
            _call([*first, "--prepare"])
        begun = time.time()
        started = [_start([*(first if len(commands) == 1 else ["work", str(folder)]), *more]) for more in commands]
        for process in started:
            if process.wait() not in (0, 3):
                raise RuntimeError(f"{words} {commands} ended with exit code {process.returncode}")
        self.whole = time.time() - begun
        written = sorted((p.stat().st_mtime, _lines(p)) for p in folder.glob("cells/*/*/rows/*.jsonl"))
        self.first = written[0][0] - begun
        self.span = written[-1][0] - written[0][0]
        self.after = sum(count for _, count in written) - written[0][1]

    @property
    def rate(self) -> float:
        """Rows per second once the first ones are there."""
        return self.after / self.span


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _start(words: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "diorama", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _call(words: list[str]) -> None:
    if _start(words).wait():
        raise RuntimeError(f"{words} failed")


def common(place: Path) -> dict[str, float]:
    """The same birds under one and two workers, local and Ray, and in two processes that know nothing of each other."""
    trial = Timed([*BIRDS, "-n", "24"], place / "trial", ["--on", "local:1"])
    unit = 8 * trial.span / 16
    cases = 16 * max(2, round(SECONDS / unit / 2))
    words = [*BIRDS, "-n", str(cases)]
    apart = Timed(words, place / "apart", ["--shard", "0/2"], ["--shard", "1/2"])
    made = {on: Timed(words, place / on, ["--on", on]) for on in ("local:1", "local:2")}
    made |= {f"ray:{n}": _on_ray(words, place / f"ray{n}", n) for n in (1, 2)}
    rate = {on: run.rate for on, run in made.items()}
    return {
        "cases": float(cases),
        "unit_seconds": 8 * made["local:1"].span / (cases - 8),
        **{f"{on.replace(':', '_')}_seconds": run.whole for on, run in made.items()},
        **{f"{on.replace(':', '_')}_first_row_seconds": run.first for on, run in made.items()},
        "two_independent_seconds": apart.whole,
        "local_2_over_two_independent": apart.whole / made["local:2"].whole,
        "local_2_over_local_1_time": made["local:2"].whole / made["local:1"].whole,
        "local_2_efficiency": rate["local:2"] / rate["local:1"] / 2,
        "ray_2_efficiency": rate["ray:2"] / rate["local:1"] / 2,
        "ray_overhead_percent": 100 * (rate["local:1"] / rate["ray:1"] - 1),
    }


def _on_ray(words: list[str], folder: Path, workers: int) -> Timed:
    """Under a Ray of so many workers: each asks for the cores that leave room for no more."""
    from diorama.launch.machine import cores

    return Timed(words, folder, ["--on", "ray", "--cpus", str(max(1, cores() // workers))])


def per_unit(place: Path, units: int = 48) -> dict[str, float]:
    """Work that takes no time: what handing out a unit costs."""
    words = [*TINY, "-n", str(units)]
    here = Timed(words, place / "tiny", ["--on", "local:1"])
    there = _on_ray(words, place / "tiny_ray", 1)
    return {
        "local_seconds_per_unit": here.span / (units - 1),
        "ray_seconds_per_unit": there.span / (units - 1),
    }


def writing(place: Path, units: int = 256) -> dict[str, float]:
    """What the driver does for a unit of four cells and eight cases, without any worker: an order out, an answer home."""
    methods = ["baseline", "weiss", "retinex_gray", "retinex_color"]
    run = create(place / "driver", Plan(["mondrian(size=20, patches=3)"], methods, ["lmse"], cases=8 * units))
    answers = [_made_up(run, k) for k in range(units)]
    _ = run.units
    begun = time.perf_counter()
    for k, answer in enumerate(answers):
        order(run, k, [])
        write_answer(run, answer)
    taken = time.perf_counter() - begun
    rows = sum(len(lines["rows"]) for answer in answers for lines in answer.cells.values())
    assert cell_folder(run.folder, run.cells[0].key).is_dir()
    return {"driver_seconds_per_unit": taken / units, "driver_rows_per_second": rows / taken}


def _made_up(run: Run, k: int) -> Answer:
    """An answer with rows of the right cases."""
    unit = run.units[k]
    cells = {}
    for cell in unit.cells:
        metrics, cases = cell.protocol.object.metrics, [cell.cases.keys[i] for i in unit.indices]
        rows = [Row(cell.key, case, metric, 0.5).line() for case in cases for metric in metrics]
        cells[cell.key] = {"rows": rows}
    return Answer(k, "here", {}, cells)


def measure() -> dict[str, float]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return {**writing(place), **per_unit(place), **common(place), **passes()}


if __name__ == "__main__":
    if "--page" not in sys.argv:
        main("scale", measure, ("numpy", "torch", "ray"))
    found = kept("scale")
    if found is None:
        sys.exit("bench: scale was not measured yet: scripts/bench scale --json")
    if {"--page", "--json", "--save"} & set(sys.argv):
        write_page(found["figures"], found["about"])
