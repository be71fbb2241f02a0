"""A run: a directory of cells. `work_unit` computes the missing rows of one unit; launchers call nothing else."""

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
from diorama.io.row_files import Rows, read_rows, rows_between, set_damaged_aside, write_part
from diorama.io.run_folder import SCHEMA, cell_folder, check_layout, check_readable, damage, manifest_damage
from diorama.io.store import content, json_bytes, remove_leftovers, set_aside, write_json, write_whole

#: Consecutive cases that share passes through a model. Without a model units may be smaller, so that shards are even.
BLOCK = 8
#: Finished cases are written after so many seconds, even in the middle of a unit: the most work lost to a kill.
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
        """The units of work, in a fixed order."""
        return units(self)

    def title(self, key: str) -> str:
        """The name of a cell in progress messages: its method and its protocol."""
        labels = next(cell.labels for cell in self.cells if cell.key == key)
        return " by ".join(label for label in (labels["method"] or labels["model"], labels["protocol"]) if label)

    @cached_property
    def memory(self) -> Memory:
        """The cache of this process for the run."""
        return Memory()

    def cell_folder(self, cell: Cell) -> Path:
        """The folder of a cell."""
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
    """Make a run directory, or continue an existing one with a new plan: cells already there are reused."""
    with locked_run(folder, plan) as run:
        return run


@contextmanager
def locked_run(folder: Path, plan: Plan) -> Iterator[Run]:
    """`create`, with the directory locked: a second run on it is refused and changes nothing."""
    run = Run(folder, plan)
    _ = run.expansion  # so that a mistake in the plan is found before anything is written
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_layout(folder)
            held.enter_context(locked(folder / "lock"))
            _write_layout(run)
        except OSError as error:
            why = error.strerror or error
            raise InputError(f"cannot write to {folder}: {why}; choose another place with -o") from error
        yield run
        remove_leftovers(folder)  # of workers that outlived a killed run and wrote after this one began


def _write_layout(run: Run) -> None:
    """Write the files of a run directory other than rows, and repair damaged ones."""
    folder = run.folder
    remove_leftovers(folder)
    for name in ("run.json", "cells.json"):
        if (folder / name).exists() and (why := damage(folder / name)):
            tell(set_aside(folder / name, why))
    machine = {"python": platform.python_version(), "system": platform.platform(terse=True)}
    write_json(folder / "run.json", {"schema": SCHEMA, "diorama": diorama.__version__, **machine})
    for cell in run.cells:
        if run.cell_folder(cell).exists():
            _repair(run, cell)
    write_whole(folder / "plan.toml", run.plan.to_toml().encode())
    listed = [{"key": cell.key, "cases": cell.cases.keys} for cell in run.cells]
    # the cells and cases of the plan, so that results can be read without building any component
    write_json(folder / "cells.json", {"cells": listed, "skipped": run.expansion.skipped})


def _repair(run: Run, cell: Cell) -> None:
    """Set damaged parts of a cell aside; write its manifest again if it is damaged or outdated."""
    folder = run.cell_folder(cell)
    set_damaged_aside(folder, cell.key, tell)
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
    """A unit of work: a block of consecutive cases over all cells of one world and model."""

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
    """Cells of one method next to each other, so that the next protocol finds its answers in the cache."""
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

    `lost` are steps to skip, and why.
    """

    begin: Callable[[Step], None] = lambda step: None
    finished: Callable[[str], None] = lambda failure: None
    lost: Mapping[Step, str] = field(default_factory=dict)

    def enters(self, step: Step) -> bool:
        """Call `begin`, unless the step is to be skipped; returns whether it is to be done."""
        if wanted := step not in self.lost:
            self.begin(step)
        return wanted


NO_WATCH = Watch()


#: Called with a run and the number of a unit whose rows are written.
Ended = Callable[[Run, int, Watch], None]


def silent(done: int, total: int, doing: str = "") -> None:
    """Show no progress."""


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


def work_unit(run: Run, k: int, watch: Watch = NO_WATCH, ended: Ended | None = None) -> None:
    """Compute the rows of unit `k` that are missing and write them as parts.

    `ended` is called once they are written, while frames, logits and answers of the unit are still cached.
    """
    out, prepared, missing = Writer(run), dict[str, float](), missing_of(run, k)
    for cell, index in missing[:1] if run.units[k].cells[0].model else ():
        _ = cell.bench(cell.cases[index], run.memory).forward  # ends the run if the engine cannot convert the network
    try:
        for cell, index in missing:
            if cell.key not in prepared:
                prepared[cell.key] = _prepare(run, cell, run.units[k], watch)
            rows = score_case(run, cell, index, watch, prepared[cell.key])
            _store_arrays(run, cell, index)  # before the rows: a case with rows counts as complete
            if run.plan.keep:
                keep_maps(run, cell, index)
            run.memory.end("case")
            out.add(cell, index, rows)
            watch.finished(next((row.reason for row in rows if row.status == "error"), ""))
        out.flush()
        if missing and ended:
            ended(run, k, watch)
    finally:  # also when this process is stopped
        run.memory.end("unit")
        out.flush()


class Writer:
    """Buffers finished cases: they are written when a unit ends, and in between when it takes long."""

    def __init__(self, run: Run) -> None:
        self.run, self.since = run, time.monotonic()
        self.cases: dict[str, tuple[Cell, dict[int, list[Row]]]] = {}

    def add(self, cell: Cell, index: int, rows: list[Row]) -> None:
        """Add the rows of a finished case."""
        self.cases.setdefault(cell.key, (cell, {}))[1][index] = rows
        if time.monotonic() - self.since > FLUSH:
            self.flush()

    def flush(self) -> None:
        """Write the buffered cases, one part per cell."""
        for key, (cell, cases) in list(self.cases.items()):
            folder = self.run.cell_folder(cell)
            if not (folder / "manifest.json").exists():
                write_json(folder / "manifest.json", cell.manifest())
            write_part(folder, key, cases, tell)
            del self.cases[key]
        self.since = time.monotonic()


def give_up(run: Run, k: int, why: str) -> int:
    """Write error rows with a reason for the missing cases of unit `k`; returns their number."""
    missing, out = missing_of(run, k), Writer(run)
    for cell, index in missing:
        out.add(cell, index, _no_value(run, cell, cell.cases[index], "error", why, why, 0.0))
    out.flush()
    return len(missing)


def _prepare(run: Run, cell: Cell, unit: Unit, watch: Watch) -> float:
    """Call the protocol's `prepare` for all cases of the unit; returns the seconds it took per case.

    Cases that have their rows take part too, so that a resumed run makes the same passes. A failure here is ignored: it
    happens again, and is reported, when the case is scored.
    """
    prepare, step = cell.protocol.object.prepare, Step("prepare", cell.key, unit.indices.start)
    if cell.fitted or not watch.enters(step):
        return 0.0
    start, cases = time.perf_counter(), [cell.cases[i] for i in unit.indices if i < cell.count]
    attempt(lambda: prepare(cell.bench(cases[0], run.memory), cases))
    return (time.perf_counter() - start) / len(cases)


def _store_arrays(run: Run, cell: Cell, index: int) -> None:
    """Write the arrays that a protocol stores of a case beside its rows, as `keep/<case>.npz`."""
    arrays, case = cell.protocol.object.arrays, cell.cases[index]
    # a failure here is ignored: scoring the case has reported it
    if found := attempt(lambda: arrays(cell.bench(case, run.memory), case)).value:
        data = BytesIO()
        np.savez_compressed(data, **found)
        write_whole(arrays_path(run, cell, case), data.getvalue())


def arrays_path(run: Run, cell: Cell, case: Case) -> Path:
    """The file of the arrays that a protocol stores of a case."""
    return case_path(run.cell_folder(cell) / "keep", case.key, ".npz")


def keep_maps(run: Run, cell: Cell, index: int) -> None:
    """Store frame, truth and answer of a case; only of the first `kept.MOST` cases, and not twice."""
    path = kept.place(run.cell_folder(cell), cell.cases.keys[index])
    if index >= kept.MOST or cell.control == "dose" or path.exists():
        return
    found = attempt(lambda: kept.look(cell, index, asked_for(run, cell, index), run.memory))
    if found.error is None and found.value.answer:
        kept.write(path, found.value, cell.protocol.object.needs)


def score_case(run: Run, cell: Cell, index: int, watch: Watch = NO_WATCH, prepared: float = 0.0) -> list[Row]:
    """The rows of one case: its scores at every point of the method's grid, or why there are none.

    `prepared` are the seconds that preparing it took; they are added to those of the rows.
    """
    start, case = time.perf_counter(), cell.cases[index]
    lost = [why for what in ("fit", "case") if (why := watch.lost.get(Step(what, cell.key, index)))]
    if lost:
        return _no_value(run, cell, case, "error", lost[0], lost[0], 0.0)
    outcome = attempt(lambda: _score_rows(cell, case, _method_for_case(run, cell, index, watch), run.memory))
    seconds = round(time.perf_counter() - start + prepared, 4)
    if outcome.error is None:
        trace_path(run, cell, case).unlink(missing_ok=True)  # of an earlier attempt
        note = "; ".join([*_standing_notes(cell), *outcome.notes])
        rows: list[Row] = outcome.value
        return [replace(row, reason=row.reason or note, seconds=seconds) for row in rows]
    return _no_value(run, cell, case, *_failure(outcome), seconds)


def _no_value(run: Run, cell: Cell, case: Case, status: Status, reason: str, trace: str, seconds: float) -> list[Row]:
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
    """The file with the traceback of a failed case."""
    return case_path(run.cell_folder(cell) / "errors", case.key, ".txt")


def _method_for_case(run: Run, cell: Cell, index: int, watch: Watch) -> Asked:
    """The method that answers for a case; fitting it counts as a step of its own."""
    if cell.fitted:
        watch.begin(Step("fit", cell.key, index))
    asked = asked_for(run, cell, index)
    watch.begin(Step("case", cell.key, index))
    return asked


def _standing_notes(cell: Cell) -> list[str]:
    """The notes for every value of a cell: `note` of the world, model and method, and whether the truth was shown."""
    parts = (cell.world, cell.model, cell.method)
    notes = ["the method was shown the truth"] if cell.asked.object and cell.asked.object.given_truth else []
    return notes + [one_line(part.object.note) for part in parts if part and part.object.note]


def asked_for(run: Run, cell: Cell, index: int) -> Asked:
    """The method for one case: fitted on the fold of the case, if it is a method that is fitted."""
    return fitted(cell, index, run.folder / "fits", run.memory) if cell.fitted else cell.asked


def _score_rows(cell: Cell, case: Case, asked: Asked, memory: Memory) -> list[Row]:
    """Every metric of a case; a list over the grid where the method has one."""
    if case.failure:
        raise AnswerError(f"the case could not be made: {case.failure}")
    protocol = cell.protocol.object
    found: dict[str, list[Score]] = {}
    with _model_guarded(cell, case):
        for point in range(len(asked.points)):
            for score in protocol.score(cell.bench(case, memory, asked, point), case):
                found.setdefault(score.metric, []).append(score)
    merged = {m: _merge(m, found.get(m, []), len(asked.points), cell.at) for m in protocol.metrics}
    return [Row(cell.key, case.key, m, s.value, s.status, s.reason, s.at) for m, s in merged.items()]


def _model_guarded(cell: Cell, case: Case) -> AbstractContextManager[None]:
    """Guard shared state while the protocol itself uses the model (TCAV reads layers, CG logits)."""
    if cell.model is None:
        return nullcontext()
    return undisturbed(f"{cell.model.name}, asked by {cell.protocol.name},", cell.model.watch, case.key)


def _merge(metric: str, scores: list[Score], points: int, at: str) -> Score:
    """One score with the values at all grid points; a metric scored at one point only does not depend on the grid.

    If the protocol has a grid too, its points are listed within each point of the method's grid.
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
