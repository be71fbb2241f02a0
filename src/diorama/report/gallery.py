"""The gallery: cases with the answers of all methods side by side, hardest first, as many as fit into the report."""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diorama.core.summary import means
from diorama.io.names import case_path
from diorama.io.store import content
from diorama.report.sections import Line, Section
from diorama.report.shown import decimals, number, point, printable

#: Upper bounds of the bytes of markup for a picture, and for each of its panels.
MARKUP, EACH = 1_200, 260
#: Matrices of at most so many rows are joined with those of other methods; larger ones get their own table.
FEW = 3


@dataclass(frozen=True, slots=True)
class Matrix:
    """A table of numbers with names; each number has its size relative to the largest, 0 to 1."""

    columns: list[str]
    rows: list[tuple[str, list[tuple[str, float]]]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A strip of panels of one case and method with its texts; `value` includes the metric's name."""

    path: Path
    method: str
    control: bool
    case: str
    value: str
    chosen: str
    captions: list[str]
    width: int
    height: int
    panels: list[str]
    matrices: list[Any]

    @property
    def cost(self) -> int:
        """The bytes it adds to the report."""
        numbers = sum(len(row) for m in self.matrices if m for row in m["values"])
        return self.path.stat().st_size * 4 // 3 + MARKUP + (EACH + 40) * len(self.captions) + 60 * numbers

    @property
    def source(self) -> str:
        """The picture as a data URI."""
        return "data:image/webp;base64," + base64.b64encode(content(self.path)).decode()

    @property
    def side(self) -> float:
        """The width of a panel."""
        return self.width / max(len(self.captions), 1)

    def grid(self, i: int) -> Matrix | None:
        """The table that is shown in place of a panel, if its matrix is large enough."""
        matrix = self.matrices[i]
        if not matrix or len(matrix["rows"]) <= FEW:
            return None
        return as_table(matrix["columns"], dict(zip(matrix["rows"], matrix["values"], strict=True)))

    def description(self, i: int) -> str:
        """What a panel shows, in words."""
        return f"{self.method} on {self.case}: {self.captions[i]}"


@dataclass(frozen=True, slots=True)
class Shown:
    """A case: its name and anchor, the panels that are the same for all methods, and each method's own.

    `common` has indices of panels of the first picture; `pictures` has a number, a picture and the indices of its own panels
    for each method. `matrix` has the numbers of all methods.
    """

    anchor: str
    case: str
    mean: str
    common: list[int]
    pictures: list[tuple[int, Picture, list[int]]]
    matrix: Matrix | None

    @property
    def layout(self) -> str:
        """The CSS class of its layout: `alone` for one answer, `close` for answers of one panel each."""
        widest = max(len(self.common), *(len(own) for _, _, own in self.pictures))
        return "alone" if len(self.pictures) == 1 else "close" if widest <= 1 else ""


def pictures(section: Section, line: Line, places: int) -> dict[str, Picture]:
    """A line's pictures by case, the worst case first, at the chosen grid points."""
    metric, values = case_values(line)
    worst = sorted(values, key=lambda case: values[case], reverse=section.direction == "lower")
    drawn = set((line.cell.folder / "keep").rglob("*.webp"))
    found = {case: _picture(line, case, f"{metric} {number(values[case], places)}", drawn) for case in worst}
    return {case: picture for case, picture in found.items() if picture}


def case_values(line: Line) -> tuple[str, dict[str, float]]:
    """The leading metric if cases have it, otherwise the first that has values; and the value of each case."""
    metrics = (line.cell.metric, line.cell.case_metric, *line.cell.manifest["metrics"])
    metric = next((m for m in metrics if line.values(m)), metrics[0])
    return metric, line.values(metric)


def case_places(section: Section) -> int:
    """Decimals of the values of single cases, the same for all methods."""
    return decimals(value for line in section.methods or section.lines for value in case_values(line)[1].values())


def _picture(line: Line, case: str, value: str, drawn: set[Path]) -> Picture | None:
    place = line.cell.settled.chosen.get(case, 0)
    path = case_path(line.cell.folder / "keep", f"{case}@{place}", ".webp")
    if path not in drawn:
        return None
    try:
        found = json.loads(content(path.with_suffix(".json")))
        width, height = webp_size(content(path)[:32])
    except (OSError, ValueError):  # a report is made without damaged pictures
        return None
    captions = [printable(str(c)) for c in found["captions"]]
    chosen = point(found["point"]) if found["point"] else ""
    # runs of older versions have no digests of panels (then none counts as shared) and no matrices
    panels = _listed(found.get("panels"), len(captions), str) or [f"{path}{i}" for i in range(len(captions))]
    known = _listed(found.get("matrices"), len(captions), object) or [None] * len(captions)
    matrices = [matrix if _valid(matrix) else None for matrix in known]
    shown = line.name, bool(line.control), printable(case), value, chosen
    return Picture(path, *shown, captions, width, height, panels, matrices)


def _listed(found: Any, count: int, kind: type) -> list[Any]:
    """The list if it has `count` items of a type, otherwise an empty one."""
    fits = isinstance(found, list) and len(found) == count and all(isinstance(one, kind) for one in found)
    return found if fits else []


def _valid(matrix: Any) -> bool:
    """Whether a matrix from a file has names and numbers of matching shape."""
    if not isinstance(matrix, dict) or not all(isinstance(matrix.get(k), list) for k in ("rows", "columns", "values")):
        return False
    wide = [isinstance(row, list) and len(row) == len(matrix["columns"]) for row in matrix["values"]]
    numbers = all(type(v) in (int, float, type(None)) for row in matrix["values"] if isinstance(row, list) for v in row)
    names = all(isinstance(name, str) for name in (*matrix["rows"], *matrix["columns"]))
    return all(wide) and len(wide) == len(matrix["rows"]) and numbers and names


def webp_size(head: bytes) -> tuple[int, int]:
    """Width and height from the first 30 bytes of a WebP file, lossy, lossless or extended (RFC 9649)."""
    if len(head) < 30 or head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        raise ValueError("not a WebP picture")
    kind = head[12:16]
    if kind == b"VP8 ":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1


@dataclass(frozen=True, slots=True)
class Gallery:
    """The cases that fit, by section, and the number of pictures left out."""

    shown: dict[int, list[Shown]]
    left_out: int

    def anchors(self, section: int) -> dict[str, str]:
        """The anchors of a section's cases, by name."""
        return {shown.case: shown.anchor for shown in self.shown.get(section, [])}


def select(found: list[Section], budget: int, most: int | None = None) -> Gallery:
    """Take every section's hardest case with all its methods, then every section's second, up to `budget` bytes.

    If not all methods of a case fit, the first of them are shown. `most` is the most cases of a section.
    """
    stacks = [_cases_with_pictures(section)[:most] for section in found]
    total = sum(len(strips) for stack in stacks for _, strips in stack)
    kept: dict[int, list[tuple[str, list[Picture]]]] = {}
    taken = 0
    for depth in range(max(map(len, stacks), default=0)):
        for i, stack in enumerate(stacks):
            if depth >= len(stack):
                continue
            case, strips = stack[depth]
            fit = []
            for strip in strips:
                if strip.cost <= budget:
                    budget -= strip.cost
                    fit.append(strip)
            if fit:
                taken += len(fit)
                kept.setdefault(i, []).append((case, fit))
    shown = {i: _build_shown(f"s{i + 1}", found[i], cases) for i, cases in kept.items()}
    return Gallery(shown, total - taken)


def _cases_with_pictures(section: Section) -> list[tuple[str, list[Picture]]]:
    """The cases of a section that have pictures, hardest first, each with the pictures of methods, then of controls."""
    lines = [*section.methods, *(line for line in section.lines if line.control)]
    places = case_places(section)
    drawn = [pictures(section, line, places) for line in lines]
    cases = list(dict.fromkeys(case for of in drawn for case in of))
    sign, known = -1.0 if section.direction == "lower" else 1.0, mean_values(section)
    cases.sort(key=lambda case: sign * known[case] if case in known else float("inf"))
    return [(case, [of[case] for of in drawn if case in of]) for case in cases]


def mean_values(section: Section) -> dict[str, float]:
    """The mean value of each case over the methods, or over the controls if there are no methods."""
    return means([case_values(line)[1] for line in section.methods or section.lines])


def _build_shown(prefix: str, section: Section, cases: Sequence[tuple[str, list[Picture]]]) -> list[Shown]:
    known, places = mean_values(section), case_places(section)
    found, used = [], set[str]()
    for case, strips in cases:
        anchor = f"{prefix}-{re.sub(r'[^A-Za-z0-9_.-]+', '-', case)}"
        anchor = next(a for a in (anchor, *(f"{anchor}-{n}" for n in range(len(cases)))) if a not in used)
        used.add(anchor)
        alike = [set(strip.panels) for strip in strips]
        common = set.intersection(*alike) if len(alike) > 1 else set()
        first = [i for i, panel in enumerate(strips[0].panels) if panel in common]
        own = [(k, s, [i for i, panel in enumerate(s.panels) if panel not in common]) for k, s in enumerate(strips)]
        metric = case_values((section.methods or section.lines)[0])[0]
        mean = f"mean {metric} {number(known[case], places)}" if case in known and len(section.methods) > 1 else ""
        found.append(Shown(anchor, printable(case), mean, first, own, _matrix(strips)))
    return found


def _matrix(strips: Sequence[Picture]) -> Matrix | None:
    """The small matrices of all strips as one; rows that are the same for all strips appear once."""
    known: dict[tuple[str, ...], dict[str, list[Any]]] = {}
    several = len(strips) > 1
    for strip in strips:
        for matrix in (m for m in strip.matrices if m and len(m["rows"]) <= FEW):
            rows = known.setdefault(tuple(matrix["columns"]), {})
            for name, values in zip(matrix["rows"], matrix["values"], strict=True):
                shared = several and _in_every_strip(strips, name, values)
                rows[printable(name) if shared or not several else f"{strip.method}: {printable(name)}"] = values
    if not known:
        return None
    columns, found = next(iter(known.items()))
    whose = tuple(f"{strip.method}: " for strip in strips)
    # shared rows first
    return as_table(columns, dict(sorted(found.items(), key=lambda row: row[0].startswith(whose))))


def as_table(columns: Iterable[str], rows: Mapping[str, list[Any]]) -> Matrix:
    """Numbers with two decimals, each with its size relative to the largest."""
    top = max((abs(v) for values in rows.values() for v in values if v is not None), default=0.0) or 1.0
    places = decimals([top])
    lines = [(printable(name), [_shade(v, top, min(places, 2)) for v in values]) for name, values in rows.items()]
    return Matrix([printable(c) for c in columns], lines)


def _in_every_strip(strips: Sequence[Picture], name: str, values: list[Any]) -> bool:
    """Whether every strip has this row with these values."""

    def has(matrix: Mapping[str, Any]) -> bool:
        return any(pair == (name, values) for pair in zip(matrix["rows"], matrix["values"], strict=True))

    return all(any(has(matrix) for matrix in filter(None, strip.matrices)) for strip in strips)


def _shade(value: float | None, top: float, places: int) -> tuple[str, float]:
    return number(value, places), 0.0 if value is None else abs(value) / top
