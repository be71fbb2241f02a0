"""A report read back from its HTML: tables with their headings, and where a number of the page is not one of the results."""

import itertools
import re
from html.parser import HTMLParser
from pathlib import Path

from diorama.report.summary import Results, document

#: A number with decimals, as pages write it; dates, versions and sizes have none or more than one point.
NUMBER = re.compile(r"(?<![\w.])[−-]?\d+\.\d+(?![\w.]*\d)")
#: How far a number may be from a value: half a unit of its last digit.
HALF = 0.500001


class Page(HTMLParser):
    """The tables of a page, each with its class, headings and rows of texts; and the text outside of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.places: set[str] = set()
        self.links: list[str] = []
        self.prose: list[str] = []
        self._inside, self._cell, self._quiet = 0, False, 0
        self._section = ""
        self.sections: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {found["id"]} if found.get("id") else set()
        self.links += [found["href"]] if found.get("href") else []
        if tag == "section" and found.get("id"):
            self._section = found["id"] or ""
        if tag == "table":
            self.tables.append((found.get("class") or "", []))
            self.sections.append(self._section)
            self._inside += 1
        if tag == "tr":
            self.tables[-1][1].append([])
        if tag in ("td", "th") and self._inside:
            self.tables[-1][1][-1].append("")
            self._cell = True
        self._quiet += tag in ("style", "script", "pre", "code", "title")

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag == "table"
        self._cell = self._cell and tag not in ("td", "th")
        self._quiet -= tag in ("style", "script", "pre", "code", "title")

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.tables[-1][1][-1][-1] += data if data[:1] not in "[" else f" {data}"
        elif not self._inside and not self._quiet and "run" not in self.places:  # versions and sizes follow there
            self.prose.append(data)


def strange(page: Page, results: Results) -> list[str]:
    """What the tables of a page say otherwise than the results, cell by cell, found by names of methods and metrics."""
    lost: list[str] = []
    for section, part in enumerate(results.sections):
        lines = {(f"{line.name} (control)" if line.control else line.name): line for line in part.lines}
        for (style, rows), place in zip(page.tables, page.sections, strict=True):
            if place != f"s{section + 1}":
                continue
            head = [text.replace("\u00a0", " ").split(" ↑")[0].split(" ↓")[0].strip() for text in rows[0]]
            for row in rows[1:]:
                if "results" in style:
                    lost += _of_line(head, row, lines[row[0]])
                elif style.startswith("heat sortable"):
                    lost += _of_case(head, row, {m.name: m.values(part.some.case_metric) for m in part.methods})
    return lost


def _of_line(head: list[str], row: list[str], line) -> list[str]:
    """A line of a table of results: the metrics' means, the interval of the one that leads, counts and published value."""
    summary, first = line.entry["summary"], line.primary
    known: dict[str, list[float | None]] = {m: [s["mean"], s.get("std")] for m, s in summary.items()}
    known |= {"95 % interval": [first["lo"], first["hi"]], "std": [first.get("std")]}
    known |= {"published": [line.entry["published"]], "rank": [line.entry["mean_rank"]]}
    counted = [first[f"n_{k}"] for k in ("ok", "undefined", "excluded", "error")]
    known["ok/undef/excl/err"] = counted
    lost = []
    for name, text in zip(head[1:], row[1:], strict=True):
        if name in known:
            shown = re.findall(r"[−-]?\d+(?:\.\d+)?", text.split(" (")[0])
            meant = [v for v in known[name] if v is not None]
            if not all(near(s, [v]) for s, v in zip(shown, meant, strict=False)) or (
                not shown and meant[:1] and text != ""
            ):
                lost.append(f"{row[0]}, {name}: {text}")
    return lost


def _of_case(head: list[str], row: list[str], values: dict[str, dict[str, float]]) -> list[str]:
    """A line of the table of every case."""
    lost = []
    for name, text in zip(head[1:], row[1:], strict=True):
        value = values[name].get(row[0])
        if (value is None) != (text == "–") or (value is not None and not near(text, [value])):
            lost.append(f"{row[0]}, {name}: {text}")
    return lost


def near(text: str, values) -> bool:
    """Whether a number as it is written is one of the values, rounded."""
    number = float(text.replace("−", "-"))
    unit = 10.0 ** -len(text.partition(".")[2])
    return any(abs(number - value) <= HALF * unit for value in values)


def unknown(page: Page, results: Results) -> list[str]:
    """Numbers with decimals in the prose and the figures that are no value of the results: none may be made up.

    Known are all numbers of the document, the values of cases and doses, the means of a case over methods, differences from
    the best, and the doses at which the curve passes a method's mean.
    """
    known = list(_numbers(document(results)))
    for part in results.sections:
        for line in [*part.lines, *([part.dose] if part.dose else [])]:
            for row in line.cell.settled.rows:
                known += row.value if isinstance(row.value, list) else [row.value] if row.value is not None else []
        known += [v for gap in part.gaps for v in (gap.mean, gap.lo, gap.hi) if v is not None]
        known += [*_means_of_cases(part), *_doses(part)]
        world = [r.value for r in part.some.settled.rows if r.metric.startswith("truth_") and r.value is not None]
        known += [100 * v for v in world]  # said in per cent
    signed = [*known, *(-v for v in known)]
    return [n for n in NUMBER.findall(" ".join(page.prose)) if not near(n, signed)]


def _means_of_cases(part) -> list[float]:
    """The mean of every case over the methods, by which the gallery is ordered."""
    columns = [line.values(metric) for metric in part.some.manifest["metrics"] for line in part.methods]
    cases = {case for column in columns for case in column}
    several = [[line.values(m) for line in part.methods] for m in part.some.manifest["metrics"]]
    found = [[c[case] for c in group if case in c] for group in several for case in cases]
    return [sum(values) / len(values) for values in found if values]


def _doses(part) -> list[float]:
    """Where the dose curve, straight from point to point, passes the mean of a line."""
    if part.dose is None:
        return []
    found, entry = [], part.dose.entry
    points = sorted(zip(entry["doses"], (p["mean"] for p in entry["curve"].get(part.metric, [])), strict=False))
    for (a, low), (b, high) in itertools.pairwise(points):
        for line in part.lines:
            if None not in (low, high, line.mean) and low != high and min(low, high) <= line.mean <= max(low, high):
                found.append(a + (line.mean - low) / (high - low) * (b - a))
    return found


def _numbers(found):
    if isinstance(found, dict):
        for value in found.values():
            yield from _numbers(value)
    elif isinstance(found, list):
        for value in found:
            yield from _numbers(value)
    elif isinstance(found, int | float) and not isinstance(found, bool):
        yield float(found)


def read_page(path: Path) -> Page:
    """The page of a file."""
    return Page(path.read_text(encoding="utf-8"))
