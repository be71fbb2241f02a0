"""The summary of a section in sentences, the facts of a run, its citations and the command to repeat it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from diorama.core.errors import count
from diorama.report.differences import reach
from diorama.report.notes import failures
from diorama.report.paired import paired
from diorama.report.sections import Section
from diorama.report.shown import bounds, chance, label, listing, number, seconds
from diorama.report.summary import Results


def summary(section: Section) -> str:
    """What was run in a section and the results, in a few sentences."""
    return " ".join(s for s in (_setup(section), _best_method(section), _controls(section), _failed(section)) if s)


def _setup(section: Section) -> str:
    where = f"{label(section.world)} with {label(section.model)}" if section.model else label(section.world)
    who = count(len(section.methods), "method") if section.methods else "the controls alone"
    if section.some.manifest.get("track", "some") == "":
        who = "the model itself"
    verb = "was" if len(section.methods) == 1 else "were"
    cases = max((line.cell.cases for line in section.lines), default=section.some.cases)
    better = f"{section.direction} is better"
    sentence = f"{who} {verb} judged by {section.protocol} on {where}, {count(cases, 'case')} each; {better}."
    return sentence[0].upper() + sentence[1:]


def _best_method(section: Section) -> str:
    ranked = [line for line in section.methods if line.mean is not None]
    if not ranked:
        return "No method has a value." if section.methods else ""
    best = ranked[0]
    lo, hi = best.primary["lo"], best.primary["hi"]
    sure = f" (95 % interval {section.show(lo)} to {section.show(hi)})" if lo is not None else ""
    who = f"Best is {best.name} with a mean" if best.name else "The mean"
    sentence = f"{who} {section.metric} {'of' if best.name else 'is'} {section.show(best.mean)}{sure}"
    return f"{sentence}{_lead(section)}." if len(ranked) > 1 else f"{sentence}."


def _lead(section: Section) -> str:
    """How far the best method is ahead of the second, over the cases that both have."""
    best, second = [line for line in section.methods if line.mean is not None][:2]
    gap = paired(second.values(), best.values(), section.direction, flips=False)
    if gap.mean is None or gap.lo is None or gap.hi is None or gap.p is None:
        return f", followed by {second.name}"
    least, most = reach(section)
    wins = f"better on {gap.better} of {count(gap.n, 'shared case')}"
    if gap.lo <= 0 <= gap.hi:
        low, high = (min(max(end, least), most) for end in (gap.lo, gap.hi))
        difference = f"difference {number(gap.mean, section.places)} {bounds(low, high, section.places)}"
        return f", but it is not told apart from {second.name}: {difference}, {wins}"
    return f", ahead of {second.name} by {number(abs(gap.mean), section.places)}, {wins} (p {chance(gap.p)})"


def _controls(section: Section) -> str:
    found = section.verdicts
    if not found:
        return ""
    failed = [v for v in found if v.holds == "fails"]
    if failed:
        return f"Of {count(len(found), 'control')}, {len(failed)} failed: " + " ".join(v.text for v in failed)
    if all(v.holds == "unknown" for v in found):
        return found[0].text
    return "All controls hold." if all(v.holds == "holds" for v in found) else "The controls that could be judged hold."


def _failed(section: Section) -> str:
    statuses: dict[str, int] = {}
    for failure in failures(section):
        statuses[failure.status] = statuses.get(failure.status, 0) + len(failure.cases)
    if not statuses:
        return "Every computed case has a value."
    counts = listing(f"{n:,} {_STATUS[status]}" for status, n in statuses.items())
    return f"Without a value, and outside the means: {counts}."


_STATUS = {"error": "failed", "undefined": "undefined", "excluded": "excluded by the protocol"}


def facts(results: Results) -> list[tuple[str, str]]:
    """What was run, where and when, as names and values."""
    run, cells = results.run, results.cells
    spent = sum(row.seconds for cell in cells for row in cell.rows if row.metric == cell.case_metric)
    computed = f"{results.planned - results.missing:,} computed"
    found = [
        ("cells", f"{len(cells)} with {count(results.planned, 'case')} in all, {computed}"),
        ("seeds", ", ".join(dict.fromkeys(str(c.manifest.get("depends_on", {}).get("seed", "–")) for c in cells))),
        ("computing time", f"{seconds(spent)}, summed over cases"),
        ("last row written", _last(results)),
        ("diorama", str(run.get("diorama", "–"))),
        ("python", str(run.get("python", "–"))),
        ("libraries", ", ".join(_libraries(results)) or "–"),
        ("machine", str(run.get("system", "–"))),
    ]
    return [("run", str(results.folder)), *found]


def _last(results: Results) -> str:
    """When the newest file of rows was written; not the current time, so that a report depends on its run only."""
    times = [path.stat().st_mtime for c in results.cells for path in (c.folder / "rows").glob("*.jsonl")]
    return f"{datetime.fromtimestamp(max(times), UTC):%Y-%m-%d %H:%M} UTC" if times else "–"


def _libraries(results: Results) -> list[str]:
    """The libraries that the cells' keys name, with their versions."""
    found: dict[str, str] = {}
    for cell in results.cells:
        for part in cell.manifest.get("depends_on", {}).values():
            found |= part.get("libraries", {}) if isinstance(part, dict) else {}
    return [f"{name} {version}" for name, version in sorted(found.items())]


def citations(found: Iterable[Section]) -> list[tuple[str, str]]:
    """The references of everything that was run, each as text and BibTeX (empty if unknown)."""
    cited: dict[str, str] = {}
    for section in found:
        for line in section.lines:
            cited |= dict(zip(line.cell.manifest.get("cite", []), line.cell.manifest.get("bibtex", []), strict=False))
    return list(cited.items())


def reproduce(results: Results) -> dict[str, Any]:
    """The command that repeats the run, its plan, and whether it has live objects, which no command can make."""
    command = f"diorama run plan.toml -o {results.folder.name or 'run'}"
    return {"command": command, "plan": results.plan, "live": '"live:' in results.plan}
