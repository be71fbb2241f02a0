"""Tables for a paper: LaTeX with booktabs, best in bold, published values in brackets; notes are comments below."""

from dataclasses import replace

from diorama.report.sections import Section, sections
from diorama.report.shown import NONE, number
from diorama.report.spread import spreads
from diorama.report.tables import Column, Runs, Style, Table, closing, groups, spread_table, table
from diorama.report.words import question, words

_TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "–": "--", "−": "$-$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", "→": r"$\to$", "×": r"$\times$", "·": r"$\cdot$",
    "…": r"\ldots{}", "≈": r"$\approx$", "±": r"$\pm$", "≤": r"$\le$", "≥": r"$\ge$", "|": r"\textbar{}", '"': "''",
}  # fmt: skip
#: Columns that are left out of a paper's table unless they are asked for.
LEFT_OUT = ("cases", "rank", "published", "dose", "chosen", "seconds")


def tex(runs: Runs, style: Style) -> str:
    """A table for every protocol, and one for every set of answers that several protocols have scored."""
    blocks = [_paper(group, style) for group in groups(runs)]
    found = [] if style.columns else [spread_table(spread) for spread in spreads(sections(runs))]
    blocks += [_float(t, f"One set of answers under every protocol: {t.caption.partition(' · ')[2]}.") for t in found]
    last = (f"% {_line(text)}" for text in closing(runs))
    return "\n\n".join(["% needs \\usepackage{booktabs}", *blocks, *last]) + "\n"


def _paper(group: list[Section], style: Style) -> str:
    whole = table(group, style)
    if not style.columns:
        whole = replace(whole, columns=[c for c in whole.columns if c.key not in LEFT_OUT])
    beside = [line.entry.get("paper") or {} for section in group for line in section.lines]
    published = [line.entry["published"] for section in group for line in section.lines]
    columns = [_with_published(c, group[0].metric, beside, published, style) for c in whole.columns]
    known = any(value is not None for value in published)
    caption = f"{question(group[0])} {_sentence(group)}{' Published values in brackets.' if known else ''}"
    return _float(replace(whole, columns=columns), caption)


def _sentence(group: list[Section]) -> str:
    """One sentence with metric, direction, world, model and number of cases."""
    first = group[0]
    where = dict.fromkeys(words(section.world) for section in group)
    models = [name for name in dict.fromkeys(words(section.model) for section in group) if name]
    with_model = f" with {', '.join(models)}" if models else ""
    best = f"mean {first.metric}, {first.direction} is better, best in bold"
    return f"{words(first.protocol)} on {', '.join(where)}{with_model}, {first.some.cases} cases; {best}.".capitalize()


def _with_published(
    column: Column, lead: str, beside: list[dict[str, float]], published: list[float | None], style: Style
) -> Column:
    """The column with published values in brackets after each value."""
    if column.key == lead:
        known: list[float | None] = published
    else:
        known = [one.get(column.key) for one in beside]
    if not any(value is not None for value in known):
        return column
    both = zip(column.cells, known, strict=True)
    cells = [text if value is None else f"{text} ({number(value, _places(text, style))})" for text, value in both]
    return replace(column, cells=cells)


def _places(text: str, style: Style) -> int:
    """The decimals of a number's text."""
    return style.places(len(text.partition(".")[2].partition(" ")[0]) if text != NONE else 4)


def _float(shown: Table, caption: str) -> str:
    """A table of LaTeX, and its notes as comments below."""
    spec = "".join("r" if c.numeric else "l" for c in shown.columns)
    body = []
    for i, control in enumerate(shown.controls):
        if i and control != shown.controls[i - 1]:
            body.append("  \\midrule")
        body.append("  " + " & ".join(_cell(c, i, control) for c in shown.columns) + r" \\")
    head = "  " + " & ".join(_tex(c.head) for c in shown.columns) + r" \\"
    start = ["\\begin{table}", "\\centering", f"\\caption{{{_tex(caption)}}}", f"\\begin{{tabular}}{{{spec}}}"]
    rules = ["  \\toprule", head, "  \\midrule", *body, "  \\bottomrule"]
    notes = [f"% {_line(note)}" for note in shown.notes]
    return "\n".join([*start, *rules, "\\end{tabular}", "\\end{table}", *notes])


def _cell(column: Column, i: int, control: bool) -> str:
    text = _tex(column.cells[i])
    if control and column.key == "method":
        return f"\\emph{{{text}}}"
    if i not in column.best:
        return text
    value, bracket, published = text.partition(" (")
    return f"\\textbf{{{value}}}{bracket}{published}"


def _tex(value: str) -> str:
    return "".join(_TEX.get(c, c if c.isascii() or c.isalpha() else "?") for c in value)


def _line(note: str) -> str:
    """A note on one line, for a comment."""
    return " ".join(note.split())
