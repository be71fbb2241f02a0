"""The protocol spread: one set of answers under every protocol that scored it, with the settings of each protocol."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from diorama.report.sections import Line, Section
from diorama.report.shown import decimals, label, listing, number

#: The settings that a protocol must declare to be in the spread, and the heads of their columns.
SETTINGS = {"encoding": "encoding", "scale": "scale alignment", "window": "window", "mask": "mask", "mean": "mean type"}


@dataclass(frozen=True, slots=True)
class Spread:
    """One method on one world: the heads of a table, a row for each protocol, and notes."""

    title: str
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]


def spreads(sections: Iterable[Section]) -> list[Spread]:
    """A spread for every method that two or more protocols with settings have scored on one world."""
    groups: dict[tuple[str, ...], list[tuple[Section, Line]]] = {}
    for section in sections:
        if SETTINGS.keys() <= section.some.manifest.get("settings", {}).keys():
            for line in section.methods:
                groups.setdefault((section.run, section.world, section.model, line.name), []).append((section, line))
    return [_spread(pairs) for pairs in groups.values() if len(pairs) > 1]


def _spread(pairs: list[tuple[Section, Line]]) -> Spread:
    section, line = pairs[0]
    title = " · ".join(part for part in (section.run, label(section.world), label(section.model), line.name) if part)
    heads = ["protocol", "metric", "mean", "geometric mean", *SETTINGS.values()]
    return Spread(title, heads, [_row(*pair) for pair in pairs], [*_factors(pairs), *_tuned(pairs)])


def _row(section: Section, line: Line) -> list[str]:
    settings, arrow = section.some.manifest["settings"], "↓" if section.direction == "lower" else "↑"
    geometric = geometric_mean(line.values().values()) if section.direction == "lower" else None
    places = 5 if line.mean is not None and 1e-3 <= line.mean < 1 else decimals([line.mean])
    numbers = [number(value, places) for value in (line.mean, geometric)]
    return [section.protocol, f"{section.metric} {arrow}", *numbers, *(settings[name] for name in SETTINGS)]


def geometric_mean(values: Iterable[float]) -> float | None:
    """exp of the mean logarithm; None if there is no value, or one is not positive.

    >>> geometric_mean([1.0, 4.0]), geometric_mean([0.0])
    (2.0, None)
    """
    found = list(values)
    return math.exp(sum(map(math.log, found)) / len(found)) if found and min(found) > 0 else None


def _factors(pairs: list[tuple[Section, Line]]) -> list[str]:
    """By what factor the means of metrics with the same name differ."""
    named: dict[str, list[float]] = {}
    for section, line in pairs:
        if line.mean:
            named.setdefault(section.metric, []).append(line.mean)
    several = {name: values for name, values in named.items() if len(values) > 1 and min(values) > 0}
    sentence = "{} protocols call their number {}: the largest is {:.1f} times the smallest."
    return [sentence.format(len(values), name, max(values) / min(values)) for name, values in several.items()]


def _tuned(pairs: list[tuple[Section, Line]]) -> list[str]:
    """A note if the answers may differ: a tuned method answers each protocol with the parameters best for it."""
    tuned = [section.protocol for section, line in pairs if line.entry["chosen"]]
    if not tuned:
        return []
    return [f"Parameters were chosen separately for {listing(tuned)}, so answers may differ; give them to compare."]
