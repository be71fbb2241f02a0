"""Tables: the sections of a report as columns and lines, in plain text, Markdown, CSV, JSON and Parquet."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from diorama.core.errors import InputError, did_you_mean, importing
from diorama.report.notes import chosen, failures, incomplete, remarks, skipped, world_notes
from diorama.report.sections import Line, Section, sections
from diorama.report.shown import NONE, bounds, decimals, label, number, seconds
from diorama.report.spread import Spread, spreads
from diorama.report.summary import Results, document
from diorama.report.verdicts import like_doses
from diorama.report.words import ARROWS, direction

Runs = dict[str, Results]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading with one text per line; if space is short, columns of the lowest `rank` are left out first.

    `best` are the lines that are best among the methods of their section; `key` is the column's name in `--columns`.
    """

    head: str
    cells: list[str]
    rank: int = 0
    numeric: bool = True
    best: frozenset[int] = frozenset()
    key: str = ""

    @property
    def width(self) -> int:
        """The longest text."""
        return max(map(len, [self.head, *self.cells]))


@dataclass(frozen=True, slots=True)
class Style:
    """A user's choices for tables: columns and their order, decimals, other names for methods."""

    columns: tuple[str, ...] = ()
    digits: int | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def places(self, usual: int) -> int:
        """The decimals of a column."""
        return usual if self.digits is None else self.digits

    def picked(self, columns: list[Column], named: int = 0) -> list[Column]:
        """The wanted columns, after the first `named` ones, which identify the lines."""
        if not self.columns:
            return columns
        known = {c.key: c for c in columns[named:]}
        wrong = next((name for name in self.columns if name not in known), None)
        if wrong is not None:
            raise InputError(f"there is no column {wrong!r}; {did_you_mean(wrong, list(known))}")
        return [*columns[:named], *(known[name] for name in self.columns)]


DEFAULT_STYLE = Style()


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, a caption, footnotes, and which lines are controls."""

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


def table(group: list[Section], style: Style = DEFAULT_STYLE) -> Table:
    """One table of sections that share a protocol. Labels that all lines share go to the caption."""
    pairs = [(section, line) for section in group for line in section.lines]
    named = {head: [label(getattr(section, head)) for section, _ in pairs] for head in ("run", "world", "model")}
    names = [Column(head, cells, 9, numeric=False, key=head) for head, cells in named.items()]
    shared = [label(getattr(group[0], c.head)) for c in names if len(set(c.cells)) < 2]
    first, better = group[0], ARROWS[group[0].direction]
    caption = " · ".join(part for part in [*shared, first.protocol, f"{first.metric} {better}"] if part)
    scored = _scores(group, pairs, style)
    several = [c for c in names if len(set(c.cells)) > 1]
    columns = several + [c for c in scored if c.key in style.columns or any(t.strip(NONE) for t in c.cells)]
    controls = [bool(line.control) for _, line in pairs]
    return Table(caption, style.picked(columns, len(several) + 1), _notes(group), controls)


def _scores(group: list[Section], pairs: list[tuple[Section, Line]], style: Style) -> list[Column]:
    lines, metric = [line for _, line in pairs], group[0].metric
    like = {key: dose for section in group for key, dose in like_doses(section).items()}
    shown = [(line, style.places(section.places)) for section, line in pairs]
    means = [number(line.mean, places) for line, places in shown]
    ends = [bounds(line.primary["lo"], line.primary["hi"], places) for line, places in shown]
    published = [number(line.entry["published"], places) for line, places in shown]
    deviations = [number(line.primary["std"] if _shows_std(line) else None, places) for line, places in shown]
    head = f"{metric} {ARROWS[group[0].direction]}"
    return [
        Column("method", [name(line, style) for line in lines], 9, numeric=False, key="method"),
        Column(head, means, 9, best=best(pairs, metric, means), key=metric),
        Column("95 % interval", ends, 8, key="interval"),
        Column("std", deviations, 7, key="std"),
        Column("ok/undef/excl/err", [counts(line) for line in lines], 9, key="cases"),
        Column("rank", [number(line.entry["mean_rank"], 2) for line in lines], 5, key="rank"),
        Column("published", published, 6, key="published"),
        *[_metric(m, pairs, style) for m in group[0].others],
        Column("like dose", [like.get(line.entry["key"], NONE) for line in lines], 4, key="dose"),
        Column("chosen", [chosen(line) or NONE for line in lines], 2, numeric=False, key="chosen"),
        Column("s/case", [seconds(line.seconds) for line in lines], 1, key="seconds"),
    ]


def best(pairs: list[tuple[Section, Line]], metric: str, shown: list[str]) -> frozenset[int]:
    """The lines whose mean is best among two or more methods of their section, and those with the same text."""
    found: set[int] = set()
    for section in {id(s): s for s, _ in pairs}.values():
        better = direction(section, metric)
        mine = [i for i, (s, line) in enumerate(pairs) if s is section and not line.control and shown[i] != NONE]
        if len(mine) > 1 and better:
            means = [pairs[i][1].entry["summary"][metric]["mean"] for i in mine]
            top = shown[mine[means.index(max(means) if better == "higher" else min(means))]]
            found |= {i for i in mine if shown[i] == top}
    return frozenset(found)


def name(line: Line, style: Style = DEFAULT_STYLE) -> str:
    """The method's label, or the user's name for it; or the control's name, marked as a control."""
    return f"{line.name} (control)" if line.control else style.names.get(line.name, line.name)


def counts(line: Line) -> str:
    """The numbers of cases that are ok, undefined, excluded, failed; and of those still missing."""
    p = line.primary
    text = f"{p['n_ok']}/{p['n_undefined']}/{p['n_excluded']}/{p['n_error']}"
    return f"{text} ({line.cell.missing} missing)" if line.cell.missing else text


def _shows_std(line: Line) -> bool:
    """Whether the protocol's table shows standard deviations."""
    return bool(line.cell.manifest.get("shows_deviation"))


def _metric(metric: str, pairs: list[tuple[Section, Line]], style: Style) -> Column:
    lines = [line for _, line in pairs]
    found = [line.entry["summary"][metric] for line in lines]
    places = style.places(decimals([one["mean"] for one in found]))
    means = [number(one["mean"], places) for one in found]
    bold, head = best(pairs, metric, means), f"{metric} {ARROWS[direction(pairs[0][0], metric)]}".strip()
    shown = means
    if _shows_std(lines[0]):
        shown = [f"{m} ± {number(one['std'], places)}" if m != NONE else m for m, one in zip(means, found, strict=True)]
    return Column(head, shown, 3, best=bold, key=metric)


def _notes(group: list[Section]) -> list[str]:
    notes: list[str] = []
    for section in group:
        prefix = f"{_differing_labels(section, group)}: " if len(group) > 1 else ""
        texts = [f.text for f in failures(section)] + [f.text for f in remarks(section)]
        texts += [*world_notes(section), *(f"{v.control} {v.holds}: {v.text}" for v in section.verdicts)]
        notes += [prefix + text for text in texts]
    return notes


def _differing_labels(section: Section, group: list[Section]) -> str:
    """The labels in which the sections of a table differ."""
    names = [head for head in ("run", "world", "model") if len({getattr(s, head) for s in group}) > 1]
    return " · ".join(label(getattr(section, head)) for head in names)


def groups(runs: Runs) -> list[list[Section]]:
    """The sections that share a table: one per protocol and set of metrics."""
    found: dict[tuple[Any, ...], list[Section]] = {}
    for section in sections(runs):
        if section.lines:
            key = (section.protocol, section.metric, section.direction, *section.others)
            found.setdefault(key, []).append(section)
    return list(found.values())


def tables(runs: Runs, style: Style = DEFAULT_STYLE) -> list[Table]:
    """The tables of all runs, and one for every set of answers that several protocols scored."""
    known = [table(group, style) for group in groups(runs)]
    return known if style.columns else [*known, *map(spread_table, spreads(sections(runs)))]


def spread_table(spread: Spread) -> Table:
    """One method under several protocols as a table."""
    cells = [list(texts) for texts in zip(*spread.rows, strict=True)]
    ranks = (9, 9, 9, 7, 3, 6, 5, 4, 2)  # which columns a narrow terminal keeps longest
    parts = zip(spread.heads, cells, ranks, strict=True)
    columns = [Column(head, texts, rank, numeric=head.endswith("mean")) for head, texts, rank in parts]
    caption = f"one set of answers under every protocol · {spread.title}"
    return Table(caption, columns, spread.notes, [False] * len(spread.rows))


def closing(runs: Runs) -> list[str]:
    """Notes on the whole report: missing cases and skipped pairs."""
    missing = incomplete(runs.values())
    return ([missing] if missing else []) + [f"skipped {text}" for text in skipped(runs.values())]


def text(runs: Runs, style: Style = DEFAULT_STYLE, width: int | None = None) -> str:
    """Plain aligned tables. If the width is too small, the least important columns are left out, and named."""
    blocks = [_text_table(t, width) for t in tables(runs, style)]
    last = "\n".join(f"  {note}" for note in closing(runs))
    return "\n\n".join(block for block in [*blocks, last] if block) + "\n"


def _text_table(whole: Table, width: int | None) -> str:
    fitted = fit(whole, width)
    dropped = [c.head for c in whole.columns if c not in fitted.columns]
    notes = [f"  {i}. {note}" for i, note in enumerate(whole.notes, 1)]
    left = [f"  not shown for lack of width: {', '.join(dropped)}"] if dropped else []
    return "\n".join([whole.caption, "", *aligned(fitted.columns), "", *left, *notes])


def aligned(columns: Sequence[Column]) -> list[str]:
    """Columns as lines of text: the heads, a rule, the cells; numbers are right-aligned."""

    def padded(column: Column) -> list[str]:
        pad = str.rjust if column.numeric else str.ljust
        return [pad(text, column.width) for text in (column.head, "─" * column.width, *column.cells)]

    return ["  ".join(line).rstrip() for line in zip(*map(padded, columns), strict=True)]


def fit(whole: Table, width: int | None) -> Table:
    """The table without its least important columns, so that it is at most `width` characters wide."""
    columns = list(whole.columns)
    while width and len(columns) > 2 and sum(c.width + 2 for c in columns) - 2 > width:
        least = min(columns, key=lambda c: (c.rank, -columns.index(c)))
        if least.rank > 7:
            break
        columns.remove(least)
    return replace(whole, columns=columns)


def markdown(runs: Runs, style: Style = DEFAULT_STYLE) -> str:
    """Markdown tables, the best in bold, with footnotes as lists: to paste into an issue."""
    blocks = [_markdown_table(t) for t in tables(runs, style)]
    last = "\n".join(f"- {_escape(note)}" for note in closing(runs))
    return "\n\n".join(block for block in [*blocks, last] if block) + "\n"


def _markdown_table(shown: Table) -> str:
    def row(cells: list[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rule = row(["---:" if c.numeric else ":---" for c in shown.columns])
    body = [row([_markdown_cell(c, i, shown.controls[i]) for c in shown.columns]) for i in range(len(shown.controls))]
    notes = [f"{i}. {_escape(note)}" for i, note in enumerate(shown.notes, 1)]
    head = row([_escape(c.head) for c in shown.columns])
    return "\n".join([f"**{_escape(shown.caption)}**", "", head, rule, *body, "", *notes])


def _markdown_cell(column: Column, i: int, control: bool) -> str:
    """A cell in Markdown: the best in bold, the name of a control in italics."""
    shown = _escape(column.cells[i])
    if control and column.key in ("run", "world", "model", "method"):
        return f"*{shown}*"
    return f"**{shown}**" if i in column.best else shown


def _escape(value: str) -> str:
    for mark in "\\`*|[]":
        value = value.replace(mark, "\\" + mark)
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


FIELDS = ("run", "world", "model", "method", "protocol", "variant", "control", "case", "metric", "value", "status",
          "reason", "point", "seconds", "cell")  # fmt: skip


#: First characters of texts that spreadsheets take for formulas.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def records(runs: Runs) -> Iterator[dict[str, Any]]:
    """One record per case and metric, at the chosen point; a dose cell gives one per dose."""
    for run, results in runs.items():
        for cell in results.cells:
            manifest, points = cell.manifest, cell.manifest["points"]
            fixed = {k: manifest[k] for k in ("world", "model", "method", "protocol", "variant", "control")}
            for row in cell.settled.rows:
                about = {"case": row.case, "metric": row.metric, "status": row.status, "reason": row.reason}
                known = {"run": run, **fixed, **about, "seconds": row.seconds, "cell": manifest["key"]}
                values: list[tuple[Any, str]]
                if isinstance(row.value, list):
                    values = [(v, _point_name(points, row.at, i, len(row.value))) for i, v in enumerate(row.value)]
                else:
                    place = cell.settled.chosen.get(row.case)
                    values = [(row.value, "" if place is None else _point(points[place]))]
                for value, where in values:
                    record = {**known, "value": value, "point": where}
                    yield {field: record[field] for field in FIELDS}


def _point_name(points: list[dict[str, Any]], at: str, i: int, count: int) -> str:
    """The grid point of a row's i-th value: the point of the method's grid, and its number on the protocol's own grid.

    >>> _point_name([{"dose": 0.0}, {"dose": 1.0}], "dose,t", 4, 6)
    'dose=1.0, t #2'
    """
    own = max(count // len(points), 1)
    here = [_point(points[min(i // own, len(points) - 1)])] + [f"{at.rpartition(',')[2]} #{i % own + 1}"] * (own > 1)
    return ", ".join(filter(None, here))


def _point(point: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in point.items())


def long_csv(runs: Runs) -> str:
    """Every record as a line of CSV."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({field: _csv_cell(value) for field, value in record.items()} for record in records(runs))
    return out.getvalue()


def _csv_cell(value: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def as_json(runs: Runs) -> str:
    """The JSON document of the run; for several runs one document whose cells name their run."""
    documents = {run: document(results) for run, results in runs.items()}
    if len(documents) == 1:
        return json.dumps(next(iter(documents.values())), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    merged: dict[str, Any] = {"schema": next(iter(documents.values()))["schema"]}
    for part in ("cells", "skipped", "verdicts"):
        merged[part] = [{"run": run, **item} for run, found in documents.items() for item in found[part]]
    return json.dumps(merged, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def parquet(runs: Runs) -> bytes:
    """The records of the CSV as a Parquet file."""
    with importing():
        import pyarrow as pa
        import pyarrow.parquet as pq
    kinds = {field: pa.float64() if field in ("value", "seconds") else pa.string() for field in FIELDS}
    found = list(records(runs))
    columns = {f: pa.array([_parquet_value(r[f], f) for r in found], kinds[f]) for f in FIELDS}
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out)
    return out.getvalue()


def _parquet_value(value: Any, field: str) -> Any:
    if value is None:
        return None
    return float(value) if field in ("value", "seconds") else str(value)
