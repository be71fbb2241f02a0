"""Sections: the cells of one run, world, model and protocol, which a report compares with each other, best first."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from diorama.report.differences import Gap, gaps
from diorama.report.shown import bounds, decimals, label, number
from diorama.report.summary import CellResult, Results
from diorama.report.verdicts import Verdict, verdicts

#: Metrics with this prefix judge the world's own truth, not a method: they go into a note, not into a column.
OF_THE_WORLD = "truth_"
_TRACK = re.compile(r"^(explain|decompose|represent|concept)/")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: a cell and its entry in the JSON document."""

    cell: CellResult
    entry: dict[str, Any]

    @property
    def name(self) -> str:
        """The method's label without its track, which a section's methods share; for a control, the control's name."""
        return self.control or _TRACK.sub("", label(self.entry["method"]))

    @property
    def control(self) -> str:
        """The name of the control, or an empty string."""
        return self.entry["control"]

    @property
    def primary(self) -> dict[str, Any]:
        """The summary of the leading metric."""
        return self.entry["summary"][self.cell.metric]

    @property
    def mean(self) -> float | None:
        """The mean of the leading metric."""
        return self.primary["mean"]

    @property
    def seconds(self) -> float | None:
        """Mean seconds per case, over the cases that were computed."""
        done = self.cell.cases - self.cell.missing
        return self.entry["seconds"] / done if done else None

    def values(self, metric: str | None = None) -> dict[str, float]:
        """The value of each case that has one; a metric of the whole cell has none."""
        return self.cell.values(metric or self.cell.metric)


@dataclass(frozen=True)
class Section:
    """The lines of one table, best first, with the oracle at the top and chance at the bottom; the dose cell is separate."""

    run: str
    world: str
    model: str
    protocol: str
    lines: list[Line]
    dose: Line | None

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Whether its controls hold."""
        return verdicts(self)

    @cached_property
    def gaps(self) -> list[Gap]:
        """How far the best method is ahead of each other method."""
        return gaps(self)

    @property
    def some(self) -> CellResult:
        """One of the cells: all share metrics, direction, range and reference."""
        return self.lines[0].cell if self.lines else self.dose.cell  # type: ignore[union-attr]

    @property
    def metric(self) -> str:
        """The leading metric."""
        return self.some.metric

    @property
    def others(self) -> list[str]:
        """The other metrics that judge methods."""
        every = [*self.some.derived, *self.some.manifest["metrics"]]
        left_out = {self.metric, *self.some.manifest.get("unlisted", ())}
        return [m for m in every if m not in left_out and not m.startswith(OF_THE_WORLD)]

    @property
    def direction(self) -> str:
        """`lower` or `higher`: which values are better."""
        return self.some.manifest["direction"]

    @property
    def methods(self) -> list[Line]:
        """The lines that are not controls."""
        return [line for line in self.lines if not line.control]

    def control(self, name: str) -> Line | None:
        """The line of a control."""
        return next((line for line in self.lines if line.control == name), None)

    @property
    def title(self) -> str:
        """World, model and protocol in one line, with the run's name if there are several."""
        parts = [self.run, label(self.world), label(self.model), self.protocol]
        return " · ".join(part for part in parts if part)

    @property
    def places(self) -> int:
        """Decimals of the leading metric, the same for all lines and the curve."""
        curve = self.dose.entry["curve"].get(self.metric, []) if self.dose else []
        return decimals([line.mean for line in self.lines] + [point["mean"] for point in curve])

    def show(self, value: float | None) -> str:
        """A value of the leading metric."""
        return number(value, self.places)

    def score(self, line: Line) -> str:
        """Mean and interval of a line."""
        return f"{self.show(line.mean)} {bounds(line.primary['lo'], line.primary['hi'], self.places)}".strip()

    def better(self, a: float, b: float) -> bool:
        """Whether `a` is better than `b`, by more than rounding."""
        gain = b - a if self.direction == "lower" else a - b
        return gain > 1e-9 * max(abs(a), abs(b), 1e-6)


def name_runs(results: list[Results]) -> dict[str, Results]:
    """Runs by a unique name: that of the folder, with as many parents as needed; a single run has an empty name."""
    if len(results) == 1:
        return {"": results[0]}
    folders = [r.folder.resolve() for r in results]
    depth = 1
    while len({_tail(f, depth) for f in folders}) < len(set(folders)):
        depth += 1
    names = [_tail(folder, depth) for folder in folders]
    return {name: replace(r, name=name) for name, r in zip(names, results, strict=True)}


def _tail(folder: Path, depth: int) -> str:
    return "/".join(folder.parts[-depth:])


def sections(runs: dict[str, Results]) -> list[Section]:
    """The sections of all runs, in the order of their plans."""
    return [section for results in runs.values() for section in results.sections]


def grouped(results: Results) -> list[Section]:
    """The sections of a run."""
    groups: dict[tuple[str, str, str], list[Line]] = {}
    for cell, entry in zip(results.cells, results.entries, strict=True):
        key = entry["world"], entry["model"] or "", _protocol(entry)
        groups.setdefault(key, []).append(Line(cell, entry))
    return [_section(results.name, key, lines) for key, lines in groups.items()]


def _protocol(entry: dict[str, Any]) -> str:
    name, variant = label(entry["protocol"]), entry["variant"]
    return name if variant is None or str(variant) in name else f"{name} ({variant})"


def _section(run: str, key: tuple[str, str, str], lines: list[Line]) -> Section:
    dose = next((line for line in lines if line.control == "dose"), None)
    scored = [line for line in lines if line.control != "dose"]
    sign = 1 if lines[0].cell.manifest["direction"] == "lower" else -1
    scored.sort(key=lambda line: _order(line, sign))
    return Section(run, *key, scored, dose)


def _order(line: Line, sign: int) -> tuple[int, bool, float]:
    pinned = {"oracle": 0, "": 1, "random": 2}[line.control]
    return pinned, line.mean is None, sign * (line.mean or 0.0)
