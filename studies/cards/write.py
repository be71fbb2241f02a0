"""Writes the cards: Markdown pages for Sphinx, from docstrings, references and docs/measured; computes nothing."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diorama.core.catalogue import Entry, Kind, entries, find, parameters
from diorama.core.references import references
from diorama.core.wording import MARKS, documented, is_line
from diorama.describe import meanings, parameter_lines
from studies.cards.curve import curve

MEASURED = Path(__file__).resolve().parents[2] / "docs" / "measured"
KINDS: tuple[Kind, ...] = ("protocol", "method", "world")
TRACKS = {
    "explain": "Explanations",
    "decompose": "Decompositions",
    "represent": "Representations",
    "concept": "Concept directions",
    "": "Networks",
}


def write_cards(out: Path) -> list[Path]:
    """A page for each component and an index for each kind; files that belong to none are removed."""
    pages: dict[Path, str] = {}
    for kind in KINDS:
        listed = list(entries(kind).values())
        pages |= {out / f"{kind}s" / f"{_file(entry.name)}.md": card(kind, entry) for entry in listed}
        pages[out / f"{kind}s" / "index.md"] = _index(kind, listed)
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # what is unchanged is not built again
            path.write_text(text, encoding="utf-8")
    for path in set(out.glob("*/*.md")) - set(pages):
        path.unlink()
    return list(pages)


def card(kind: Kind, entry: Entry) -> str:
    """The page of one component."""
    target: Any = find(kind, entry.name).target
    found = _read(kind, entry.name)
    blocks = [f"# {_title(entry)}", _md(entry.summary), *_question(target), *_picture(kind, entry.name, found)]
    blocks += [*_text(target), *_metrics(target), *_parameters(kind, entry.name), *_measured(kind, found)]
    blocks += [*_flaws(target), *_example(target, entry.name), *_cited(target)]
    return "\n\n".join(blocks) + "\n"


def _title(entry: Entry) -> str:
    return entry.name.rpartition("/")[2]


def _file(name: str) -> str:
    return name.replace("/", "-")


def _read(kind: str, name: str) -> dict[str, Any]:
    path = MEASURED / f"{kind}s" / f"{_file(name)}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _module_text(target: Any) -> str:
    return inspect.cleandoc(inspect.getmodule(target).__doc__ or "")


def _question(target: Any) -> list[str]:
    question = documented(_module_text(target)).get("asks", "")
    given = {"{methods}": "answers", "{do}": "do", "{Do}": "Do"}
    said = re.sub(r"\{\w+\}", lambda found: given[found[0]], question)
    return [f"**The question.** {_md(said)}"] if said else []


def _text(target: Any) -> list[str]:
    """The formula and what is known of it: the docstrings without the lines that have a table of their own."""
    said = [*_prose(_module_text(target))[1:], *_prose(inspect.getdoc(target) or "")]
    return ["## Formula, variants, what to know", *said] if said else []


def _prose(text: str) -> list[str]:
    """A docstring as Markdown: paragraphs, lists, and formulas where lines are indented."""
    blocks = [block for block in text.split("\n\n") if block.strip() and not is_line(block)]
    return [block for one in blocks for block in _block(one)]


def _block(text: str) -> Iterator[str]:
    lines = text.splitlines()
    if all(line.startswith("    ") for line in lines):
        yield "```text\n" + "\n".join(line[4:] for line in lines) + "\n```"
        return
    start = next((i for i, line in enumerate(lines) if line.startswith("- ")), len(lines))
    if start:
        yield _md(" ".join(line.strip() for line in lines[:start]))
    items: list[str] = []
    for line in lines[start:]:
        if line.startswith("- "):
            items.append(line[2:])
        else:
            items[-1] += " " + line.strip()
    if items:
        yield "\n".join(f"- {_md(item)}" for item in items)


def _metrics(target: Any) -> list[str]:
    """A table of what a protocol measures."""
    said = {name: text for name, text in documented(_module_text(target)).items() if text[:1] in MARKS}
    if not said:
        return []
    rows = [f"| `{name}` | {text[0]} | {_md(text[1:].strip())} |" for name, text in said.items()]
    key = "↑ higher is better, ↓ lower is better, · neither is."
    return ["## What it measures", "\n".join(["| metric | | meaning |", "|---|---|---|", *rows]), key]


def _parameters(kind: Kind, name: str) -> list[str]:
    component = find(kind, name)
    listed, said = parameters(component.target), meanings(component.target)
    if not listed:
        return []
    lines = dict(zip([p.name for p in listed], parameter_lines(component), strict=True))
    rows = [f"| `{_code(line)}` | {_md(said.get(name, ''))} |" for name, line in lines.items()]
    return ["## Parameters", "\n".join(["| parameter | meaning |", "|---|---|", *rows])]


def _picture(kind: str, name: str, found: dict[str, Any]) -> list[str]:
    path = MEASURED / f"{kind}s" / f"{_file(name)}.webp"
    if not path.exists():
        return []
    said = found.get("picture")
    if said:
        panels = ", ".join(said["captions"])
        alt = f"{said['method']} on case {said['case']} ({said['value']}). From left to right: {panels}."
    else:
        alt = f"The first {found['scenes']} scenes of `{found['spec']}`, seed {found['seed']}."
    return [f"```{{figure}} ../../measured/{kind}s/{path.name}\n:class: strip\n\n{_md(alt)}\n```"]


def _measured(kind: str, found: dict[str, Any]) -> list[str]:
    if kind == "method" and found:
        took = f"{found['seconds']:.3g} s" if found["seconds"] is not None else "nothing"
        model = f" with `{found['model']}`" if found["model"] else ""
        return [f"## What a case costs\n\n{took} of one core on `{found['world']}`{model} under `{found['protocol']}`."]
    if kind == "protocol" and not found:
        return [
            "## Truth, chance and planted errors",
            "No small run is kept: it takes data, weights or time of others.",
        ]
    if not found.get("runs"):
        return []
    blocks = ["## Truth, chance and planted errors"]
    for one in found["runs"]:
        blocks += [_scores(one), *([curve(one)] if one["doses"] else [])]
    blocks += _variants(found["runs"])
    verdicts = [
        f"- **{control} {holds}.** {_md(text)}" for one in found["runs"] for control, holds, text in one["verdicts"]
    ]
    blocks += ["\n".join(dict.fromkeys(verdicts))] if verdicts else []
    return [*blocks, f"Measured by this small run, kept in the repository:\n\n```bash\n{found['command']}\n```"]


def _scores(one: dict[str, Any]) -> str:
    names = {"oracle": "*the truth itself*", "random": "*chance*"}
    rows = [
        f"| {names.get(line['control']) or _md(line['method'] or one['model'])} | {_number(line['mean'])} |"
        f" {_ends(line)} | {'–' if line['seconds'] is None else format(line['seconds'], '.2g')} |"
        for line in one["lines"]
    ]
    better = "higher" if one["direction"] == "higher" else "lower"
    head = f"{_md(one['protocol'])}: {one['cases']} cases of `{one['world']}`, {better} is better."
    return "\n".join([head, "", f"| | {one['metric']} | 95 % interval | s/case |", "|---|---:|---:|---:|", *rows])


def _variants(runs: list[dict[str, Any]]) -> list[str]:
    """Published against corrected, on the same answers."""
    if len(runs) < 2:
        return []
    methods = [line["method"] for line in runs[0]["lines"] if not line["control"]]
    heads = [_md(one["protocol"]) for one in runs]
    rows = [" | ".join([f"| {_md(method)}", *(_number(_of(one, method)) for one in runs)]) + " |" for method in methods]
    rule = "|---|" + "---:|" * len(runs)
    return [
        "### Published against corrected, on the same answers",
        "\n".join([f"| | {' | '.join(heads)} |", rule, *rows]),
    ]


def _of(one: dict[str, Any], method: str) -> float | None:
    return next((line["mean"] for line in one["lines"] if line["method"] == method), None)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _ends(line: dict[str, Any]) -> str:
    return "–" if line["lo"] is None else f"{line['lo']:.4f} … {line['hi']:.4f}"


def _flaws(target: Any) -> list[str]:
    """What a component itself says of its limits."""
    said = [text for name in ("ceiling", "no_oracle") if isinstance(text := vars(target).get(name, ""), str) and text]
    return ["## Known limits", "\n".join(f"- {_md(text)}" for text in said)] if said else []


def _example(target: Any, name: str) -> list[str]:
    example = vars(target).get("example") or next(
        (vars(b)["example"] for b in target.__mro__ if vars(b).get("example")), ""
    )
    return [f"## Try it\n\n```bash\n{example.replace('{}', _title_of(name))}\n```"] if example else []


def _title_of(name: str) -> str:
    return name.rpartition("/")[2]


def _cited(target: Any) -> list[str]:
    cited = references(list(target.cite))
    if not cited:
        return []
    entries_ = "\n\n".join(reference.bibtex for reference in cited if reference.bibtex)
    return ["## Cite", "\n".join(f"- {_md(r.text)}" for r in cited), f"```bibtex\n{entries_}\n```"]


def _index(kind: Kind, listed: list[Entry]) -> str:
    """A table of all cards of a kind, methods and protocols by track, and the tree that Sphinx needs."""
    groups: dict[str, list[Entry]] = {}
    for entry in listed:
        groups.setdefault(_group(kind, entry), []).append(entry)
    blocks = [f"# {kind.title()}s", _INTRODUCTIONS[kind]]
    for name, found in groups.items():
        rows = [f"| [{_title(e)}]({_file(e.name)}.md) | {_md(e.summary)} |" for e in found]
        blocks += ([f"## {name}"] if len(groups) > 1 else []) + ["\n".join(["| | |", "|---|---|", *rows])]
    tree = "\n".join(_file(entry.name) for entry in listed)
    return "\n\n".join([*blocks, f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{tree}\n```"]) + "\n"


def _group(kind: Kind, entry: Entry) -> str:
    if kind == "method":
        return TRACKS[entry.name.partition("/")[0]]
    target: Any = find(kind, entry.name).target
    if kind == "protocol":
        return TRACKS[target.track]
    return "Staged: the truth is exact" if target.staged else "Recorded: from files of yours or others"


_SPECIAL = re.compile(r"([\\*_|<>\[\]$#~{}])")
_INTRODUCTIONS = {
    "protocol": "A protocol asks one question of an answer and scores it against the truth. What a score is worth is on each"
    " card: what the truth itself reaches, what chance reaches, and how the score follows a planted error.",
    "method": "A method says something about a model or an image: where a prediction comes from, what is paint and what is"
    " light, which code an image has, which direction a concept has. Yours is one class in a file: {doc}`../../start`.",
    "world": "A world stages scenes, or reads recorded ones, and knows the truth about each.",
}


def _md(text: str) -> str:
    """Prose with what Markdown would take for markup escaped, outside of `code`."""
    parts = re.split(r"(`[^`]*`|\*\w+\*)", " ".join(text.split()))
    return "".join(part if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def _code(text: str) -> str:
    return text.replace("|", "\\|").replace("`", "'")
