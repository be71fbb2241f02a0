"""The results of a run as one document: every cell with its means, intervals, counts, ranks and curves."""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.core.rows import Row, read_rows
from diorama.core.summary import Settled, curve, mean_ranks, settle, summarise

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell's manifest, its rows in the order of the cases, and the same with one value per case."""

    folder: Path
    manifest: dict[str, Any]
    rows: list[Row]
    settled: Settled
    cases: int

    @property
    def metric(self) -> str:
        """The protocol's first metric."""
        return self.manifest["metrics"][0]

    def of(self, metric: str) -> list[Row]:
        """The settled rows of one metric."""
        return [row for row in self.settled.rows if row.metric == metric]


@dataclass(frozen=True, slots=True)
class Results:
    """Everything a report shows."""

    folder: Path
    run: dict[str, Any]
    plan: str
    cells: list[CellResult]
    skipped: list[dict[str, Any]]


def read_results(folder: Path) -> Results:
    """The results of a run directory, as far as they have been computed."""
    try:
        contents = json.loads((folder / "cells.json").read_text(encoding="utf-8"))
        run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        plan = (folder / "plan.toml").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{folder} is not a run directory: {Path(error.filename).name} is missing") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{folder}: cells.json or run.json is damaged ({error}); run the same command again"
        ) from error
    cells = [cell for listed in contents["cells"] if (cell := _read_cell(folder, listed))]
    return Results(folder, run, plan, cells, contents["skipped"])


def _read_cell(run: Path, listed: dict[str, Any]) -> CellResult | None:
    folder = run / "cells" / listed["key"][:2] / listed["key"]
    if not (folder / "manifest.json").exists():
        return None
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    known = read_rows(folder, listed["key"])
    rows = [known[at] for case in listed["cases"] for m in manifest["metrics"] if (at := (case, m)) in known]
    if manifest["control"] == "dose":  # the grid is the result, nothing is chosen
        return CellResult(folder, manifest, rows, Settled(rows, {}), len(listed["cases"]))
    settled = settle(rows, manifest["metrics"][0], manifest["direction"])
    return CellResult(folder, manifest, rows, settled, len(listed["cases"]))


def document(results: Results) -> dict[str, Any]:
    """The results as the JSON document that `diorama run --json` prints."""
    ranks = _ranks(results.cells)
    cells = [_cell(cell, ranks.get(cell.manifest["key"])) for cell in results.cells]
    return {"schema": SCHEMA, "cells": cells, "skipped": results.skipped}


def _cell(cell: CellResult, rank: float | None) -> dict[str, Any]:
    manifest = cell.manifest
    shown = {k: manifest[k] for k in ("world", "model", "method", "protocol", "variant", "key", "control", "direction")}
    shown["cases"] = cell.cases
    shown["mean_rank"] = rank
    shown["published"] = manifest["published"]
    shown["seconds"] = round(sum(row.seconds for row in cell.rows if row.metric == cell.metric), 3)
    if manifest["control"] == "dose":
        shown["doses"] = [point["dose"] for point in manifest["points"]]
        shown["curve"] = {m: _curve(cell, m) for m in manifest["metrics"] if _listed(cell, m)}
        shown["summary"] = {}
        return shown
    shown["chosen"] = _chosen(cell)
    shown["summary"] = {m: summarise(cell.of(m)).to_json() for m in manifest["metrics"]}
    return shown


def _listed(cell: CellResult, metric: str) -> bool:
    return any(isinstance(row.value, list) for row in cell.of(metric))


def _curve(cell: CellResult, metric: str) -> list[dict[str, Any]]:
    return [s.to_json() for s in curve(cell.of(metric), len(cell.manifest["points"]))]


def _chosen(cell: CellResult) -> list[dict[str, Any]]:
    """How often each grid point was chosen, most often first."""
    counts: dict[int, int] = defaultdict(int)
    for point in cell.settled.chosen.values():
        counts[point] += 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"point": cell.manifest["points"][point], "cases": n} for point, n in ordered]


def _ranks(cells: list[CellResult]) -> dict[str, float]:
    """Mean ranks by cell key, among the methods of the same world, model and protocol."""
    groups: dict[tuple[Any, ...], list[CellResult]] = defaultdict(list)
    for cell in cells:
        if not cell.manifest["control"]:
            groups[tuple(cell.manifest[k] for k in ("world", "model", "protocol"))].append(cell)
    ranks: dict[str, float] = {}
    for group in groups.values():
        table = {c.manifest["key"]: {r.case: r.value for r in c.of(c.metric) if r.status == "ok"} for c in group}
        ranks |= mean_ranks(table, group[0].manifest["direction"])  # type: ignore[arg-type]
    return ranks
