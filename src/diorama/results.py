"""The results of a run in Python: table, rows, comparisons, cases, plots and report, in a notebook or a terminal."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core import kept
from diorama.core.device import one_thread
from diorama.core.errors import InputError, did_you_mean, importing
from diorama.core.memory import Memory
from diorama.core.run import Run, asked_for, open_run
from diorama.report import compare as comparison
from diorama.report.sections import Section
from diorama.report.summary import CellResult, document, read_results
from diorama.report.summary import Results as Read
from diorama.report.tables import records, text

#: The width of text tables in characters.
WIDTH = 120


class Results:
    """The results of a run. A notebook displays them; `print` gives the tables as text."""

    def __init__(self, folder: Path, run: Run | None = None):
        self.folder, self._run = folder, run
        #: Keeps a temporary folder alive as long as these results.
        self.held: object = None

    @classmethod
    def read(cls, folder: str | Path) -> "Results":
        """The results in a run directory. Reading them imports and builds no component."""
        found = cls(Path(folder))
        _ = found._read
        return found

    @cached_property
    def _read(self) -> Read:
        return read_results(self.folder)

    @cached_property
    def sections(self) -> list[Section]:
        """The cells of each world, model and protocol, which are compared with each other, best first."""
        return self._read.sections

    @cached_property
    def document(self) -> dict[str, Any]:
        """The JSON document that `diorama run --json` prints."""
        return document(self._read)

    @cached_property
    def table(self) -> Any:
        """A pandas DataFrame with a line per method and metric: mean, 95 % interval, counts of cases by status."""
        lines = [
            {**{k: cell[k] for k in ("world", "model", "protocol", "method", "control")}, "metric": metric, **summary}
            for cell in self.document["cells"]
            for metric, summary in cell["summary"].items()
        ]
        return _pandas().DataFrame(lines)

    @cached_property
    def rows(self) -> Any:
        """A pandas DataFrame with a line per case and metric."""
        return _pandas().DataFrame(list(records({"": self._read}))).drop(columns="run")

    def compare(self, a: str, b: str) -> "Comparison":
        """Compare two methods case by case: for each world, model and protocol the mean difference b − a, interval and p."""
        return Comparison(a, b, comparison.compared(self._read, self._read, (a, b)))

    def case(self, method: str, case: int | str, by: str | None = None, on: str | None = None) -> "CaseView":
        """A case by its number or name: its frame, truth and answer as arrays, and `.show()`.

        For results read from a folder this needs stored answers (keep="maps"), or a plan of specs to compute them again.
        """
        cell = self._cell(method, by, on)
        key = _key(cell, case)
        found = kept.read(kept.place(cell.folder, key)) or self._look(cell, key)
        point = cell.settled.chosen.get(key, 0)
        answer = {name: array[min(point, len(array) - 1)] for name, array in found.answer.items()}
        values = {row.metric: row.value for row in cell.settled.rows if row.case == key}
        arrays: Any = next(iter(answer.values())) if len(answer) == 1 else answer or None
        return CaseView(method, key, found.frame, found.truth, arrays, values)

    @property
    def maps(self) -> dict[str, dict[str, Any]]:
        """The stored answers, by method and case."""
        found: dict[str, dict[str, Any]] = {}
        for cell in self._read.cells:
            cases = dict.fromkeys(row.case for row in cell.rows if kept.place(cell.folder, row.case).exists())
            of_method = found.setdefault(cell.manifest["method"], {}) if cases else {}
            for case in cases:
                of_method.setdefault(case, self.case(cell.manifest["method"], case, cell.manifest["protocol"]).answer)
        if not found:
            raise InputError("no answers were stored: call evaluate with keep='maps', or diorama run with --keep maps")
        return found

    @property
    def plot(self) -> Any:
        """Figures for a paper: `.plot.methods()`, `.plot.doses()`, `.plot.cases()`; each has `savefig("x.pdf")`."""
        with importing():
            from diorama.report.plots import Plots
        return Plots(self.sections)

    def report(self, path: str | Path) -> Path:
        """Write the report in the format of the file's ending: html, md, tex, csv, json, xml (JUnit), parquet."""
        from diorama.report.write import write_report

        self.illustrate()
        path = Path(path)
        ending = path.suffix[1:] or "html"
        write_report([self.folder], path, {"xml": "junit", "txt": "text"}.get(ending, ending))
        return path

    def illustrate(self) -> None:
        """Draw the missing pictures of the worst cases, if this session has the components."""
        if self._run is not None:
            from diorama.core.gallery import illustrate

            with one_thread():
                illustrate(self._run)

    def __repr__(self) -> str:
        return text({"": self._read}, width=WIDTH)

    def _repr_html_(self) -> str:
        from diorama.report.html import fragment

        self.illustrate()
        return fragment(self._read)

    def _cell(self, method: str, by: str | None, on: str | None) -> CellResult:
        """The first cell of a method or control, by its name in the table."""
        named = [c for c in self._read.cells if method in (c.manifest["method"], c.manifest["control"])]
        if not named:
            known = sorted({c.manifest["method"] for c in self._read.cells if c.manifest["method"]})
            raise InputError(f"there is no method {method!r}; {did_you_mean(method, known)}")
        fits = [c for c in named if by in (None, c.manifest["protocol"]) and on in (None, c.manifest["world"])]
        if not fits:
            raise InputError(f"{method} was not judged by {by or 'any protocol'} on {on or 'any world'}")
        return fits[0]

    def _look(self, cell: CellResult, key: str) -> kept.KeptCase:
        """Compute the answer of a case again, with the components of this session or of the plan's specs."""
        if self._run is None and '"live:' in self._read.plan:
            raise InputError(f"{key} was not stored, and its method was an object of another session: use keep='maps'")
        run = self._run or open_run(self.folder)
        planned = next(c for c in run.cells if c.key == cell.manifest["key"])
        index = planned.cases.keys.index(key)
        with one_thread():
            return kept.look(planned, index, asked_for(run, planned, index), Memory())


def _key(cell: CellResult, case: int | str) -> str:
    keys = list(dict.fromkeys(row.case for row in cell.rows))
    if isinstance(case, int) and -len(keys) <= case < len(keys):
        return keys[case]
    if case not in keys:
        raise InputError(f"there is no case {case!r}: there are {len(keys)}, {keys[0]} … {keys[-1]}")
    return str(case)


@dataclass(frozen=True, slots=True, eq=False)
class CaseView:
    """A case: `frame` (h, w, 3) sRGB in [0, 1], `truth` by name, `answer`, `values` by metric.

    `answer` is an array, or a dictionary of arrays if there are several (reflectance, shading).
    """

    method: str
    case: str
    frame: np.ndarray | None
    truth: dict[str, Any]
    answer: Any
    values: Mapping[str, Any]

    def show(self) -> Any:
        """A figure: the frame, its truth and the answer."""
        with importing():
            from diorama.report.plots import case_figure
        scores = ", ".join(f"{m} {v:.3g}" for m, v in self.values.items() if isinstance(v, float))
        return case_figure(f"{self.method}, {self.case}", scores, self.frame, self.truth, self.answer)


class Comparison(list[dict[str, Any]]):
    """The lines of a comparison: metric, mean difference, interval, p, and how often each method was better."""

    def __init__(self, a: str, b: str, lines: list[dict[str, Any]]):
        super().__init__(lines)
        self.a, self.b = a, b

    @property
    def table(self) -> Any:
        """The lines as a pandas DataFrame."""
        return _pandas().DataFrame(list(self))

    def __repr__(self) -> str:
        return comparison.text(list(self), self.a, self.b)

    def _repr_html_(self) -> str:
        from markupsafe import escape

        return f"<pre>{escape(repr(self))}</pre>"


def _pandas() -> Any:
    with importing():
        import pandas
    return pandas
