"""Writes the cards: Markdown pages for Sphinx, from docstrings, references and docs/measured; computes nothing."""

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
#: What methods of a track answer.
QUESTIONS = {
    "explain": "Where in the image does the network's answer come from?",
    "decompose": "What in the image is paint, and what is light?",
    "represent": "Which few numbers say what is in the image?",
    "concept": "In which direction of a network's features does a concept lie?",
}
#: The protocol whose card says what truth and chance reach where the methods of a track were measured.
JUDGES = {"explain": "single_deletion", "decompose": "lmse", "represent": "mig", "concept": "tcav"}


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
    """The page of one component: all parts of its kind."""
    target: Any = find(kind, entry.name).target
    found, known = _read(kind, entry.name), _known(kind, entry.name)
    blocks = [f"# {_title(entry.name)}", _md(entry.summary), _question(kind, entry.name, target)]
    blocks += [_picture(kind, entry.name, found), _text(kind, target), *_metrics(target), _parameters(kind, entry.name)]
    if kind == "protocol":
        blocks += [*_controls(found), _cost_of_cases(found), _variants(target, found, known)]
    elif kind == "method":
        blocks += [_beside(entry.name, found), _cost(found, "case")]
    else:
        blocks += [_cost(found, "scene")]
    blocks += [_flaws(target, known), *_example(target, entry.name), _cited(target)]
    return "\n\n".join(blocks) + "\n"


def _known(kind: str, name: str) -> dict[str, str]:
    """What docs/known.toml says of a component."""
    found: Any = tomllib.loads((DOCS / "known.toml").read_text(encoding="utf-8"))[kind]
    for part in name.split("/"):
        found = found.get(part, {})
    return {"flaws": found} if isinstance(found, str) else found


def _title(name: str) -> str:
    return name.rpartition("/")[2]


def _file(name: str) -> str:
    return name.replace("/", "-")


def _read(kind: str, name: str) -> dict[str, Any]:
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
    given = {"{methods}": "answers", "{do}": "do", "{Do}": "Do"}
    said = re.sub(r"\{\w+\}", lambda found: given[found[0]], question)
    return f"**The question.** {_md(said)}"


def _truth(name: str, target: Any) -> str:
    """The truth of a world's frames: what its class says, or else that of the world with its defaults."""
    said = next((vars(c)["truth"] for c in target.__mro__ if "truth" in vars(c)), ())
    needed = any(p.default is p.empty for p in parameters(target))
    if not isinstance(said, tuple) and not needed:
        said = build("world", name).object.truth
    if not isinstance(said, tuple):
        return "What the world behind it knows."
    return ", ".join(f"`{one}`" for one in said) + "." if said else "Nothing but the image itself."


def _text(kind: str, target: Any) -> str:
    """The formula and what is known of it: the docstrings without the lines that have a table of their own."""
    said = [*_prose(_module_text(target))[1:], *_prose(inspect.getdoc(target) or "")]
    head = "What it stages, what to know" if kind == "world" else "Formula, variants, what to know"
    return "\n\n".join([f"## {head}", *(said or ["The sentence above is all of it."])])


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
    rows = [[f"`{name}`", text[0], _md(text[1:].strip())] for name, text in said.items()]
    key = "↑ higher is better, ↓ lower is better, · neither is."
    return ["## What it measures", table(["metric", "", "meaning"], rows, text=3), key]


def _parameters(kind: Kind, name: str) -> str:
    component = find(kind, name)
    listed, said = parameters(component.target), meanings(component.target)
    if not listed:
        return "## Parameters\n\nNone."
    lines = dict(zip([p.name for p in listed], parameter_lines(component), strict=True))
    code = {name: line.replace("|", "\\|").replace("`", "'") for name, line in lines.items()}
    rows = [[f"`{line}`", _md(said.get(name, ""))] for name, line in code.items()]
    return f"## Parameters\n\n{table(['parameter', 'meaning'], rows, text=2)}"


def _picture(kind: str, name: str, found: dict[str, Any]) -> str:
    path = MEASURED / f"{kind}s" / f"{_file(name)}.webp"
    if not path.exists():
        return f"```{{note}}\nPicture: none. {_why_not(kind, found)}\n```"
    said = found.get("picture")
    if said:
        panels = ", ".join(said["captions"])
        alt = f"Picture: {said['method']} on case {said['case']} ({said['value']}). From left to right: {panels}."
    else:
        alt = f"Picture: the first {found['scenes']} scenes of `{found['spec']}`, seed {found['seed']}."
    return f"```{{figure}} ../../measured/{kind}s/{path.name}\n:class: strip\n\n{_md(alt)}\n```"


def _why_not(kind: str, found: dict[str, Any]) -> str:
    """Why a card has no picture or number."""
    if kind == "world":
        return "It shows scenes of files that are not in the repository."
    if kind == "method" and not found:
        return "It takes files, weights or objects of yours, or a network that is not bundled."
    return "Its cases are numbers of a network or of many frames at once, not pictures." if found else "No run is kept."


def _controls(found: dict[str, Any]) -> list[str]:
    """What truth, chance and planted errors score, with a figure for each variant that has doses."""
    blocks = ["## Truth, chance and planted errors"]
    if not found:
        return [*blocks, "No small run is kept: it takes data, weights or time of others."]
    for one in found["runs"]:
        blocks += [_scores(one), *([curve(one)] if one["doses"] else [])]
    if not any(line["control"] for one in found["runs"] for line in one["lines"]):
        blocks.append("There is no answer to control: the network itself is judged.")
    told = [verdict for one in found["runs"] for verdict in one["verdicts"]]
    verdicts = [f"- **{control} {holds}.** {_md(text)}" for control, holds, text in told]
    blocks += ["\n".join(dict.fromkeys(verdicts))] if verdicts else []
    if "staged_saw" in found["command"]:
        blocks.append(
            "The labels of this run come from the true shading of staged table tops, written in SAW's layout by"
            " `studies/cards/staged_saw.py`: SAW's own photos are not in the repository."
        )
    return [*blocks, f"Measured by this small run, kept in the repository:\n\n```bash\n{found['command']}\n```"]


def _cost_of_cases(found: dict[str, Any]) -> str:
    """What a case of a protocol costs with each method of its small run."""
    said = [line for one in found.get("runs", [])[:1] for line in one["lines"] if line["seconds"] is not None]
    text = ", ".join(f"{_md(line['method'] or 'the network')} {line['seconds']:.2g} s" for line in said)
    return f"## What a case costs\n\n{f'With its method, in the run above: {text}.' if text else 'Not measured.'}"


def _cost(found: dict[str, Any], what: str) -> str:
    took = found.get("seconds")
    if took is None:
        why = "" if found else " See above why there is no picture either."
        return f"## What a {what} costs\n\nNot measured.{why}"
    if what == "scene":
        return f"## What a scene costs\n\n{took:.2g} s of one core to render, `{found['spec']}`."
    model = f" with `{found['model']}`" if found["model"] else ""
    where = f"on `{found['world']}`{model} under {_md(found['protocol'])}"
    return f"## What a case costs\n\n{took:.2g} s of one core {where}."


def _beside(name: str, found: dict[str, Any]) -> str:
    """A method's score in its small run, beside what truth and chance reach under the same protocol."""
    judge = found["protocol"].partition("(")[0].strip() if found else JUDGES[name.partition("/")[0]]
    head = "## Beside truth and chance\n\n"
    if found.get("mean") is None:
        why = "It has no score on these cases." if found else "Not measured: see the picture's reason above."
        return f"{head}{why} What truth and chance reach is on the card of [{judge}](../protocols/{judge}.md)."
    one = _read("protocol", judge)["runs"][0]
    ends = {line["control"]: line for line in one["lines"] if line["control"]}
    said = " and ".join(
        f"{word} {_number(ends[control]['mean'])}"
        for control, word in (("oracle", "the truth itself"), ("random", "chance"))
        if control in ends
    )
    return (
        f"{head}{found['metric']} {_number(found['mean'])} over {found['cases']} cases, too few to judge. On the card of"
        f" [{judge}](../protocols/{judge}.md), over {one['cases']} cases, {said}."
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


def _variants(target: Any, found: dict[str, Any], known: dict[str, str]) -> str:
    """Published against corrected, on the same answers; or why there is one variant."""
    head = "## Published against corrected"
    runs = found.get("runs", [])
    if len(runs) < 2:
        two = any(p.name == "variant" for p in parameters(target))
        apart = "Two variants, told apart in the text above; no run of both is kept."
        missing = apart if two else "Not written down yet."
        return f"{head}\n\n{_md(known.get('variants', missing))}"
    methods = [line["method"] for line in runs[0]["lines"] if not line["control"]]
    heads = [f"{_md(one['protocol'])}: {one['metric']}" for one in runs]
    means = [{line["method"]: line["mean"] for line in reversed(one["lines"])} for one in runs]
    rows = [[_md(method), *(_number(of_run.get(method)) for of_run in means)] for method in methods]
    said = [_md(known["variants"])] if "variants" in known else []
    return "\n\n".join([head, *said, "On the same answers:", table(["", *heads], rows)])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _flaws(target: Any, known: dict[str, str]) -> str:
    """What is known against a component, and what it says of its own limits."""
    limits = [text for name in ("ceiling", "no_oracle") if isinstance(text := vars(target).get(name, ""), str) and text]
    said = [known.get("flaws", "None is written down yet, which does not mean that there is none."), *limits]
    return "## Known flaws\n\n" + "\n".join(f"- {_md(text)}" for text in said)


def _example(target: Any, name: str) -> list[str]:
    example = next((vars(owner)["example"] for owner in target.__mro__ if vars(owner).get("example")), "")
    return [f"## Try it\n\n```bash\n{example.replace('{}', _title(name))}\n```"] if example else []


def _cited(target: Any) -> str:
    cited = references(list(target.cite))
    if not cited:
        return "## Cite\n\nNo paper: cite the software (`diorama cite RUN`)."
    entries_ = "\n\n".join(reference.bibtex for reference in cited if reference.bibtex)
    listed = "\n".join(f"- {_md(r.text)}" for r in cited)
    return f"## Cite\n\n{listed}\n\n```bibtex\n{entries_}\n```"


def _index(kind: Kind, listed: list[Entry]) -> str:
    """A table of all cards of a kind, methods and protocols by track, and the tree that Sphinx needs."""
    groups: dict[str, list[Entry]] = {}
    for entry in listed:
        groups.setdefault(_group(kind, entry), []).append(entry)
    blocks = [f"# {kind.title()}s", _INTRODUCTIONS[kind]]
    for name, found in groups.items():
        rows = [[f"[{_title(e.name)}]({_file(e.name)}.md)", _md(e.summary)] for e in found]
        blocks += ([f"## {name}"] if len(groups) > 1 else []) + [table(["", ""], rows, text=2)]
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
