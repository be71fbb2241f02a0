"""Titles and meanings in words: the question of a section, the meanings of its metrics, names without parameters."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diorama.core.errors import count
from diorama.report.sections import Line, Section
from diorama.report.shown import label

#: What the answers of a track are called.
NOUNS = {
    "explain": "explanation",
    "decompose": "decomposition",
    "represent": "representation",
    "concept": "concept direction",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
#: A spec with parameters; the user's own names do not match.
_SPEC = re.compile(r"([\w./:-]+)\(\w+=.*\)", re.DOTALL)
ARROWS = {"higher": "↑", "lower": "↓", "": ""}


def plain(text: str) -> str:
    """A spec without its parameters; other texts, like the user's own names, unchanged.

    >>> plain("lime(samples=200)"), plain("IG (ours)")
    ('lime', 'IG (ours)')
    """
    found = _SPEC.fullmatch(text)
    return found[1] if found else text


def words(text: str) -> str:
    """A component's label without parameters and underscores.

    >>> words("mit_intrinsic(root=/data/mit)")
    'mit intrinsic'
    """
    return plain(label(text)).replace("_", " ")


def names(lines: Sequence[Line]) -> list[str]:
    """The names of lines in a figure: without parameters if they are unique so."""
    short = [plain(line.name) for line in lines]
    return [s if short.count(s) == 1 else line.name for s, line in zip(short, lines, strict=True)]


def in_words(n: int, noun: str) -> str:
    """A noun with its number, in words up to twelve.

    >>> in_words(1, "explanation"), in_words(3, "explanation"), in_words(40, "case")
    ('one explanation', 'three explanations', '40 cases')
    """
    return count(n, noun) if n >= len(_NUMBERS) else f"{_NUMBERS[n]} {noun}" + ("" if n == 1 else "s")


def title(section: Section, with_model: bool = False) -> str:
    """A short title for a section, without parameters."""
    model = f", {words(section.model)}" if with_model and section.model else ""
    return f"{words(section.protocol)} on {words(section.world)}{model}"


def question(section: Section) -> str:
    """The question of the section's protocol, as a title; protocol and world if it declares none."""
    manifest = section.some.manifest
    template, noun = manifest.get("question", ""), NOUNS.get(manifest.get("track", ""), "answer")
    n = len(section.methods)
    if not template:
        return title(section)
    judged = f"the {noun}" if n == 1 else in_words(n, noun) if n else f"{noun}s"
    do = "does" if n == 1 else "do"
    given = {"{methods}": judged, "{do}": do, "{Do}": do.title()}
    return re.sub(r"\{methods\}|\{do\}|\{Do\}", lambda found: given[found[0]], template)


def headline(sections: Sequence[Section]) -> str:
    """The title of a page: its question if there is only one, otherwise the numbers of protocols and methods."""
    if not sections:
        return "An empty run"
    asked = dict.fromkeys(question(section) for section in sections)
    if len(asked) == 1:
        return next(iter(asked))
    methods = {line.name for section in sections for line in section.methods}
    who = in_words(len(methods), "method") if methods else "their controls"
    found = f"What {in_words(len({s.protocol for s in sections}), 'protocol')} say of {who}"
    return found if len({s.protocol for s in sections}) > 1 else found.replace(" say ", " says ")


def section_names(sections: Sequence[Section]) -> list[str]:
    """A name for each section: its protocol, and world, model and run if there are several; with parameters only if
    names would be equal without them.
    """
    columns = [_shortest([section.protocol for section in sections])]
    for texts in zip(*((section.world, section.model, section.run) for section in sections), strict=True):
        short = _shortest([label(text) for text in texts])
        if len(set(short)) > 1:
            columns.append(short)
    return [" · ".join(filter(None, parts)) for parts in zip(*columns, strict=True)]


def _shortest(texts: list[str]) -> list[str]:
    """Specs in words, with their parameters if there are several specs of the same name.

    >>> _shortest(["lmse (grosse)", "lmse(preset=fan)", "si_mse(k=2)"])
    ['lmse (grosse)', 'lmse(preset=fan)', 'si mse']
    """
    whole: dict[str, set[str]] = {}
    for text in texts:
        whole.setdefault(text.partition("(")[0].strip(), set()).add(text)
    return [words(text) if len(whole[text.partition("(")[0].strip()]) == 1 else text for text in texts]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A metric, an arrow for which way is better (empty if neither is), and a sentence."""

    metric: str
    arrow: str
    text: str


def meanings(section: Section) -> list[Meaning]:
    """What the metrics of a table mean, the leading one first."""
    known = section.some.manifest.get("meanings", {})
    shown = [m for m in (section.metric, *section.others) if m in known]
    return [Meaning(m, ARROWS.get(known[m][0], ""), _sentence(known[m][1], known)) for m in shown]


def _sentence(text: str, metrics: Iterable[str]) -> str:
    """A text as a sentence, with a capital unless it begins with the name of a metric.

    >>> _sentence("mean over cases", ["mig"]), _sentence("mig of noise", ["mig"])
    ('Mean over cases.', 'mig of noise.')
    """
    first = text if text.split(" ", 1)[0] in metrics else text[:1].upper() + text[1:]
    return first + ("" if text.endswith(("?", ".")) else ".")


def direction(section: Section, metric: str) -> str:
    """Which values of a metric are better: `higher`, `lower`, or an empty string if neither is or it is not documented."""
    if metric == section.metric:
        return section.direction
    better: Iterable[str] = section.some.manifest.get("meanings", {}).get(metric, ("",))
    return next(iter(better))
