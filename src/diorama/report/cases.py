"""Every case of a section: cases down, methods across, a shade for each value."""

from bisect import bisect_left
from dataclasses import dataclass

from diorama.core.summary import hardest
from diorama.report.sections import Section
from diorama.report.shown import NONE, decimals, number, printable

#: More cases or methods than this are not shown one by one.
CASES, METHODS = 40, 12


@dataclass(frozen=True, slots=True)
class Shade:
    """One value, and how dark it is shaded: 0 for the best value of the table, 1 for the worst."""

    text: str
    depth: float = 0.0


@dataclass(frozen=True, slots=True)
class Heat:
    """The table of cases, hardest first, and how many are left out."""

    metric: str
    methods: list[str]
    rows: list[tuple[str, list[Shade]]]
    left_out: int


def heat(section: Section) -> Heat | None:
    """The values of every case and method, the cases on which methods do worst on average first."""
    lines = section.methods
    columns = [line.values(line.cell.case_metric) for line in lines]
    cases = hardest(columns, section.direction)
    if not cases or len(lines) > METHODS:
        return None
    worse = 1 if section.direction == "lower" else -1
    shown, places = cases[:CASES], decimals(value for column in columns for value in column.values())
    values = [c[case] for c in columns for case in shown if case in c]
    ranked = sorted(worse * value for value in values)  # ranks, so that one outlier does not flatten all the rest

    def one(value: float | None) -> Shade:
        if value is None:
            return Shade(NONE)
        return Shade(number(value, places), bisect_left(ranked, worse * value) / max(len(ranked) - 1, 1))

    rows = [(printable(case), [one(column.get(case)) for column in columns]) for case in shown]
    return Heat(section.some.case_metric, [line.name for line in lines], rows, len(cases) - len(shown))
