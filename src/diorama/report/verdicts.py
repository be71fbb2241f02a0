"""Verdicts: whether a protocol's controls hold, and so how far its numbers can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from diorama.core.errors import count
from diorama.metrics.intervals import LEAST, interval
from diorama.report.paired import paired
from diorama.report.shown import brief, listing

if TYPE_CHECKING:
    from diorama.report.sections import Line, Section

Holds = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One control: whether it holds, and one sentence that says why."""

    control: str
    holds: Holds
    text: str


def verdicts(section: Section) -> list[Verdict]:
    """The verdicts of a section; one that says so if no controls were run."""
    if section.some.manifest.get("track", "some") == "":  # the protocol judges the model: there are no controls
        return []
    none = "No controls were run: add --controls to the same command, controls=True in Python."
    return [*_oracle(section), *_chance(section), *_dose(section)] or [Verdict("controls", "unknown", none)]


def _oracle(section: Section) -> list[Verdict]:
    line = section.control("oracle")
    if line is None:
        return []
    if line.mean is None:
        return [Verdict("oracle", "unknown", f"The oracle has no value: {why(line)}.")]
    above = [m for m in section.methods if m.mean is not None and section.better(m.mean, line.mean)]
    score = section.score(line)
    if above:
        names = listing(f"{m.name} ({section.show(m.mean)})" for m in above)
        text = f"The true answer scores {score}, and {names} scores better than the truth."
        return [Verdict("oracle", "fails", text)]
    best = section.some.manifest["range"][0 if section.direction == "lower" else 1]
    short = "" if abs(line.mean - best) < 1e-6 else f" It does not reach the ideal value {brief(float(best))}."
    return [Verdict("oracle", "holds", f"The true answer scores {score}, and no method scores better.{short}")]


def why(line: Line) -> str:
    """Why a line has no mean."""
    rows = line.cell.of(line.cell.metric) or line.cell.settled.rows
    reasons = dict.fromkeys(row.reason for row in rows if row.status != "ok")
    return "; ".join(reasons) or "no case has been computed"


def _chance(section: Section) -> list[Verdict]:
    line = section.control("random")
    if line is None:
        return []
    if line.mean is None:
        return [Verdict("random", "unknown", f"The random answer has no value: {why(line)}.")]
    scored = [m for m in section.methods if m.mean is not None]
    score = f"Chance scores {section.score(line)}"
    if not scored:
        return [Verdict("random", "unknown", f"{score}; there is no method to compare it with.")]
    level = [m for m in scored if not better_than_chance(section, m, line)]
    if not level:
        return [Verdict("random", "holds", f"{score}; every method is reliably better, paired over cases.")]
    names = listing(f"{m.name} ({section.score(m)})" for m in level)
    return [Verdict("random", "fails", f"{score}. Not reliably better than chance: {names}.")]


def better_than_chance(section: Section, method: Line, random: Line) -> bool:
    """Whether the 95 % interval of the paired difference (the difference, if there is no interval) is on the good side of 0.

    A metric of the whole cell has no pairs: the two intervals must not overlap.
    """
    a, b = method.primary, random.primary
    if method.cell.derived and a["lo"] is not None and b["lo"] is not None:
        return a["hi"] < b["lo"] if section.direction == "lower" else a["lo"] > b["hi"]
    gap = paired(random.values(), method.values(), section.direction, flips=False)
    worst = gap.hi if section.direction == "lower" else gap.lo
    worst = gap.mean if worst is None else worst
    return worst is not None and (worst < 0 if section.direction == "lower" else worst > 0)


@dataclass(frozen=True, slots=True)
class Curve:
    """A dose–response curve of the leading metric, at the doses that have a mean."""

    doses: list[float]
    points: list[dict[str, Any]]
    columns: list[dict[str, float]]

    @property
    def means(self) -> list[float]:
        """The mean at every dose."""
        return [point["mean"] for point in self.points]


def dose_curve(section: Section) -> Curve | None:
    """The section's curve in the order of the doses; None if fewer than two doses have a value."""
    if section.dose is None or section.metric not in section.dose.entry["curve"]:
        return None
    rows = [row for row in section.dose.cell.of(section.metric) if isinstance(row.value, list)]
    points = section.dose.entry["curve"][section.metric]
    columns = [{row.case: row.value[i] for row in rows} for i in range(len(points))]  # type: ignore[index]
    order = sorted(zip(section.dose.entry["doses"], points, columns, strict=True), key=lambda item: item[0])
    kept = [item for item in order if item[1]["mean"] is not None]
    return Curve([k[0] for k in kept], [k[1] for k in kept], [k[2] for k in kept]) if len(kept) > 1 else None


def _dose(section: Section) -> list[Verdict]:
    if section.dose is None:
        return []
    curve = dose_curve(section)
    if curve is None:
        return [Verdict("dose", "unknown", f"The dose–response curve has no values: {why(section.dose)}.")]
    return [_monotone(section, curve), _separates(section, curve)]


def _monotone(section: Section, curve: Curve) -> Verdict:
    """Whether every larger dose scores worse than the one before."""
    turns = []
    for i in range(len(curve.doses) - 1):
        a, b = curve.means[i], curve.means[i + 1]
        if section.better(b, a):
            sure = "" if _certain(curve, i) else ", within the noise between cases"
            turns.append(f"at dose {brief(curve.doses[i + 1])} ({section.show(a)} → {section.show(b)}{sure})")
    if turns:
        return Verdict("dose", "fails", f"Not monotone: a larger error scores better {listing(turns)}.")
    steps = zip(curve.doses[1:], curve.means[:-1], curve.means[1:], strict=True)
    flat = [brief(dose) for dose, before, after in steps if not section.better(before, after)]
    still = f" It does not move at dose {listing(flat)}." if flat else ""
    ends = f"{section.show(curve.means[0])} at dose {brief(curve.doses[0])}, {section.show(curve.means[-1])} at dose"
    text = f"Monotone: the score worsens with the dose, {ends} {brief(curve.doses[-1])}.{still}"
    return Verdict("dose", "holds", text)


def _certain(curve: Curve, i: int) -> bool:
    """Whether the step from dose i to the next has the same sign over the whole interval of paired differences."""
    import numpy as np

    a, b = curve.columns[i], curve.columns[i + 1]
    gaps = np.array([b[case] - a[case] for case in a if case in b], float)
    if len(gaps) < LEAST:
        first, second = curve.points[i], curve.points[i + 1]
        return first["lo"] is None or _apart(first, second) or _apart(second, first)
    return (interval(gaps).p or 1.0) <= 0.05


def _separates(section: Section, curve: Curve) -> Verdict:
    """Whether any dose has an interval that does not overlap that of the first dose; the text names the smallest."""
    first = curve.points[0]
    if first["lo"] is None:
        return Verdict("sensitivity", "unknown", "Fewer than three cases give no intervals that could separate.")
    name = section.some.manifest["dose_name"]
    meaning = f" ({name})" if name else ""
    for dose, seen in zip(curve.doses[1:], curve.points[1:], strict=True):
        if _apart(first, seen) if section.direction == "lower" else _apart(seen, first):
            text = f"The smallest dose told apart from {brief(curve.doses[0])} is {brief(dose)}{meaning}."
            return Verdict("sensitivity", "holds", text)
    text = f"No dose is told apart from {brief(curve.doses[0])}{meaning}: with {count(first['n_ok'], 'case')} this"
    return Verdict("sensitivity", "fails", f"{text} metric cannot tell a small error from none.")


def _apart(low: dict[str, Any], high: dict[str, Any]) -> bool:
    """Whether both intervals exist and the first is below the second."""
    return low["hi"] is not None and high["lo"] is not None and low["hi"] < high["lo"]


def equivalent_dose(curve: Curve, value: float, direction: str) -> float | None:
    """The smallest dose at which the curve reaches a value, interpolated; None if it never does.

    >>> curve = Curve([0.0, 1.0], [{"mean": 0.0}, {"mean": 4.0}], [{}, {}])
    >>> equivalent_dose(curve, 1.0, "lower"), equivalent_dose(curve, 5.0, "lower")
    (0.25, None)
    """
    sign = 1 if direction == "lower" else -1
    means, wanted = [sign * m for m in curve.means], sign * value
    if wanted <= means[0]:
        return curve.doses[0]
    for i in range(len(means) - 1):
        if means[i] <= wanted <= means[i + 1] and means[i + 1] > means[i]:
            share = (wanted - means[i]) / (means[i + 1] - means[i])
            return curve.doses[i] + share * (curve.doses[i + 1] - curve.doses[i])
    return None


def like_doses(section: Section) -> dict[str, str]:
    """For each method the dose that scores the same, as a short text: `0.57` or `> 1`."""
    curve = dose_curve(section)
    if curve is None:
        return {}
    found = {}
    for line in section.methods:
        if line.mean is not None:
            dose = equivalent_dose(curve, line.mean, section.direction)
            found[line.entry["key"]] = f"> {brief(curve.doses[-1])}" if dose is None else f"{dose:.2f}"
    return found
