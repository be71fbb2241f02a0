"""The results of a run as one document: every cell with its means, intervals, counts, ranks and curves."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diorama.core.errors import InputError
from diorama.core.record import Record, read
from diorama.core.rows import Row
from diorama.core.summary import Settled, mean_ranks
from diorama.io.row_files import read_rows
from diorama.io.run_folder import check_readable, read_manifest
from diorama.io.store import content

if TYPE_CHECKING:
    from diorama.report.sections import Section

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell's manifest, its rows in the order of the cases, and its record (`core.record`)."""

    folder: Path
    manifest: dict[str, Any]
    rows: list[Row]
    record: Record
    cases: int

    @property
    def settled(self) -> Settled:
        """The rows with one value per case and metric, and the grid points chosen."""
        return self.record.settled

    @property
    def derived(self) -> list[str]:
        """The metrics of the whole cell, if they are known."""
        return self.manifest.get("derived", []) if self.record.whole else []

    @property
    def case_metric(self) -> str:
        """The leading metric of single cases: that of the whole cell if cases have it too, otherwise the first."""
        first, metrics = self.manifest.get("derived", [])[:1], self.manifest["metrics"]
        return first[0] if first and first[0] in metrics else metrics[0]

    @property
    def metric(self) -> str:
        """The leading metric: the first of the whole cell if there is one, otherwise that of cases."""
        return self.derived[0] if self.derived else self.case_metric

    @property
    def missing(self) -> int:
        """How many cases have not been computed yet."""
        return self.cases - len({row.case for row in self.rows})

    def of(self, metric: str) -> list[Row]:
        """The settled rows of one metric."""
        return [row for row in self.settled.rows if row.metric == metric]

    def values(self, metric: str) -> dict[str, float]:
        """The value of each case that has one; a metric of the whole cell has none."""
        return {row.case: row.value for row in self.of(metric) if isinstance(row.value, float | int)}


@dataclass(frozen=True)
class Results:
    """Everything a report shows, read once. `planned` counts the cases of all cells of the plan, `missing` those without
    rows; `name` identifies the run in a report of several.
    """

    folder: Path
    run: dict[str, Any]
    plan: str
    cells: list[CellResult]
    skipped: list[dict[str, Any]]
    planned: int = 0
    missing: int = 0
    name: str = ""

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """The cells as the JSON document has them."""
        ranks = _ranks(self.cells)
        cells = [_cell(cell, ranks.get(cell.manifest["key"])) for cell in self.cells]
        _adjust([cell["summary"] for cell in cells if not cell["control"]])
        return cells

    @cached_property
    def sections(self) -> "list[Section]":
        """The sections of the run, computed once for all output formats."""
        from diorama.report.sections import grouped

        return grouped(self)


def read_results(folder: Path) -> Results:
    """The results of a run directory, as far as they have been computed."""
    check_readable(folder)
    try:
        contents = json.loads(content(folder / "cells.json"))
        run = json.loads(content(folder / "run.json"))
        plan = content(folder / "plan.toml").decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{folder} is not a run directory: {Path(error.filename).name} is missing") from error
    except ValueError as error:  # no JSON, no UTF-8, or no regular file
        why = " ".join(str(error).split())[:200]
        raise InputError(f"{folder}: cells.json, run.json or plan.toml is damaged ({why}); run it again") from error
    cells = [cell for listed in contents["cells"] if (cell := _read_cell(folder, listed))]
    planned = sum(len(listed["cases"]) for listed in contents["cells"])
    done = sum(cell.cases - cell.missing for cell in cells)
    return Results(folder, run, plan, cells, contents["skipped"], planned, planned - done)


def lacking(folder: Path) -> list[str]:
    """Lines about the missing cases of a run, cell by cell; none if it is finished."""
    found = read_results(folder)
    if not found.missing:
        return []
    known = {cell.manifest["key"]: cell for cell in found.cells}
    contents = json.loads(content(folder / "cells.json"))
    lines = [f"{folder} is unfinished: {found.missing:,} of {found.planned:,} cases have no row"]
    bare = [listed for listed in contents["cells"] if listed["key"] not in known]
    for cell in (cell for cell in known.values() if cell.missing):
        shown = " × ".join(cell.manifest[k] for k in ("world", "model", "method", "protocol") if cell.manifest[k])
        lines.append(f"  {cell.missing:5d} × {shown}")
    if bare:
        lines.append(f"  {sum(len(listed['cases']) for listed in bare):5d} in {len(bare)} cells that have no row yet")
    return [*lines, f"`diorama run {folder}/plan.toml -o {folder}` computes them"]


def _read_cell(run: Path, listed: dict[str, Any]) -> CellResult | None:
    folder = run / "cells" / listed["key"][:2] / listed["key"]
    if (manifest := read_manifest(folder)) is None:
        return None
    known = read_rows(folder, listed["key"])
    rows = [known[at] for case in listed["cases"] for m in manifest["metrics"] if (at := (case, m)) in known]
    return CellResult(folder, manifest, rows, read(folder, manifest, rows), len(listed["cases"]))


def document(results: Results) -> dict[str, Any]:
    """The results as the JSON document that `diorama run --json` prints."""
    found = [verdict for section in results.sections for verdict in _verdicts(section)]
    return {"schema": SCHEMA, "cells": results.entries, "skipped": results.skipped, "verdicts": found}


def _verdicts(section: "Section") -> list[dict[str, Any]]:
    """The verdicts of a section as JSON values."""
    about = {name: section.some.manifest[name] for name in ("world", "model", "protocol")}
    return [{**about, "control": v.control, "holds": v.holds, "text": v.text} for v in section.verdicts]


def _adjust(summaries: list[dict[str, Any]]) -> None:
    """Fill in every `X_q`: the p of `X_p`, adjusted (Benjamini and Hochberg 1995) for all cells that have one."""
    for q in sorted({metric for summary in summaries for metric in summary if metric.endswith("_q")}):
        p = f"{q[:-2]}_p"
        tested = [s for s in summaries if q in s and s[p]["mean"] is not None]
        if not tested:
            continue
        from scipy.stats import false_discovery_control

        for summary, value in zip(tested, false_discovery_control([s[p]["mean"] for s in tested]), strict=True):
            summary[q] = {**summary[p], "mean": float(value)}


def _cell(cell: CellResult, rank: float | None) -> dict[str, Any]:
    manifest = cell.manifest
    shown = {k: manifest[k] for k in ("world", "model", "method", "protocol", "variant", "key", "control", "direction")}
    shown["cases"] = cell.cases
    shown["missing"] = cell.missing
    shown["mean_rank"] = rank
    shown["published"] = (manifest.get("paper") or {}).get(cell.metric, manifest["published"])
    shown["paper"] = manifest.get("paper")
    shown["seconds"] = round(sum(row.seconds for row in cell.rows if row.metric == cell.case_metric), 3)
    shown["summary"] = {m: summary.to_json() for m, summary in cell.record.summary.items()}
    if manifest["control"] == "dose":
        shown["doses"] = [point["dose"] for point in manifest["points"]]
        shown["curve"] = {m: [s.to_json() for s in several] for m, several in cell.record.curve.items()}
        return shown
    shown["chosen"] = _chosen(cell)
    if cell.record.grid:
        shown["grid"] = cell.record.grid
    return shown


def _chosen(cell: CellResult) -> list[dict[str, Any]]:
    """How often each grid point was chosen, most often first; of the protocol's own grid if it has one."""
    if cell.record.places:
        often = Counter(tuple(place.items()) for place in cell.record.places.values())
        return [{"point": dict(place), "cases": n} for place, n in often.most_common()]
    ordered = sorted(Counter(cell.settled.chosen.values()).items(), key=lambda item: (-item[1], item[0]))
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
