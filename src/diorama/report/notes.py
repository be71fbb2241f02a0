"""Footnotes: cases without a value, notes of rows, skipped pairs, the world's own truth, missing cases."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from diorama.core.errors import count
from diorama.core.summary import summarise
from diorama.report.sections import OF_THE_WORLD, Line, Section
from diorama.report.shown import bounds, brief, crossed, label, number, printable
from diorama.report.summary import Results

_NUMBERS = re.compile(r"\d+(\.\d+)?")
#: The most case names that are listed per reason.
NAMED = 6

#: With more methods than this, their order is not compared with the paper's.
MOST_ORDERED = 4


@dataclass(frozen=True, slots=True)
class Failure:
    """Cases of one line that have no value for the same reason, or have the same note."""

    method: str
    status: str
    reason: str
    cases: list[str]
    metrics: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()

    @property
    def named(self) -> str:
        """The names of the first cases, and the number of the others."""
        rest = len(self.cases) - NAMED
        return ", ".join(self.cases[:NAMED]) + (f" and {rest} more" if rest > 0 else "")

    @property
    def text(self) -> str:
        """The footnote."""
        of = f" in {', '.join(self.metrics)} only" if self.metrics else ""
        start = f"{self.method}: {count(len(self.cases), 'case')} {self.status}{of}" if self.status else self.method
        noted = "" if self.status else f" (note on {count(len(self.cases), 'case')})"
        return f"{start}{noted}: {self.reason or 'no reason was given'} ({self.named})"


def failures(section: Section) -> list[Failure]:
    """The cases without a value, by method, status and reason."""
    return _merged([f for line in _all_lines(section) for f in _by_reason(line, ("error", "undefined", "excluded"))])


def _merged(found: list[Failure]) -> list[Failure]:
    """Merge failures that several methods share, or whose reasons differ in numbers only."""
    groups: dict[tuple[object, ...], list[Failure]] = {}
    for one in found:
        groups.setdefault((one.status, one.metrics, _NUMBERS.sub("#", one.reason)), []).append(one)
    return [_merge(several) for several in groups.values()]


def _merge(several: list[Failure]) -> Failure:
    first = several[0]
    reasons = dict.fromkeys(one.reason for one in several)
    more = f" (and {len(reasons) - 1} more that differ in numbers)" if len(reasons) > 1 else ""
    cases = list(dict.fromkeys(case for one in several for case in one.cases))
    methods = tuple(dict.fromkeys(o.method for o in several))
    return replace(first, method=", ".join(methods), reason=first.reason + more, cases=cases, methods=methods)


def remarks(section: Section) -> list[Failure]:
    """The notes of rows with a value; those that several methods share, or that differ in numbers only, are merged."""
    every = [line.name or "the model" for line in _all_lines(section)]
    found = _merged([f for line in _all_lines(section) for f in _by_reason(line, ("ok",))])
    return [replace(one, method="all") if 1 < len(every) == len(one.methods) else one for one in found]


@dataclass(frozen=True, slots=True)
class Note:
    """A note on some cases, merged over sections; `places` are the numbers of these sections."""

    failure: Failure
    places: list[int]


def notes(found: list[Section]) -> list[Note]:
    """The cases without a value and all remarks of a page: errors first, then those of most cases."""
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[tuple[int, Failure]]] = {}
    for i, section in enumerate(found):
        for one in (*failures(section), *remarks(section)):
            groups.setdefault((one.status, one.method, _NUMBERS.sub("#", one.reason), one.metrics), []).append((i, one))
    listed = []
    for several in groups.values():
        cases = list(dict.fromkeys(case for _, one in several for case in one.cases))
        listed.append(Note(replace(several[0][1], cases=cases), [i for i, _ in several]))
    order = ("error", "undefined", "excluded", "")
    return sorted(listed, key=lambda note: (order.index(note.failure.status), -len(note.failure.cases)))


def _all_lines(section: Section) -> list[Line]:
    return [*section.lines, *([section.dose] if section.dose else [])]


def _by_reason(line: Line, statuses: tuple[str, ...]) -> list[Failure]:
    cases: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for row in line.cell.settled.rows:
        if row.status in statuses and (row.reason or row.status != "ok"):
            found = cases.setdefault((row.status, printable(row.reason)), ({}, {}))
            found[0][printable(row.case)], found[1][row.metric] = None, None
    name, lead = line.name or "the model", line.cell.case_metric
    return [
        Failure(
            name, "" if s == "ok" else s, reason, list(which), () if s == "ok" or lead in metrics else tuple(metrics)
        )
        for (s, reason), (which, metrics) in cases.items()
    ]


def world_notes(section: Section) -> list[str]:
    """Notes that hold for every cell: the protocol's settings, and the metrics of the world's own truth."""
    names = [m for m in section.some.manifest["metrics"] if m.startswith(OF_THE_WORLD)]
    settings = section.some.manifest.get("settings", {})
    how = " · ".join(f"{name}: {value}" for name, value in settings.items())
    paper = "Published values are the paper's for the full-size network of the same family."
    beside = [paper] if any(line.entry.get("paper") for line in section.lines) else []
    truths = [text for metric in names if (text := _world_note(section, metric))]
    return [*([f"Measured with {how}."] if how else []), *beside, *_orders(section), *truths]


def _orders(section: Section) -> list[str]:
    """Whether methods have the paper's order, for each metric of the whole cell that it reports for a few of them."""
    found = []
    for metric in section.some.manifest.get("derived", ()):
        summaries = {m.name: m.entry["summary"] for m in section.methods if metric in (m.entry["paper"] or {})}
        ours = {name: found[metric] for name, found in summaries.items() if metric in found}  # finished cells only
        paper = {m.name: m.entry["paper"][metric] for m in section.methods if m.name in ours}
        if not 3 <= len(ours) <= MOST_ORDERED or any(summary["mean"] is None for summary in ours.values()):
            continue
        if len(set(paper.values())) < len(paper):  # several variants share one published value
            continue
        order, theirs = sorted(ours, key=lambda m: -ours[m]["mean"]), sorted(paper, key=lambda m: -paper[m])
        shown = " > ".join(
            f"{m} {number(ours[m]['mean'])} {bounds(ours[m]['lo'], ours[m]['hi'])}".strip() for m in order
        )
        verdict = "reproduced" if order == theirs else f"not reproduced ({' > '.join(theirs)})"
        found.append(f"{metric}: {shown}; the paper's order is {verdict}.")
    return found


def _world_note(section: Section, metric: str) -> str:
    cells = [line.cell for line in _all_lines(section)]
    rows = max((cell.of(metric) for cell in cells), key=lambda rows: sum(r.status == "ok" for r in rows))
    found = summarise(row for row in rows if not isinstance(row.value, list))
    if found.mean is None:
        return ""
    _, meaning = section.some.manifest.get("meanings", {}).get(metric, ("", ""))
    text = f"{label(section.world)}: {metric} {number(found.mean)} {bounds(found.lo, found.hi)}".strip()
    return f"{text}: {meaning}." if meaning else f"{text}."


def incomplete(runs: Iterable[Results]) -> str:
    """One line about missing cases, or an empty string."""
    runs = list(runs)
    missing, planned = sum(r.missing for r in runs), sum(r.planned for r in runs)
    bare = [c for r in runs for c in r.cells if not c.record.whole]
    parts = []
    if missing:
        parts.append(f"{missing:,} of {planned:,} cases {'is' if missing == 1 else 'are'} missing")
    if bare:
        names = ", ".join(dict.fromkeys(m for c in bare for m in c.manifest["derived"]))
        parts.append(f"{names} of {count(len(bare), 'cell')} {'is' if len(bare) == 1 else 'are'} not summarised yet")
    return f"incomplete: {'; '.join(parts)}; run the same command again" if parts else ""


def skipped(runs: Iterable[Results]) -> list[str]:
    """The skipped pairs, with reasons."""
    pairs = [pair for run in runs for pair in run.skipped]
    return list(dict.fromkeys(f"{crossed(p)}: {printable(p['reason'])}" for p in pairs))


def chosen(line: Line) -> str:
    """The grid point chosen most often for the cases of a line: `threshold=0.1`, or `threshold=0.1 (15 of 16)`."""
    points = line.entry["chosen"]
    if not points:
        return ""
    first = ", ".join(f"{name}={brief(value)}" for name, value in points[0]["point"].items())
    total = sum(p["cases"] for p in points)
    return first if len(points) == 1 else f"{first} ({points[0]['cases']} of {total})"
