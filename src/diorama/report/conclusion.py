"""The closing section of a report: what it means and what to do next, from differences, verdicts, failures and gaps."""

import shlex
from dataclasses import dataclass

from diorama.core.errors import count
from diorama.report.differences import Gap
from diorama.report.notes import failures, incomplete
from diorama.report.prose import reproduce
from diorama.report.sections import Section
from diorama.report.shown import bounds, listing, number
from diorama.report.summary import Results
from diorama.report.words import section_names

#: What it means if a control fails.
CONSEQUENCES = {
    "oracle": "Do not rank methods by it here: an answer can score better than the truth.",
    "random": "Their places in the table mean nothing yet: on these cases they are not shown to be better than chance.",
    "dose": "A larger error can score better, so that small differences of this score mean little.",
    "sensitivity": "Differences as small as the planted ones cannot be read from this score.",
}
#: The most pairs of methods that are named.
NAMED = 4


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One line with counts; sentences about real differences, open pairs and failed controls; and what to do next."""

    short: str
    sure: list[str]
    open: list[str]
    failed: list[str]
    todo: list[tuple[str, str]]


def conclude(runs: dict[str, Results], sections: list[Section]) -> Conclusion:
    """The closing of a report."""
    prefixes = [f"{name}: " for name in section_names(sections)] if len(sections) > 1 else [""] * len(sections)
    sure, unsure, failed = [], [], []
    for prefix, section in zip(prefixes, sections, strict=True):
        sure += [prefix + text for text in _real_differences(section)]
        unsure += [prefix + text for text in _open_pairs(section)]
        failed += [f"{prefix}{v.text} {CONSEQUENCES[v.control]}" for v in section.verdicts if v.holds == "fails"]
    return Conclusion(_counts_line(sections, len(failed)), sure, unsure, failed, _todo(runs, sections))


def _counts_line(sections: list[Section], failed: int) -> str:
    """How many differences from the best are real, how many open, and how many controls fail."""
    gaps = [gap for section in sections for gap in section.gaps]
    counted = (
        (sum(gap.real for gap in gaps), "difference", "is real", "are real"),
        (sum(gap.open for gap in gaps), "pair", "is open", "are open"),
        (failed, "control", "fails", "fail"),
    )
    parts = [f"{count(n, noun)} {one if n == 1 else many}" for n, noun, one, many in counted if n]
    return f"{listing(parts)}." if parts else ""


def _real_differences(section: Section) -> list[str]:
    real = [gap for gap in section.gaps if gap.real]
    if not real:
        return []
    rest = "all others" if len(real) == len(section.methods) - 1 > 2 else listing(gap.other.name for gap in real)
    least = min(real, key=lambda gap: gap.mean)
    by = f"by at least {number(least.mean, section.places)} {bounds(least.lo, least.hi, section.places)}"
    single = f"by {number(least.mean, section.places)} {bounds(least.lo, least.hi, section.places)}"
    return [f"{real[0].best.name} is better than {rest}, {single if len(real) == 1 else by} in {section.metric}."]


def _open_pairs(section: Section) -> list[str]:
    unsure = [gap for gap in section.gaps if gap.open]
    sentences = [_undecided(section, gap) for gap in unsure[:NAMED]]
    return sentences + ([f"and {count(len(unsure) - NAMED, 'more pair')}."] if len(unsure) > NAMED else [])


def _undecided(section: Section, gap: Gap) -> str:
    names = f"{gap.best.name} and {gap.other.name} are not told apart"
    if gap.lo is None:
        return f"{names}: {count(gap.n, 'case')} {'gives' if gap.n == 1 else 'give'} no interval."
    difference = f"difference {number(gap.mean, section.places)} {bounds(gap.lo, gap.hi, section.places)}"
    if gap.wanted is None:
        return f"{names}: {difference} over {count(gap.n, 'case')}; for practical purposes they are equal."
    if gap.wanted <= gap.n:
        return f"{names}: {difference} over {count(gap.n, 'case')}, uneven between cases; some more would tell."
    decided = f"if that is the difference, about {gap.wanted:,} would decide"
    return f"{names}: {difference} over {count(gap.n, 'case')}; {decided}."


def _todo(runs: dict[str, Results], sections: list[Section]) -> list[tuple[str, str]]:
    """What to do next, each with its command if there is one."""
    command = _continue_command(next(iter(runs.values()))) if len(runs) == 1 else ""
    found: list[tuple[str, str]] = []
    if missing := incomplete(runs.values()):
        found.append((f"Finish the run: {missing.partition(': ')[2]}.", command))
    if failed := sum(len(f.cases) for section in sections for f in failures(section) if f.status == "error"):
        folder = next(iter(runs.values())).folder
        what = f"Look at {count(failed, 'failed case')}: the notes say why, the tracebacks are in the folder."
        found.append((what, f"ls {shlex.quote(str(folder))}/cells/*/*/errors"))
    if any(v.control == "controls" for section in sections for v in section.verdicts):
        what = "Run the controls: without them, the scores cannot be trusted."
        found.append((what, f"{command} --controls" if command else ""))
    if wanted := _cases_wanted(sections):
        what = f"For the open pairs, run {wanted:,} cases; finished cases are not computed again."
        found.append((what, f"{command} --cases {wanted}" if command else ""))
    if any(v.holds == "fails" and v.control in ("dose", "sensitivity") for s in sections for v in s.verdicts):
        found.append(("Read the score beside its dose curve, or take a protocol whose curve is monotone.", ""))
    if any(v.holds == "fails" and v.control == "random" for s in sections for v in s.verdicts):
        found.append(("Leave methods that are no better than chance out of a ranking, or try them on more cases.", ""))
    return found or [("Nothing is open: cite the protocols below, and keep the run's folder beside the paper.", "")]


def _continue_command(results: Results) -> str:
    """The command that continues the run; empty for a run of live objects."""
    folder = shlex.quote(str(results.folder))
    return "" if reproduce(results)["live"] else f"diorama run {folder}/plan.toml -o {folder}"


def _cases_wanted(sections: list[Section]) -> int | None:
    """How many cases would decide the open pairs, without those that need more than 20 times the cases there are."""
    asked = [
        gap.wanted
        for section in sections
        for gap in section.gaps
        if gap.open and gap.wanted and gap.n < gap.wanted <= 20 * max(gap.n, 1)
    ]
    return _round_up(max(asked)) if asked else None


def _round_up(n: int) -> int:
    """A number rounded up to two digits.

    >>> _round_up(1234), _round_up(87), _round_up(7)
    (1300, 87, 7)
    """
    step = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // step) * step
