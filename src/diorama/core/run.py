"""A run: a directory of cells. `work` fills in the rows that are missing, and is all that a launcher ever starts."""

import json
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import diorama
from diorama.core.bench import Asked, Bench, Memo, given_truth
from diorama.core.contracts import Case, Score
from diorama.core.device import one_thread
from diorama.core.errors import AnswerError, Excluded, InputError, Undefined
from diorama.core.fits import fitted
from diorama.core.guard import Outcome, attempt, one_line
from diorama.core.locks import locked
from diorama.core.names import case_path
from diorama.core.plan import Cell, Expansion, Plan, expand
from diorama.core.rows import Row, append_rows, read_rows, write_json

#: The layout of a run directory. A directory of another layout is refused, never guessed at.
SCHEMA = 1
#: Consecutive cases that share passes through a model; without a model every case stands alone.
BLOCK = 8


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

    def cell_folder(self, cell: Cell) -> Path:
        """Where a cell lives."""
        return self.folder / "cells" / cell.key[:2] / cell.key

    def rows(self, cell: Cell) -> list[Row]:
        """The rows of a cell's cases so far, in the order of the cases and of the protocol's metrics."""
        known = read_rows(self.cell_folder(cell), cell.key)
        order = [(case.key, metric) for case in cell.cases for metric in cell.protocol.object.metrics]
        return [known[at] for at in order if at in known]

    def missing(self, cell: Cell) -> set[str]:
        """The keys of the cases that still lack a row; a case that failed earlier counts as missing."""
        known = read_rows(self.cell_folder(cell), cell.key)
        metrics = cell.protocol.object.metrics
        return {
            case.key
            for case in cell.cases
            if any((case.key, m) not in known or known[case.key, m].status == "error" for m in metrics)
        }


def create(folder: Path, plan: Plan) -> Run:
    """Make a run directory, or take up an existing one with a new plan: cells already there are kept and reused."""
    run = Run(folder, plan)
    _ = run.expansion  # a mistake in the plan is found before anything is written
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _check_schema(folder)
        write_json(folder / "run.json", {"schema": SCHEMA, "diorama": diorama.__version__, **_machine()})
        (folder / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
        write_json(folder / "cells.json", _contents(run))
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror}; choose another place with -o") from error
    return run


def _contents(run: Run) -> dict[str, Any]:
    """Which cells and cases the plan comes to: enough to read the results without any component."""
    listed = [{"key": cell.key, "cases": [case.key for case in cell.cases]} for cell in run.cells]
    return {"cells": listed, "skipped": run.expansion.skipped}


def open_run(folder: Path) -> Run:
    """An existing run directory."""
    if not (folder / "plan.toml").is_file():
        raise InputError(f"{folder} is not a run directory: it has no plan.toml (diorama run -o {folder} makes one)")
    _check_schema(folder)
    return Run(folder, Plan.read(folder / "plan.toml"))


def _check_schema(folder: Path) -> None:
    path = folder / "run.json"
    if not path.exists():
        if any(folder.iterdir()) and not (folder / "cells").exists() and not (folder / "plan.toml").exists():
            raise InputError(f"{folder} holds other files: choose a new or empty directory with -o")
        return
    try:
        schema = json.loads(path.read_text(encoding="utf-8")).get("schema")
    except (json.JSONDecodeError, AttributeError):
        schema = None
    if schema != SCHEMA:
        raise InputError(
            f"{folder} was written by another version of diorama (layout {schema}, this one is {SCHEMA}):"
            " choose another directory with -o, or delete it"
        )


def _machine() -> dict[str, str]:
    return {"python": platform.python_version(), "system": platform.platform(terse=True)}


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
        size = BLOCK if model else 1
        last = max(cell.count for cell in cells)
        found += [Unit(cells, range(start, min(start + size, last))) for start in range(0, last, size)]
    return found


Progress = Callable[[int, int], None]


def work(run: Run, shard: int, shards: int, progress: Progress = lambda done, total: None) -> None:
    """Compute the rows that are missing in shard `shard` of `shards`, and append them case by case."""
    with locked(run.folder / "locks" / f"shard-{shard}-of-{shards}"):
        todo = {cell.key: run.missing(cell) for cell in run.cells}
        if any(cell.model for cell in run.cells):
            one_thread()
        mine = units(run)[shard::shards]
        total = sum(len(list(_missing(unit, todo))) for unit in mine)
        done = 0
        for unit in mine:
            memo = Memo()
            for cell, index in _missing(unit, todo):
                _prepare(run, cell, unit, memo)
                rows = score_case(run, cell, index, memo)
                _keep(run, cell, f"{shard}-of-{shards}", rows)
                _keep_arrays(run, cell, index, memo)
                done += 1
                progress(done, total)


def _prepare(run: Run, cell: Cell, unit: Unit, memo: Memo) -> None:
    """Let the protocol ask for what all cases of the unit need, so that it passes through the model together.

    All cases take part, also those that are known, so that a resumed run makes the same passes. What fails here is
    asked for again, and reported, case by case.
    """
    prepare = getattr(cell.protocol.object, "prepare", None)
    if prepare is None or cell.key in memo.prepared or cell.fitted:
        return
    start, cases = time.perf_counter(), [cell.cases[i] for i in unit.indices if i < cell.count]
    attempt(lambda: prepare(Bench(cell.world, cell.model, cell.asked, cell.protocol.object, cases[0], memo), cases))
    memo.prepared[cell.key] = (time.perf_counter() - start) / len(cases)


def _missing(unit: Unit, todo: dict[str, set[str]]) -> Iterator[tuple[Cell, int]]:
    for cell in unit.cells:
        for index in unit.indices:
            if index < cell.count and cell.cases[index].key in todo[cell.key]:
                yield cell, index


def _keep(run: Run, cell: Cell, worker: str, rows: list[Row]) -> None:
    folder = run.cell_folder(cell)
    if not (folder / "manifest.json").exists():
        write_json(folder / "manifest.json", cell.manifest())
    append_rows(folder / "rows" / f"{worker}.jsonl", rows)


def _keep_arrays(run: Run, cell: Cell, index: int, memo: Memo) -> None:
    """What a protocol wants kept of a case beside its rows, as `keep/<case>.npz`."""
    arrays, case = getattr(cell.protocol.object, "arrays", None), cell.cases[index]
    if arrays is None:
        return
    bench = Bench(cell.world, cell.model, cell.asked, cell.protocol.object, case, memo)
    found = attempt(lambda: arrays(bench, case)).value  # what fails here has failed, and been reported, as a score
    if found:
        path = case_path(run.cell_folder(cell) / "keep", case.key, ".npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **found)


def score_case(run: Run, cell: Cell, index: int, memo: Memo) -> list[Row]:
    """The rows of one case: its scores at every point of the method's grid, or why there are none."""
    start, case = time.perf_counter(), cell.cases[index]
    outcome = attempt(lambda: _scores(cell, case, asked_for(run, cell, index), memo))
    seconds = round(time.perf_counter() - start + memo.prepared.get(cell.key, 0.0), 4)
    if outcome.error is None:
        scores: dict[str, Score] = outcome.value
        note = "; ".join([*_standing_notes(cell), *outcome.notes])
        return [
            Row(cell.key, case.key, m, s.value, s.status, s.reason or note, s.at, seconds) for m, s in scores.items()
        ]
    status, reason = _failure(run, cell, case, outcome)
    metrics = cell.protocol.object.metrics
    return [Row(cell.key, case.key, m, None, status, reason, "", seconds) for m in metrics]


def _standing_notes(cell: Cell) -> list[str]:
    """What components want said beside every value: the `note` of a world, model or method."""
    parts = (cell.world, cell.model, cell.method)
    told = ["the method was shown the truth"] if given_truth(cell.asked.object) else []
    return told + [one_line(note) for part in parts if part and (note := getattr(part.object, "note", ""))]


def asked_for(run: Run, cell: Cell, index: int) -> Asked:
    """The method as it is asked about one case: fitted on its fold where it is fitted at all."""
    return fitted(cell, index, run.folder / "fits") if cell.fitted else cell.asked


def _scores(cell: Cell, case: Case, asked: Asked, memo: Memo) -> dict[str, Score]:
    """Every metric of a case; a list over the grid where the method has one."""
    if case.failure:
        raise AnswerError(f"the case could not be made: {case.failure}")
    protocol = cell.protocol.object
    found: dict[str, list[Score]] = {}
    for point in range(len(asked.points)):
        for score in protocol.score(Bench(cell.world, cell.model, asked, protocol, case, memo, point), case):
            found.setdefault(score.metric, []).append(score)
    return {m: _merge(m, found.get(m, []), len(asked.points), cell.at) for m in protocol.metrics}


def _merge(metric: str, scores: list[Score], points: int, at: str) -> Score:
    """One score from those at every grid point; a metric scored at one point only does not depend on the grid.

    Where the protocol has a grid of its own, its lists follow each other, one per point of the method's grid.
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


def _failure(run: Run, cell: Cell, case: Case, outcome: Outcome) -> tuple[Any, str]:
    if isinstance(outcome.error, Undefined):
        return "undefined", outcome.text
    if isinstance(outcome.error, Excluded):
        return "excluded", outcome.text
    trace = case_path(run.cell_folder(cell) / "errors", case.key, ".txt")
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.write_text(outcome.trace, encoding="utf-8")
    return "error", outcome.reason
