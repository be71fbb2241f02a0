"""Tables: the sections of a report as columns and lines, in plain text, Markdown, LaTeX, CSV, JSON and Parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.report.notes import chosen, failures, incomplete, remarks, skipped, world_notes
from diorama.report.sections import Line, Section, sections
from diorama.report.shown import NONE, bounds, decimals, label, number, seconds
from diorama.report.spread import Spread, spreads
from diorama.report.summary import Results, document
from diorama.report.verdicts import like_doses

Runs = dict[str, Results]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading with one text per line; `rank` says which columns are left out last where space is short."""

    head: str
    cells: list[str]
    rank: int = 0
    numeric: bool = True

    @property
    def width(self) -> int:
        """The longest text."""
        return max(map(len, [self.head, *self.cells]))


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, what they share as a caption, and footnotes."""

    caption: str
    columns: list[Column]
    notes: list[str]
    controls: list[bool]

    @property
    def rows(self) -> list[list[str]]:
        """The lines."""
        return [[c.cells[i] for c in self.columns] for i in range(len(self.controls))]

    @property
    def blocks(self) -> list[tuple[bool, list[list[tuple[Column, str]]]]]:
        """Runs of lines that are all controls or all methods, each text with its column."""
        found: list[tuple[bool, list[list[tuple[Column, str]]]]] = []
        for control, row in zip(self.controls, self.rows, strict=True):
            if not found or found[-1][0] != control:
                found.append((control, []))
            found[-1][1].append(list(zip(self.columns, row, strict=True)))
        return found


def table(group: list[Section]) -> Table:
    """One table of sections that share a protocol. What is the same on every line goes to the caption."""
    pairs = [(section, line) for section in group for line in section.lines]
    names = [_name_column(head, [getattr(s, head) for s, _ in pairs]) for head in ("run", "world", "model")]
    shared = [label(getattr(group[0], c.head)) for c in names if len(set(c.cells)) < 2]
    first, better = group[0], "↓" if group[0].direction == "lower" else "↑"
    caption = " · ".join(part for part in [*shared, first.protocol, f"{first.metric} {better}"] if part)
    scored = _scores(group, pairs, better)
    columns = [c for c in names if len(set(c.cells)) > 1] + [c for c in scored if any(t.strip(NONE) for t in c.cells)]
    return Table(caption, columns, _notes(group), [bool(line.control) for _, line in pairs])


def _name_column(head: str, values: list[str]) -> Column:
    return Column(head, [label(v) for v in values], 9, numeric=False)


def _scores(group: list[Section], pairs: list[tuple[Section, Line]], better: str) -> list[Column]:
    lines = [line for _, line in pairs]
    like = {key: dose for section in group for key, dose in like_doses(section).items()}
    return [
        Column("method", [name(line) for line in lines], 9, numeric=False),
        Column(f"{group[0].metric} {better}", [s.show(line.mean) for s, line in pairs], 9),
        Column("95 % interval", [bounds(line.primary["lo"], line.primary["hi"], s.places) for s, line in pairs], 8),
        Column("std", [_std(s, line) for s, line in pairs], 7),
        Column("ok/undef/excl/err", [counts(line) for line in lines], 9),
        Column("rank", [number(line.entry["mean_rank"], 2) for line in lines], 5),
        Column("published", [number(line.entry["published"], s.places) for s, line in pairs], 6),
        *[_metric(m, lines) for m in group[0].others],
        Column("like dose", [like.get(line.entry["key"], NONE) for line in lines], 4),
        Column("chosen", [chosen(line) or NONE for line in lines], 2, numeric=False),
        Column("s/case", [seconds(line.seconds) for line in lines], 1),
    ]


def name(line: Line) -> str:
    """The method's label, or the control's name, marked as a control."""
    return f"{line.name} (control)" if line.control else line.name


def counts(line: Line) -> str:
    """How many cases are ok, undefined, excluded, failed; and how many are still missing."""
    p = line.primary
    text = f"{p['n_ok']}/{p['n_undefined']}/{p['n_excluded']}/{p['n_error']}"
    return f"{text} ({line.cell.missing} missing)" if line.cell.missing else text


def _spread(line: Line) -> bool:
    """Whether the protocol's table shows standard deviations."""
    return bool(line.cell.manifest.get("spread"))


def _std(section: Section, line: Line) -> str:
    return number(line.primary["std"], section.places) if _spread(line) else NONE


def _metric(metric: str, lines: list[Line]) -> Column:
    found = [line.entry["summary"][metric] for line in lines]
    places = decimals([one["mean"] for one in found])
    shown = [number(one["mean"], places) for one in found]
    if _spread(lines[0]):
        shown = [f"{m} ± {number(one['std'], places)}" if m != NONE else m for m, one in zip(shown, found, strict=True)]
    return Column(metric, shown, 3)


def _notes(group: list[Section]) -> list[str]:
    notes: list[str] = []
    for section in group:
        prefix = f"{_place(section, group)}: " if len(group) > 1 else ""
        said = [f.text for f in failures(section)] + [f.text for f in remarks(section)]
        said += [*world_notes(section), *(f"{v.control} {v.holds}: {v.text}" for v in section.verdicts)]
        notes += [prefix + text for text in said]
    return notes


def _place(section: Section, group: list[Section]) -> str:
    """What tells a section from the others of its table."""
    names = [head for head in ("run", "world", "model") if len({getattr(s, head) for s in group}) > 1]
    return " · ".join(label(getattr(section, head)) for head in names)


def tables(runs: Runs) -> list[Table]:
    """The tables of all runs: one per protocol and set of metrics."""
    groups: dict[tuple[Any, ...], list[Section]] = {}
    for section in sections(runs):
        if section.lines:
            key = (section.protocol, section.metric, section.direction, *section.others)
            groups.setdefault(key, []).append(section)
    return [*(table(group) for group in groups.values()), *map(spread_table, spreads(sections(runs)))]


def spread_table(spread: Spread) -> Table:
    """One method under several protocols as a table."""
    cells = [list(texts) for texts in zip(*spread.rows, strict=True)]
    ranks = (9, 9, 9, 7, 3, 6, 5, 4, 2)  # which columns a narrow terminal keeps longest
    columns = [
        Column(head, texts, rank, numeric=head.endswith("mean"))
        for head, texts, rank in zip(spread.heads, cells, ranks, strict=True)
    ]
    caption = f"one set of answers under every protocol · {spread.title}"
    return Table(caption, columns, spread.notes, [False] * len(spread.rows))


def _closing(runs: Runs) -> list[str]:
    """What concerns the whole report: what is missing and what was skipped."""
    missing = incomplete(runs.values())
    return ([missing] if missing else []) + [f"skipped {text}" for text in skipped(runs.values())]


def text(runs: Runs, width: int | None = None) -> str:
    """Plain aligned tables. Where the width is short the least important columns are left out, and named."""
    blocks = [_text_table(t, width) for t in tables(runs)]
    closing = "\n".join(f"  {note}" for note in _closing(runs))
    return "\n\n".join(block for block in [*blocks, closing] if block) + "\n"


def _text_table(whole: Table, width: int | None) -> str:
    fitted = fit(whole, width)
    dropped = [c.head for c in whole.columns if c not in fitted.columns]
    lines = [[c.head for c in fitted.columns], ["─" * c.width for c in fitted.columns], *fitted.rows]
    body = ["  ".join(_pad(t, c) for t, c in zip(row, fitted.columns, strict=True)).rstrip() for row in lines]
    notes = [f"  {i}. {note}" for i, note in enumerate(whole.notes, 1)]
    left = [f"  not shown for lack of width: {', '.join(dropped)}"] if dropped else []
    return "\n".join([whole.caption, "", *body, "", *left, *notes])


def _pad(value: str, column: Column) -> str:
    return value.rjust(column.width) if column.numeric else value.ljust(column.width)


def fit(whole: Table, width: int | None) -> Table:
    """The table with its least important columns left out until it is at most `width` characters wide."""
    columns = list(whole.columns)
    while width and len(columns) > 2 and sum(c.width + 2 for c in columns) - 2 > width:
        least = min(columns, key=lambda c: (c.rank, -columns.index(c)))
        if least.rank > 7:
            break
        columns.remove(least)
    return replace(whole, columns=columns)


def markdown(runs: Runs) -> str:
    """Markdown tables with footnotes as lists."""
    blocks = [_markdown_table(t) for t in tables(runs)]
    closing = "\n".join(f"- {_md(note)}" for note in _closing(runs))
    return "\n\n".join(block for block in [*blocks, closing] if block) + "\n"


def _markdown_table(shown: Table) -> str:
    def row(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = row(["---:" if c.numeric else ":---" for c in shown.columns])
    body = [row([_md(t) for t in r]) for r in shown.rows]
    body = [
        f"{line[:2]}*{line[2:].replace(' |', '* |', 1)}" if c else line
        for line, c in zip(body, shown.controls, strict=True)
    ]
    notes = [f"{i}. {_md(note)}" for i, note in enumerate(shown.notes, 1)]
    head = row([_md(c.head) for c in shown.columns])
    return "\n".join([f"**{_md(shown.caption)}**", "", head, rule, *body, "", *notes])


def _md(value: str) -> str:
    for mark in "\\`*|[]":
        value = value.replace(mark, "\\" + mark)
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "→": r"$\to$", "×": r"$\times$", "·": r"$\cdot$",
    "…": r"\ldots{}", "≈": r"$\approx$",
}  # fmt: skip


def tex(runs: Runs) -> str:
    """LaTeX tables for booktabs, footnotes in the caption's place below."""
    blocks = [_tex_table(t) for t in tables(runs)]
    closing = "\n".join(f"% {note}" for note in _closing(runs))
    head = "% needs \\usepackage{booktabs}"
    return "\n\n".join(block for block in [head, *blocks, closing] if block) + "\n"


def _tex_table(shown: Table) -> str:
    def row(cells: list[str]) -> str:
        return "  " + " & ".join(_tex(t) for t in cells) + r" \\"

    spec = "".join("r" if c.numeric else "l" for c in shown.columns)
    body = []
    for i, cells in enumerate(shown.rows):
        if i and shown.controls[i] != shown.controls[i - 1]:
            body.append("  \\midrule")
        body.append(row(cells))
    notes = [f"  \\item {_tex(note)}" for note in shown.notes]
    listed = ["\\begin{enumerate}\\footnotesize", *notes, "\\end{enumerate}"] if notes else []
    start = ["\\begin{table}", "\\centering", f"\\caption{{{_tex(shown.caption)}}}", f"\\begin{{tabular}}{{{spec}}}"]
    rules = ["  \\toprule", row([c.head for c in shown.columns]), "  \\midrule", *body, "  \\bottomrule"]
    return "\n".join([*start, *rules, "\\end{tabular}", *listed, "\\end{table}"])


def _tex(value: str) -> str:
    return "".join(_TEX.get(c, c) for c in value)


FIELDS = ("run", "world", "model", "method", "protocol", "variant", "control", "case", "metric", "value", "status",
          "reason", "point", "seconds", "cell")  # fmt: skip


#: What a text begins with that spreadsheets compute.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def records(runs: Runs) -> Iterator[dict[str, Any]]:
    """One record per case and metric, at the chosen point; a dose cell gives one per dose."""
    for run, results in runs.items():
        for cell in results.cells:
            manifest, points = cell.manifest, cell.manifest["points"]
            fixed = {k: manifest[k] for k in ("world", "model", "method", "protocol", "variant", "control")}
            for row in cell.settled.rows:
                said = {"case": row.case, "metric": row.metric, "status": row.status, "reason": row.reason}
                known = {"run": run, **fixed, **said, "seconds": row.seconds, "cell": manifest["key"]}
                values: list[tuple[Any, str]]
                if isinstance(row.value, list):
                    values = [(v, _read_at(points, row.at, i, len(row.value))) for i, v in enumerate(row.value)]
                else:
                    place = cell.settled.chosen.get(row.case)
                    values = [(row.value, "" if place is None else _named(points[place]))]
                for value, where in values:
                    record = {**known, "value": value, "point": where}
                    yield {field: record[field] for field in FIELDS}


def _read_at(points: list[dict[str, Any]], at: str, i: int, count: int) -> str:
    """Where the i-th of a row's values was read: a point of the method's grid, and on the protocol's own grid its number.

    >>> _read_at([{"dose": 0.0}, {"dose": 1.0}], "dose,t", 4, 6)
    'dose=1.0, t #2'
    """
    own = max(count // len(points), 1)
    here = [_named(points[min(i // own, len(points) - 1)])] + [f"{at.rpartition(',')[2]} #{i % own + 1}"] * (own > 1)
    return ", ".join(filter(None, here))


def _named(point: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in point.items())


def long_csv(runs: Runs) -> str:
    """Every record as a line of CSV."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({field: _cell(value) for field, value in record.items()} for record in records(runs))
    return out.getvalue()


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula gets an apostrophe before it; numbers stay as they are."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def as_json(runs: Runs) -> str:
    """The document of the run; several runs give one document whose cells name their run."""
    documents = {run: document(results) for run, results in runs.items()}
    if len(documents) == 1:
        return json.dumps(next(iter(documents.values())), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    merged: dict[str, Any] = {"schema": next(iter(documents.values()))["schema"]}
    for part in ("cells", "skipped", "verdicts"):
        merged[part] = [{"run": run, **item} for run, found in documents.items() for item in found[part]]
    return json.dumps(merged, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_parquet(runs: Runs, path: Path) -> None:
    """The records of the CSV as a Parquet file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'diorama[parquet]'") from None
    kinds = {field: pa.float64() if field in ("value", "seconds") else pa.string() for field in FIELDS}
    found = list(records(runs))
    columns = {f: pa.array([_typed(r[f], f) for r in found], kinds[f]) for f in FIELDS}
    pq.write_table(pa.table(columns), path)


def _typed(value: Any, field: str) -> Any:
    if value is None:
        return None
    return float(value) if field in ("value", "seconds") else str(value)


TEXTS: dict[str, Callable[[Runs], str]] = {
    "text": text, "md": markdown, "tex": tex, "csv": long_csv, "json": as_json,
}  # fmt: skip
