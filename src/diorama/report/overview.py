"""The first table of a report: a row per method, a column per protocol; the best in bold, ties with it marked."""

from dataclasses import dataclass

from diorama.report.sections import Line, Section
from diorama.report.shown import NONE, bounds, label
from diorama.report.words import ARROWS, NOUNS, in_words, section_names


@dataclass(frozen=True, slots=True)
class Head:
    """A column: its section's number in the page, a name, and the leading metric with its arrow."""

    section: int
    name: str
    metric: str


@dataclass(frozen=True, slots=True)
class Score:
    """A mean with its interval; `best` of its column, or `tied` with it."""

    text: str
    interval: str = ""
    best: bool = False
    tied: bool = False


@dataclass(frozen=True, slots=True)
class Overview:
    """One table: the sections that judge methods of one track."""

    title: str
    heads: list[Head]
    lines: list[tuple[str, bool, list[Score]]]

    @property
    def ties(self) -> bool:
        """Whether any score is tied with the best."""
        return any(score.tied for _, _, scores in self.lines for score in scores)


def overviews(sections: list[Section]) -> list[Overview]:
    """A table for each track, in the order of the page; sections without lines are left out."""
    groups: dict[str, list[tuple[int, Section]]] = {}
    for i, section in enumerate(sections):
        if section.lines:
            groups.setdefault(section.some.manifest.get("track", "some"), []).append((i, section))
    return [_overview(track, group) for track, group in groups.items()]


def _overview(track: str, group: list[tuple[int, Section]]) -> Overview:
    found = [section for _, section in group]
    named = zip(group, section_names(found), strict=True)
    heads = [Head(i, name, f"{section.metric} {ARROWS[section.direction]}") for (i, section), name in named]
    columns = [{_name(line): _score(section, line) for line in section.lines} for section in found]
    controls = {_name(line): bool(line.control) for section in found for line in section.lines}
    order = sorted(controls, key=lambda name: (_group_rank(name, controls[name]), _mean_rank(name, found)))
    lines = [(name, controls[name], [column.get(name, Score(NONE)) for column in columns]) for name in order]
    noun, n = NOUNS.get(track, "method"), sum(not control for control in controls.values())
    title = in_words(n, noun) if track else in_words(n, "network")
    return Overview(title[:1].upper() + title[1:], heads, lines)


def _name(line: Line) -> str:
    controls = {"oracle": "the truth itself", "random": "chance"}
    return controls.get(line.control) or line.name or label(line.entry["model"])


def _group_rank(name: str, control: bool) -> int:
    return 0 if not control else 1 if name == "the truth itself" else 2


def _mean_rank(name: str, found: list[Section]) -> float:
    """The mean rank of a method over the columns that have it."""
    places = [i for section in found for i, line in enumerate(section.methods) if _name(line) == name]
    return sum(places) / len(places) if places else 0.0


def _score(section: Section, line: Line) -> Score:
    ends = bounds(line.primary["lo"], line.primary["hi"], section.places)
    scored = [m for m in section.methods if m.mean is not None]
    if line.control or len(scored) < 2 or line.mean is None:
        return Score(section.show(line.mean), ends)
    tied = any(gap.other is line and gap.open for gap in section.gaps)
    return Score(section.show(line.mean), ends, line is scored[0], tied)
