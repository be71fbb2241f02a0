"""Writes the cards as Markdown pages for Sphinx, from docstrings, references and docs/measured; computes nothing."""

import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diorama.core.catalogue import Entry, Kind, build, entries, find, parameters
from diorama.core.errors import count
from diorama.core.references import references
from diorama.core.wording import MARKS, documented, is_line
from diorama.describe import meanings, parameter_lines
from studies.cards.curve import curve
from studies.page_kit import table

DOCS = Path(__file__).resolve().parents[2] / "docs"
MEASURED = DOCS / "measured"
KINDS: tuple[Kind, ...] = ("protocol", "method", "world")
TRACKS = {
    "explain": "Explanations",
    "decompose": "Decompositions",
    "represent": "Representations",
    "concept": "Concept directions",
    "": "Networks",
}
#: The question that the methods of a track answer.
QUESTIONS = {
    "explain": "Where in the image does the network's answer come from?",
    "decompose": "What in the image is paint, and what is light?",
    "represent": "Which few numbers describe the image?",
    "concept": "In which direction of a network's features does a concept lie?",
}
#: The protocol under which the methods of a track were measured; its card has the scores of truth and chance.
JUDGES = {"explain": "single_deletion", "decompose": "lmse", "represent": "mig", "concept": "tcav"}


def write_cards(out: Path) -> list[Path]:
    """Write a page for each component and an index for each kind, and remove all other pages."""
    pages: dict[Path, str] = {}
    for kind in KINDS:
        listed = list(entries(kind).values())
        pages |= {out / f"{kind}s" / f"{_file(entry.name)}.md": card(kind, entry) for entry in listed}
        pages[out / f"{kind}s" / "index.md"] = _index(kind, listed)
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # Sphinx rebuilds every file that is written
            path.write_text(text, encoding="utf-8")
    for path in set(out.glob("*/*.md")) - set(pages):
        path.unlink()
    return list(pages)


def card(kind: Kind, entry: Entry) -> str:
    """The page of one component, with all parts that its kind has."""
    target: Any = find(kind, entry.name).target
    measured, known = _measured(kind, entry.name), _known(kind, entry.name)
    blocks = [f"# {_title(entry.name)}", _md(entry.summary), _question(kind, entry.name, target)]
    blocks += [
        _picture(kind, entry.name, measured),
        _text(kind, target),
        *_metrics(target),
        _parameters(kind, entry.name),
    ]
    if kind == "protocol":
        blocks += [*_controls(measured), _cost_of_cases(measured), _variants(target, measured, known)]
    elif kind == "method":
        blocks += [_beside(entry.name, measured), _cost(measured, "case")]
    else:
        blocks += [_cost(measured, "scene")]
    blocks += [_flaws(target, known), *_example(target, entry.name), _cited(target)]
    return "\n\n".join(blocks) + "\n"


def _known(kind: str, name: str) -> dict[str, str]:
    """The entry of a component in docs/known.toml."""
    entry: Any = tomllib.loads((DOCS / "known.toml").read_text(encoding="utf-8"))[kind]
    for part in name.split("/"):
        entry = entry.get(part, {})
    return {"flaws": entry} if isinstance(entry, str) else entry


def _title(name: str) -> str:
    return name.rpartition("/")[2]


def _file(name: str) -> str:
    return name.replace("/", "-")


def _measured(kind: str, name: str) -> dict[str, Any]:
    """The numbers that studies/cards/measure.py wrote for a component; empty if there are none."""
    path = MEASURED / f"{kind}s" / f"{_file(name)}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _module_text(target: Any) -> str:
    return inspect.cleandoc(inspect.getmodule(target).__doc__ or "")


def _question(kind: str, name: str, target: Any) -> str:
    if kind == "world":
        return f"**What is known of every scene.** {_truth(name, target)}"
    if kind == "method":
        return f"**The question.** {QUESTIONS[name.partition('/')[0]]}"
    question = documented(_module_text(target)).get("asks", "")
    words = {"{methods}": "answers", "{do}": "do", "{Do}": "Do"}
    return "**The question.** " + _md(re.sub(r"\{\w+\}", lambda match: words[match[0]], question))


def _truth(name: str, target: Any) -> str:
    """The truth of a world's frames: the class's `truth`, or that of the world with its defaults where it is a property."""
    truth = next((vars(c)["truth"] for c in target.__mro__ if "truth" in vars(c)), ())
    needed = any(p.default is p.empty for p in parameters(target))
    if not isinstance(truth, tuple) and not needed:
        truth = build("world", name).object.truth
    if not isinstance(truth, tuple):
        return "The truth of the world that it takes its scenes from."
    return ", ".join(f"`{name}`" for name in truth) + "." if truth else "Nothing but the image itself."


def _text(kind: str, target: Any) -> str:
    """The prose of the module's and the class's docstrings; their tables have sections of their own."""
    blocks = [*_prose(_module_text(target))[1:], *_prose(inspect.getdoc(target) or "")]
    head = "What it stages, what to know" if kind == "world" else "Formula, variants, what to know"
    return "\n\n".join([f"## {head}", *(blocks or ["There is nothing to add to the sentence above."])])


def _prose(text: str) -> list[str]:
    """A docstring as Markdown: paragraphs, lists, and indented lines as formulas."""
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
    """A table of a protocol's metrics."""
    meaning_of = {name: text for name, text in documented(_module_text(target)).items() if text[:1] in MARKS}
    if not meaning_of:
        return []
    rows = [[f"`{name}`", text[0], _md(text[1:].strip())] for name, text in meaning_of.items()]
    key = "↑ higher is better, ↓ lower is better, · neither is."
    return ["## What it measures", table(["metric", "", "meaning"], rows, text=3), key]


def _parameters(kind: Kind, name: str) -> str:
    component = find(kind, name)
    listed, meaning_of = parameters(component.target), meanings(component.target)
    if not listed:
        return "## Parameters\n\nNone."
    code = (line.replace("|", "\\|").replace("`", "'") for line in parameter_lines(component))
    rows = [[f"`{line}`", _md(meaning_of.get(p.name, ""))] for p, line in zip(listed, code, strict=True)]
    return f"## Parameters\n\n{table(['parameter', 'meaning'], rows, text=2)}"


def _picture(kind: str, name: str, measured: dict[str, Any]) -> str:
    path = MEASURED / f"{kind}s" / f"{_file(name)}.webp"
    if not path.exists():
        return f"```{{note}}\nPicture: none. {_why_not(kind, measured)}\n```"
    about = measured.get("picture")
    if about:
        panels = ", ".join(about["captions"])
        alt = f"Picture: {about['method']} on case {about['case']} ({about['value']}). From left to right: {panels}."
    else:
        alt = f"Picture: the first {measured['scenes']} scenes of `{measured['spec']}`, seed {measured['seed']}."
    return f"```{{figure}} ../../measured/{kind}s/{path.name}\n:class: strip\n\n{_md(alt)}\n```"


def _why_not(kind: str, measured: dict[str, Any]) -> str:
    """Why a card has no picture or number."""
    if kind == "world":
        return "It reads files that are not in the repository."
    if kind == "method" and not measured:
        return "It needs files, weights or objects of yours, or a network that is not bundled."
    return "A case is a whole network or many frames at once, not a picture." if measured else "No run is kept."


def _controls(measured: dict[str, Any]) -> list[str]:
    """The scores of truth, chance and planted errors, with a figure for each variant that has doses."""
    blocks = ["## Truth, chance and planted errors"]
    if not measured:
        return [*blocks, "No small run is kept: the protocol needs data or weights that are not in the repository."]
    for one in measured["runs"]:
        blocks += [_scores(one), *([curve(one)] if one["doses"] else [])]
    if not any(line["control"] for one in measured["runs"] for line in one["lines"]):
        blocks.append("There are no controls, because the network itself is judged.")
    judged = [verdict for one in measured["runs"] for verdict in one["verdicts"]]
    verdicts = [f"- **{control} {holds}.** {_md(text)}" for control, holds, text in judged]
    blocks += ["\n".join(dict.fromkeys(verdicts))] if verdicts else []
    if "staged_saw" in measured["command"]:
        blocks.append(
            "The labels of this run come from the true shading of staged table tops, written in SAW's layout by"
            " `studies/cards/staged_saw.py`: SAW's own photos are not in the repository."
        )
    return [*blocks, f"Measured by this small run, kept in the repository:\n\n```bash\n{measured['command']}\n```"]


def _cost_of_cases(measured: dict[str, Any]) -> str:
    """The time of a case of a protocol with each method of its small run."""
    timed = [line for one in measured.get("runs", [])[:1] for line in one["lines"] if line["seconds"] is not None]
    text = ", ".join(f"{_md(line['method'] or 'the network')} {line['seconds']:.2g} s" for line in timed)
    return f"## What a case costs\n\n{f'Including the method, in the run above: {text}.' if text else 'Not measured.'}"


def _cost(measured: dict[str, Any], what: str) -> str:
    seconds = measured.get("seconds")
    if seconds is None:
        why = "" if measured else " The reason is given above, instead of the picture."
        return f"## What a {what} costs\n\nNot measured.{why}"
    if what == "scene":
        return f"## What a scene costs\n\n{seconds:.2g} s of one core to render, `{measured['spec']}`."
    model = f" with `{measured['model']}`" if measured["model"] else ""
    where = f"on `{measured['world']}`{model} under {_md(measured['protocol'])}"
    return f"## What a case costs\n\n{seconds:.2g} s of one core {where}."


def _beside(name: str, measured: dict[str, Any]) -> str:
    """A method's score in its small run, and the scores of truth and chance under the same protocol."""
    judge = measured["protocol"].partition("(")[0].strip() if measured else JUDGES[name.partition("/")[0]]
    head, link = "## Beside truth and chance\n\n", f"[{judge}](../protocols/{judge}.md)"
    if measured.get("mean") is None:
        why = "It has no score on these cases." if measured else "Not measured, for the reason given above."
        return f"{head}{why} The scores of truth and chance are on the card of {link}."
    one = _measured("protocol", judge)["runs"][0]
    means = {line["control"]: line["mean"] for line in one["lines"] if line["control"]}
    scores = " and ".join(
        f"{word} {_number(means[control])}"
        for control, word in (("oracle", "the truth itself"), ("random", "chance"))
        if control in means
    )
    return (
        f"{head}{measured['metric']} {_number(measured['mean'])} over {measured['cases']} cases, too few to judge. On the"
        f" card of {link}, over {one['cases']} cases, {scores}."
    )


def _scores(one: dict[str, Any]) -> str:
    names = {"oracle": "*the truth itself*", "random": "*chance*"}
    rows = []
    for line in one["lines"]:
        name = names.get(line["control"]) or _md(line["method"] or one["model"])
        seconds = "–" if line["seconds"] is None else f"{line['seconds']:.2g}"
        ends = "–" if line["lo"] is None else f"{line['lo']:.4f} … {line['hi']:.4f}"
        rows.append([name, _number(line["mean"]), ends, seconds])
    better = "higher" if one["direction"] == "higher" else "lower"
    head = f"{_md(one['protocol'])}: {count(one['cases'], 'case')} of `{one['world']}`, {better} is better."
    return f"{head}\n\n{table(['', one['metric'], '95 % interval', 's/case'], rows)}"


def _variants(target: Any, measured: dict[str, Any], known: dict[str, str]) -> str:
    """The scores of both variants on the same answers, or the reason why there are none."""
    head = "## Published against corrected"
    runs = measured.get("runs", [])
    if len(runs) < 2:
        two = any(p.name == "variant" for p in parameters(target))
        missing = "The text above explains both variants; no run of both is kept." if two else "Not written down yet."
        return f"{head}\n\n{_md(known.get('variants', missing))}"
    methods = [line["method"] for line in runs[0]["lines"] if not line["control"]]
    heads = [f"{_md(one['protocol'])}: {one['metric']}" for one in runs]
    means = [{line["method"]: line["mean"] for line in reversed(one["lines"])} for one in runs]
    rows = [[_md(method), *(_number(of_run.get(method)) for of_run in means)] for method in methods]
    difference = [_md(known["variants"])] if "variants" in known else []
    return "\n\n".join([head, *difference, "On the same answers:", table(["", *heads], rows)])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _flaws(target: Any, known: dict[str, str]) -> str:
    """The flaws of a component from docs/known.toml, and the limits that its class states."""
    limits = [text for name in ("ceiling", "no_oracle") if isinstance(text := vars(target).get(name, ""), str) and text]
    flaws = [known.get("flaws", "None is written down yet, which does not mean that there is none."), *limits]
    return "## Known flaws\n\n" + "\n".join(f"- {_md(text)}" for text in flaws)


def _example(target: Any, name: str) -> list[str]:
    example = next((vars(owner)["example"] for owner in target.__mro__ if vars(owner).get("example")), "")
    return [f"## Try it\n\n```bash\n{example.replace('{}', _title(name))}\n```"] if example else []


def _cited(target: Any) -> str:
    cited = references(list(target.cite))
    if not cited:
        return "## Cite\n\nNo paper: cite the software (`diorama cite RUN`)."
    bibtex = "\n\n".join(reference.bibtex for reference in cited if reference.bibtex)
    listed = "\n".join(f"- {_md(r.text)}" for r in cited)
    return f"## Cite\n\n{listed}\n\n```bibtex\n{bibtex}\n```"


def _index(kind: Kind, listed: list[Entry]) -> str:
    """Tables of all cards of a kind, in groups, and the toctree that Sphinx needs."""
    groups: dict[str, list[Entry]] = {}
    for entry in listed:
        groups.setdefault(_group(kind, entry), []).append(entry)
    blocks = [f"# {kind.title()}s", _INTRODUCTIONS[kind]]
    for name, members in groups.items():
        rows = [[f"[{_title(e.name)}]({_file(e.name)}.md)", _md(e.summary)] for e in members]
        blocks += ([f"## {name}"] if len(groups) > 1 else []) + [table(["", ""], rows, text=2)]
    tree = "\n".join(_file(entry.name) for entry in listed)
    return "\n\n".join([*blocks, f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{tree}\n```"]) + "\n"


def _group(kind: Kind, entry: Entry) -> str:
    if kind == "method":
        return TRACKS[entry.name.partition("/")[0]]
    target: Any = find(kind, entry.name).target
    if kind == "protocol":
        return TRACKS[target.track]
    return "Staged: the truth is exact" if target.staged else "Recorded: read from files"


_SPECIAL = re.compile(r"([\\*_|<>\[\]$#~{}])")
_INTRODUCTIONS = {
    "protocol": "A protocol asks one question about an answer and scores it against the truth. Each card shows what a score"
    " means: the score of the truth itself, the score of chance, and how the score changes with a planted error.",
    "method": "A method answers a question about a model or an image: where a prediction comes from, what is paint and what"
    " is light, which code an image has, which direction a concept has. Yours is one class in a file: {doc}`../../start`.",
    "world": "A world stages scenes, or reads recorded ones, and knows the truth about each.",
}


def _md(text: str) -> str:
    """Prose with Markdown's special characters escaped, except in `code`."""
    parts = re.split(r"(`[^`]*`|\*\w+\*)", " ".join(text.split()))
    return "".join(part if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))
