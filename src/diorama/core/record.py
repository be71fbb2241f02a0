"""The record of a cell: means, intervals and notes of its rows, written beside them by the process that finished the cell.

Only the protocol can compute the metrics of a whole cell (FunnyBirds' mX, CSM's ratios). A run writes them into
`summary.json` of each cell when it ends; reports, comparisons and gates read that file, so that they need not import or
build components. A record holds the digest of the rows it was made from. If the rows have changed since, readers use plain
means of the rows, and say that running again completes the rest.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diorama.core.contracts import Bounds
from diorama.core.guard import attempt
from diorama.core.rows import Row
from diorama.core.summary import Condensed, Settled, Summary, curve, pick, settle, summarise
from diorama.io.run_folder import read_manifest
from diorama.io.store import content, write_json

if TYPE_CHECKING:
    from diorama.core.run import Run

#: Raised when records are computed differently: older ones become invalid.
VERSION = 1
NAME = "summary.json"
UNREAD = "its protocol has not summarised these rows yet: run the same command again"
Whole = Callable[[Sequence[Row]], Condensed]


@dataclass(frozen=True, slots=True)
class Record:
    """One value per case and metric, the grid points chosen, and the summaries of all metrics.

    `places` has the point of the protocol's own grid at which each case was read, `grid` the data for a figure of that
    grid, `curve` the summaries at each dose of a dose cell. `whole` is False if the metrics of the whole cell are unknown.
    """

    settled: Settled
    whole: bool = True
    summary: dict[str, Summary] = field(default_factory=dict)
    curve: dict[str, list[Summary]] = field(default_factory=dict)
    places: dict[str, dict[str, float]] = field(default_factory=dict)
    grid: dict[str, Any] = field(default_factory=dict)


def record(run: "Run") -> None:
    """Write the record of every cell of a run whose rows have none, or an outdated one."""
    for cell in run.cells:
        rows, folder = run.rows(cell), run.cell_folder(cell)
        manifest = read_manifest(folder)
        if rows and manifest is not None and _read_valid(folder, rows) is None:
            whole = cell.protocol.object.summarise if manifest.get("derived") else None
            made = attempt(lambda m=manifest, r=rows, w=whole: make(m, r, w))  # type: ignore[misc]
            if made.error is None:
                write_json(folder / NAME, {"rows": digest(rows), **_to_json(made.value, rows)})


def read(folder: Path, manifest: dict[str, Any], rows: list[Row]) -> Record:
    """The record of a cell's rows: the one beside them if it is valid, otherwise one made from the rows alone."""
    return _read_valid(folder, rows) or make(manifest, rows)


def digest(rows: Sequence[Row]) -> str:
    """A digest of rows in their order."""
    text = "".join(row.line() for row in rows)
    return blake2b(f"{VERSION}\n{text}".encode(), digest_size=16).hexdigest()


def make(manifest: dict[str, Any], rows: list[Row], whole: Whole | None = None) -> Record:
    """The record of some rows. Without `whole`, the protocol's `summarise`, metrics of the whole cell are unknown."""
    derived = list(manifest.get("derived", ())) if whole else []
    known = bool(whole) or not manifest.get("derived")
    if manifest["control"] == "dose":  # the grid is the result, nothing is chosen
        return Record(Settled(rows, {}), known, curve=_curves(manifest, rows, derived, whole))
    settled = settle(rows, manifest["metrics"][0], manifest["direction"]) if manifest["at"] else Settled(rows, {})
    if whole is None or not rows:
        settled = Settled([_without_grid(row) for row in settled.rows], settled.chosen)
        return Record(settled, known, _summaries(manifest, settled.rows, manifest["metrics"]))
    found = whole(settled.rows)
    summary = _summaries(manifest, found.rows, [*derived, *manifest["metrics"]], found.derived)
    return Record(Settled(found.rows, settled.chosen), known, summary, {}, found.chosen, found.grid)


def _curves(
    manifest: dict[str, Any], rows: list[Row], derived: list[str], whole: Whole | None
) -> dict[str, list[Summary]]:
    points = len(manifest["points"])
    if whole is None:
        of = {m: [row for row in rows if row.metric == m] for m in manifest["metrics"]}
        listed = {m: several for m, several in of.items() if any(_grid_alone(r, points) for r in several)}
        return {m: curve(several, points, bounds(manifest, m)) for m, several in listed.items()}
    found = [whole([pick(row, i, points) for row in rows]) for i in range(points)] if rows else []
    names = [*derived, *manifest["metrics"]]
    at_dose = [_summaries(manifest, one.rows, names, one.derived) for one in found]
    return {m: [one[m] for one in at_dose] for m in names}


def _grid_alone(row: Row, points: int) -> bool:
    """Whether a value is a list with one entry per point of the method's grid, so that the protocol has no own grid."""
    return isinstance(row.value, list) and len(row.value) == points


def _summaries(
    manifest: dict[str, Any], rows: Sequence[Row], names: Sequence[str], derived: dict[str, Summary] | None = None
) -> dict[str, Summary]:
    """The summary of each metric: of the whole cell where it is derived, otherwise over the cases."""
    of: dict[str, list[Row]] = {name: [] for name in names}
    for row in rows:
        of[row.metric].append(row)
    known = derived or {}
    return {m: known.get(m) or summarise(several, bounds(manifest, m)) for m, several in of.items()}


def bounds(manifest: dict[str, Any], metric: str) -> Bounds:
    """The range that clips a metric's intervals: its own, or else the protocol's."""
    lo, hi = manifest.get("ranges", {}).get(metric, manifest["range"])
    return lo, hi


def _without_grid(row: Row) -> Row:
    """The row; made undefined if its value is a list over the protocol's own grid, which only the protocol can read."""
    return replace(row, value=None, status="undefined", reason=UNREAD) if isinstance(row.value, list) else row


def _read_valid(folder: Path, rows: Sequence[Row]) -> Record | None:
    try:
        found = json.loads(content(folder / NAME))
        return _from_json(found, rows) if found["rows"] == digest(rows) else None
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):  # absent, torn or edited
        return None


def _to_json(made: Record, rows: Sequence[Row]) -> dict[str, Any]:
    """The record as a JSON value; of the settled rows (one for each case and metric) only those that
    differ from the rows as written.
    """
    raw = {(row.case, row.metric): row for row in rows}
    changed = [r for r in made.settled.rows if r != raw.get((r.case, r.metric))]
    return {
        "settled": [[r.case, r.metric, r.value, r.status, r.reason, r.at] for r in changed],
        "chosen": made.settled.chosen,
        "whole": made.whole,
        "summary": {m: asdict(s) for m, s in made.summary.items()},
        "curve": {m: [asdict(s) for s in several] for m, several in made.curve.items()},
        "places": made.places,
        "grid": made.grid,
    }


def _from_json(found: dict[str, Any], rows: Sequence[Row]) -> Record:
    changed = {(c, m): {"value": v, "status": s, "reason": r, "at": a} for c, m, v, s, r, a in found["settled"]}
    settled = [replace(row, **changed.get((row.case, row.metric), {})) for row in rows]
    curves = {m: [Summary(**s) for s in several] for m, several in found["curve"].items()}
    summary = {m: Summary(**s) for m, s in found["summary"].items()}
    chosen = {case: int(point) for case, point in found["chosen"].items()}
    return Record(Settled(settled, chosen), found["whole"], summary, curves, found["places"], found["grid"])
