"""A run: a directory of cells. `work_unit` computes the rows of one unit that are missing; launchers start nothing else."""

import platform
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np

import diorama
from diorama.core import kept
from diorama.core.bench import Asked
from diorama.core.cases import Case, Score
from diorama.core.device import one_thread
from diorama.core.errors import AnswerError, Excluded, InputError, Undefined, tell
from diorama.core.fits import fitted
from diorama.core.guard import Outcome, attempt, one_line
from diorama.core.memory import Memory
from diorama.core.plan import Cell, Expansion, Plan, expand
from diorama.core.progress import Progress
from diorama.core.rows import Row, Status
from diorama.core.watch import undisturbed
from diorama.io.locks import locked
from diorama.io.names import case_path
from diorama.io.row_files import Rows, heal, read_rows, rows_between, write_part
from diorama.io.run_folder import SCHEMA, cell_folder, check_layout, check_readable, damage, manifest_damage
from diorama.io.store import content, json_bytes, remove_leftovers, set_aside, write_json, write_whole

#: Consecutive cases that share passes through a model. Without a model a unit is smaller, so that shards are even.
BLOCK = 8
#: Finished cases are written after so many seconds, even in the middle of a unit: the most work that a kill may cost.
FLUSH = 10.0


@dataclass(frozen=True)
class Run:
    """A run directory with its plan."""

    folder: Path
    plan: Plan

    @cached_property
    def expansion(self) -> Expansion:
        """The plan's cells and skipped pairs."""
        return expand(self.plan)

    @property
    def cells(self) -> list[Cell]:
        """The plan's cells."""
        return self.expansion.cells

    @cached_property
    def units(self) -> "list[Unit]":
        """What is computed together, in a fixed order."""
        return units(self)

    def title(self, key: str) -> str:
        """What a cell is called while it is computed: its method, and its protocol."""
        labels = next(cell.labels for cell in self.cells if cell.key == key)
        return " by ".join(label for label in (labels["method"] or labels["model"], labels["protocol"]) if label)

    @cached_property
    def memory(self) -> Memory:
        """What this process has computed for the run."""
        return Memory()

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell lives."""
        return cell_folder(self.folder, cell.key)

    def rows(self, cell: Cell) -> list[Row]:
        """The rows of a cell's cases so far, in the order of the cases and of the protocol's metrics."""
        known = read_rows(self.cell_folder(cell), cell.key)
        order = [(case, metric) for case in cell.cases.keys for metric in cell.protocol.object.metrics]
        return [known[at] for at in order if at in known]

    def missing(self, cell: Cell) -> set[str]:
        """The keys of the cases that still lack a row; a case that failed earlier counts as missing."""
        known = read_rows(self.cell_folder(cell), cell.key)
        return {case for case in cell.cases.keys if _lacks(cell, case, known)}


def _lacks(cell: Cell, case: str, known: Rows) -> bool:
    rows = (known.get((case, metric)) for metric in cell.protocol.object.metrics)
    return any(row is None or row.status == "error" for row in rows)


def create(folder: Path, plan: Plan) -> Run:
    """Make a run directory, or take up an existing one with a new plan: cells already there are kept and reused."""
    with taken(folder, plan) as run:
        return run


@contextmanager
def taken(folder: Path, plan: Plan) -> Iterator[Run]:
    """A run directory made or taken up, and locked against other runs: a second one is refused and changes nothing."""
    run = Run(folder, plan)
    _ = run.expansion  # a mistake in the plan is found before anything is written
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_layout(folder)
            held.enter_context(locked(folder / "lock"))
            _lay_out(run)
        except OSError as error:
            why = error.strerror or error
            raise InputError(f"cannot write to {folder}: {why}; choose another place with -o") from error
        yield run
        remove_leftovers(folder)  # of workers that outlived a killed run, and wrote when this one had begun


def _lay_out(run: Run) -> None:
    """Write what a run directory holds before its first row, and mend what is damaged."""
    folder = run.folder
    remove_leftovers(folder)
    for name in ("run.json", "cells.json"):
        if (folder / name).exists() and (why := damage(folder / name)):
            tell(set_aside(folder / name, why))
    machine = {"python": platform.python_version(), "system": platform.platform(terse=True)}
    write_json(folder / "run.json", {"schema": SCHEMA, "diorama": diorama.__version__, **machine})
    for cell in run.cells:
        if run.cell_folder(cell).exists():
            _mend(run, cell)
    write_whole(folder / "plan.toml", run.plan.to_toml().encode())
    listed = [{"key": cell.key, "cases": cell.cases.keys} for cell in run.cells]
    # enough to read the results without any component: which cells and cases the plan comes to
    write_json(folder / "cells.json", {"cells": listed, "skipped": run.expansion.skipped})


def _mend(run: Run, cell: Cell) -> None:
    """Set damaged parts of a cell aside; write its manifest again if it is not what it should be."""
    folder = run.cell_folder(cell)
    heal(folder, cell.key, tell)
    path = folder / "manifest.json"
    if path.exists() and (why := manifest_damage(path)):
        tell(set_aside(path, why))
    data = json_bytes(cell.manifest())
    if not path.exists() or content(path) != data:
        write_whole(path, data)


def open_run(folder: Path) -> Run:
    """An existing run directory."""
    check_readable(folder)
    return Run(folder, Plan.read(folder / "plan.toml"))


@dataclass(frozen=True, slots=True)
class Unit:
    """What is computed together: a block of consecutive cases over all cells of one world and model."""

    cells: list[Cell]
    indices: range


def units(run: Run) -> list[Unit]:
    """The units of a run in their fixed order; shard i of n works on every n-th from the i-th."""
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in run.cells:
        groups.setdefault((cell.world.digest, cell.model.digest if cell.model else ""), []).append(cell)
    found = []
    for (_, model), cells in groups.items():
        last = max(cell.count for cell in cells)
        size = BLOCK if model else min(BLOCK, max(1, last // 64))
        together = _by_method(cells)
        found += [Unit(together, range(start, min(start + size, last))) for start in range(0, last, size)]
    return found


def _by_method(cells: list[Cell]) -> list[Cell]:
    """Those of a method after each other: what it has read for one protocol is still there for the next."""
    digests = [cell.method.digest if cell.method else "" for cell in cells]
    return [cells[i] for i in sorted(range(len(cells)), key=lambda i: digests.index(digests[i]))]


@dataclass(frozen=True, slots=True)
class Step:
    """A call into a component, which may end the process: `prepare`, `fit`, `case` or `picture` of a case of a cell."""

    what: str
    cell: str
    index: int


@dataclass(frozen=True, slots=True)
class Watch:
    """Functions that are called before every step, and after every finished case with the reason if it failed.

    `lost` are steps to be given up, and why.
    """

    begin: Callable[[Step], None] = lambda step: None
    finished: Callable[[str], None] = lambda failure: None
    lost: Mapping[Step, str] = field(default_factory=dict)


NOBODY = Watch()


#: Called with a run and the number of a unit whose rows are there.
Ended = Callable[[Run, int, Watch], None]


def silent(done: int, total: int, doing: str = "") -> None:
    """Progress that nobody looks at."""


def work(run: Run, shard: int, shards: int, progress: Progress = silent) -> None:
    """Compute the rows that are missing in shard `shard` of `shards`, in this process."""
    with locked(run.folder / "locks" / f"shard-{shard}-of-{shards}"), one_thread():
        mine = range(shard, len(run.units), shards)
        total, done = sum(len(missing_of(run, k)) for k in mine), 0

        def begin(step: Step) -> None:
            progress(done, total, run.title(step.cell))

        def finished(failure: str) -> None:
            nonlocal done
            done += 1

        for k in mine:
            work_unit(run, k, Watch(begin, finished))
        progress(done, total)


def missing_of(run: Run, k: int) -> list[tuple[Cell, int]]:
    """The cells and indices of the cases of unit `k` that lack a row or failed."""
    unit, found = run.units[k], []
    for cell in unit.cells:
        known = rows_between(run.cell_folder(cell), cell.key, unit.indices, tell)
        inside = range(unit.indices.start, min(unit.indices.stop, cell.count))
        found += [(cell, i) for i in inside if _lacks(cell, cell.cases.keys[i], known)]
    return found


def work_unit(run: Run, k: int, watch: Watch = NOBODY, ended: Ended | None = None) -> None:
    """Compute the rows of unit `k` that are missing and write them as parts.

    `ended` is called once they are written, while frames, logits and answers of the unit are remembered.
    """
    out, prepared, missing = Writer(run), dict[str, float](), missing_of(run, k)
    for cell, index in missing[:1] if run.units[k].cells[0].model else ():
        _ = cell.bench(cell.cases[index], run.memory).forward  # a network that an engine cannot compute ends the run
    try:
        for cell, index in missing:
            if cell.key not in prepared:
                prepared[cell.key] = _prepare(run, cell, run.units[k], watch)
            rows = score_case(run, cell, index, watch, prepared[cell.key])
            _keep_arrays(run, cell, index)  # before the rows, which say that all of the case is there
            if run.plan.keep:
                keep_maps(run, cell, index)
            run.memory.end("case")
            out.add(cell, index, rows)
            watch.finished(next((row.reason for row in rows if row.status == "error"), ""))
        out.flush()
        if missing and ended:
            ended(run, k, watch)
    finally:  # also when this process is told to stop
        run.memory.end("unit")
        out.flush()


class Writer:
    """Finished cases on their way to the disk: written when a unit ends, and in between when it takes long."""

    def __init__(self, run: Run) -> None:
        self.run, self.since = run, time.monotonic()
        self.cases: dict[str, tuple[Cell, dict[int, list[Row]]]] = {}

    def add(self, cell: Cell, index: int, rows: list[Row]) -> None:
        """Take the rows of a finished case."""
        self.cases.setdefault(cell.key, (cell, {}))[1][index] = rows
        if time.monotonic() - self.since > FLUSH:
            self.flush()

    def flush(self) -> None:
        """Write all that was taken, one part per cell."""
        for key, (cell, cases) in list(self.cases.items()):
            folder = self.run.cell_folder(cell)
            if not (folder / "manifest.json").exists():
                write_json(folder / "manifest.json", cell.manifest())
            write_part(folder, key, cases, tell)
            del self.cases[key]
        self.since = time.monotonic()


def give_up(run: Run, k: int, why: str) -> int:
    """Write the cases of unit `k` that are missing as error rows that say why; how many there are."""
    missing, out = missing_of(run, k), Writer(run)
    for cell, index in missing:
        out.add(cell, index, _failed(run, cell, cell.cases[index], "error", why, why, 0.0))
    out.flush()
    return len(missing)


def _prepare(run: Run, cell: Cell, unit: Unit, watch: Watch) -> float:
    """Let the protocol ask for what all cases of the unit need, so that it passes through the model together.

    All cases take part, also those that are known, so that a resumed run makes the same passes. What fails here is
    asked for again, and reported, case by case. Returns the seconds it took, for each case.
    """
    prepare, step = cell.protocol.object.prepare, Step("prepare", cell.key, unit.indices.start)
    if cell.fitted or step in watch.lost:
        return 0.0
    watch.begin(step)
    start, cases = time.perf_counter(), [cell.cases[i] for i in unit.indices if i < cell.count]
    attempt(lambda: prepare(cell.bench(cases[0], run.memory), cases))
    return (time.perf_counter() - start) / len(cases)


def _keep_arrays(run: Run, cell: Cell, index: int) -> None:
    """What a protocol wants kept of a case beside its rows, as `keep/<case>.npz`."""
    arrays, case = cell.protocol.object.arrays, cell.cases[index]
    found = attempt(
        lambda: arrays(cell.bench(case, run.memory), case)
    ).value  # what fails here has failed, and been reported, as a score
    if found:
        data = BytesIO()
        np.savez_compressed(data, **found)
        write_whole(arrays_path(run, cell, case), data.getvalue())


def arrays_path(run: Run, cell: Cell, case: Case) -> Path:
    """Where the arrays that a protocol keeps of a case are."""
    return case_path(run.cell_folder(cell) / "keep", case.key, ".npz")


def keep_maps(run: Run, cell: Cell, index: int) -> None:
    """Keep frame, truth and answer of a case; only of the first `kept.MOST` cases, and not twice."""
    path = kept.place(run.cell_folder(cell), cell.cases.keys[index])
    if index >= kept.MOST or cell.control == "dose" or path.exists():
        return
    found = attempt(lambda: kept.look(cell, index, asked_for(run, cell, index), run.memory))
    if found.error is None and found.value.answer:
        kept.write(path, found.value, cell.protocol.object.needs)


def score_case(run: Run, cell: Cell, index: int, watch: Watch = NOBODY, prepared: float = 0.0) -> list[Row]:
    """The rows of one case: its scores at every point of the method's grid, or why there are none.

    The seconds that preparing it took are counted in.
    """
    start, case = time.perf_counter(), cell.cases[index]
    lost = [why for what in ("fit", "case") if (why := watch.lost.get(Step(what, cell.key, index)))]
    if lost:
        return _failed(run, cell, case, "error", lost[0], lost[0], 0.0)
    outcome = attempt(lambda: _scored(cell, case, _asked(run, cell, index, watch), run.memory))
    seconds = round(time.perf_counter() - start + prepared, 4)
    if outcome.error is None:
        trace_path(run, cell, case).unlink(missing_ok=True)  # of an earlier attempt
        note = "; ".join([*_standing_notes(cell), *outcome.notes])
        rows: list[Row] = outcome.value
        return [replace(row, reason=row.reason or note, seconds=seconds) for row in rows]
    return _failed(run, cell, case, *_failure(outcome), seconds)


def _failed(run: Run, cell: Cell, case: Case, status: Status, reason: str, trace: str, seconds: float) -> list[Row]:
    if status == "error":
        write_whole(trace_path(run, cell, case), trace.encode(errors="backslashreplace"))
    return [Row(cell.key, case.key, m, None, status, reason, "", seconds) for m in cell.protocol.object.metrics]


def _failure(outcome: Outcome) -> tuple[Status, str, str]:
    if isinstance(outcome.error, Undefined):
        return "undefined", outcome.text, ""
    if isinstance(outcome.error, Excluded):
        return "excluded", outcome.text, ""
    return "error", outcome.reason, outcome.trace


def trace_path(run: Run, cell: Cell, case: Case) -> Path:
    """Where the traceback of a failed case is kept."""
    return case_path(run.cell_folder(cell) / "errors", case.key, ".txt")


def _asked(run: Run, cell: Cell, index: int, watch: Watch) -> Asked:
    """The method that answers for a case; fitting it counts as a step of its own."""
    if cell.fitted:
        watch.begin(Step("fit", cell.key, index))
    asked = asked_for(run, cell, index)
    watch.begin(Step("case", cell.key, index))
    return asked


def _standing_notes(cell: Cell) -> list[str]:
    """What components want said beside every value: the `note` of a world, model or method."""
    parts = (cell.world, cell.model, cell.method)
    told = ["the method was shown the truth"] if cell.asked.object and cell.asked.object.given_truth else []
    return told + [one_line(part.object.note) for part in parts if part and part.object.note]


def asked_for(run: Run, cell: Cell, index: int) -> Asked:
    """The method as it is asked about one case: fitted on its fold where it is fitted at all."""
    return fitted(cell, index, run.folder / "fits", run.memory) if cell.fitted else cell.asked


def _scored(cell: Cell, case: Case, asked: Asked, memory: Memory) -> list[Row]:
    """Every metric of a case; a list over the grid where the method has one."""
    if case.failure:
        raise AnswerError(f"the case could not be made: {case.failure}")
    protocol = cell.protocol.object
    found: dict[str, list[Score]] = {}
    with _watched(cell, case):
        for point in range(len(asked.points)):
            for score in protocol.score(cell.bench(case, memory, asked, point), case):
                found.setdefault(score.metric, []).append(score)
    merged = {m: _merge(m, found.get(m, []), len(asked.points), cell.at) for m in protocol.metrics}
    return [Row(cell.key, case.key, m, s.value, s.status, s.reason, s.at) for m, s in merged.items()]


def _watched(cell: Cell, case: Case) -> AbstractContextManager[None]:
    """Questions that a protocol itself puts to the model (TCAV reads layers, CG logits) are watched in the same way."""
    if cell.model is None:
        return nullcontext()
    return undisturbed(f"{cell.model.name}, asked by {cell.protocol.name},", cell.model.watch, case.key)


def _merge(metric: str, scores: list[Score], points: int, at: str) -> Score:
    """One score from those at every grid point; a metric scored at one point only does not depend on the grid.

    If the protocol has a grid too, its points come one after another within each point of the method's grid.
    """
    failed = next((s for s in scores if s.status != "ok"), None)
    if failed:
        return failed
    if len(scores) == 1:
        merged = scores[0]
    else:
        values = [v for s in scores for v in (s.value if isinstance(s.value, list) else [s.value])]
        if len(scores) != points:
            raise AnswerError(f"{metric}: the protocol gave {len(scores)} scores for {points} points of the grid")
        merged = Score(metric, values, ",".join(filter(None, (at, scores[0].at))))  # type: ignore[arg-type]
    if not np.isfinite(merged.value).all():  # type: ignore[arg-type]
        raise AnswerError(f"{metric} is not finite: {merged.value}")
    return merged
