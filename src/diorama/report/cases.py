"""The table of all cases of a section: one row per case, one column per method, each value shaded."""

from bisect import bisect_left
from dataclasses import dataclass

from diorama.core.summary import hardest
from diorama.report.sections import Section
from diorama.report.shown import NONE, decimals, number, printable

#: The most cases in the table; with more methods there is no table.
CASES, METHODS = 40, 12


@dataclass(frozen=True, slots=True)
class Shade:
    """One value and its shade: 0 for the best value of the table, 1 for the worst."""

    text: str
    depth: float = 0.0


@dataclass(frozen=True, slots=True)
class Heat:
    """The table of cases, hardest first, and the number of cases left out."""

    metric: str
    methods: list[str]
    rows: list[tuple[str, list[Shade]]]
    left_out: int


def heat(section: Section) -> Heat | None:
    """The values of every case and method; cases on which methods do worst on average come first."""
    lines = section.methods
    columns = [line.values(line.cell.case_metric) for line in lines]
    cases = hardest(columns, section.direction)
    if not cases or len(lines) > METHODS:
        return None
    worse = 1 if section.direction == "lower" else -1
    shown, places = cases[:CASES], decimals(value for column in columns for value in column.values())
    values = [c[case] for c in columns for case in shown if case in c]
    ranked = sorted(worse * value for value in values)  # shaded by rank, so that one outlier does not pale all others

    def one(value: float | None) -> Shade:
        if value is None:
            return Shade(NONE)
        return Shade(number(value, places), bisect_left(ranked, worse * value) / max(len(ranked) - 1, 1))

    rows = [(printable(case), [one(column.get(case)) for column in columns]) for case in shown]
    return Heat(section.some.case_metric, [line.name for line in lines], rows, len(cases) - len(shown))
