"""The report as one HTML file: at most 3 MB, readable offline, without JavaScript and on paper."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from diorama.report.cases import Heat, heat
from diorama.report.conclusion import conclude
from diorama.report.curves import grid_figure
from diorama.report.figures import dose_figure, methods_figure
from diorama.report.gallery import Gallery, select
from diorama.report.notes import Failure, failures, incomplete, notes, skipped, world_notes
from diorama.report.overview import overviews
from diorama.report.prose import citations, facts, reproduce, summary
from diorama.report.sections import Section, sections
from diorama.report.spread import spreads
from diorama.report.summary import Results
from diorama.report.tables import Table, spread_table, table
from diorama.report.words import Meaning, headline, meanings, question, section_names

#: The colours of pages and notebook cells, light and dark.
COLOURS = {
    "light": "--paper:#fff;--ink:#1d2127;--soft:#5c6570;--rule:#dfe3e8;--wash:#f5f7f9;--good:#00705a;--bad:#b5440b;"
    "--s0:#0072b2;--s1:#b8560a;--s2:#007d5c;--s3:#a8497f;--s4:#7a6a00;--s5:#2f86c4;--s6:#6b4fa0;--control:#6b737d",
    "dark": "--paper:#15181c;--ink:#e4e7ea;--soft:#9aa4ae;--rule:#313840;--wash:#1d2126;--good:#4cc9a4;--bad:#f2995c;"
    "--s0:#56b4e9;--s1:#e69f00;--s2:#2fc79a;--s3:#dd8fba;--s4:#e0d34a;--s5:#8fc7ff;--s6:#b9a3e8;--control:#a0a8b0",
}
LIMIT = 3_000_000
#: Beyond this size the tables of all cases are left out, then the figures, to leave room for pictures.
ROOMY = 1_500_000
#: In a notebook: the most bytes of pictures, sections, and cases per section.
PICTURES, SHOWN, WORST = 400_000, 4, 2
#: The most columns of a table; further metrics are in a second one.
WIDE = 10


@dataclass(frozen=True, slots=True)
class Part:
    """The data of a section for the template."""

    id: str
    name: str
    question: str
    section: Section
    summary: str
    meanings: list[Meaning]
    table: Table | None
    more: Table | None
    notes: list[str]
    failures: list[Failure]
    methods: Markup
    dose: Markup
    grid: Markup
    heat: Heat | None


def html(runs: dict[str, Results], limit: int = LIMIT) -> str:
    """The whole page. Pictures, hardest cases first, fill the space that the rest leaves below the limit."""
    found = sections(runs)
    for detail in (2, 1, 0):
        context = _context(runs, found, detail)
        bare = len(_render({**context, "gallery": Gallery({}, 0)}).encode())
        if bare <= min(ROOMY, limit // 2):
            break
    slack = 2_000 + 200 * sum(len(section.lines) for section in found)
    return _render({**context, "gallery": select(found, limit - slack - bare)})


def fragment(results: Results) -> str:
    """The HTML for a notebook cell: tables, verdicts, dose curves and the hardest cases."""
    found = results.sections
    first = found[:SHOWN]
    gallery = select(first, PICTURES, WORST)
    context = {"parts": _parts(first, 1), "gallery": gallery, "more": len(found) - len(first)}
    messages = {"incomplete": incomplete([results]), "skipped": skipped([results])}
    return _template("notebook.html.j2").render(colours=COLOURS, **messages, **context)


_LEFT_OUT = {2: "", 1: "The tables of every case were", 0: "The figures and the tables of every case were"}


def _context(runs: dict[str, Results], found: list[Section], detail: int) -> dict[str, Any]:
    return {
        "title": headline(found),
        "overviews": overviews(found),
        "parts": _parts(found, detail),
        "spreads": [spread_table(spread) for spread in spreads(found)],
        "incomplete": incomplete(runs.values()),
        "remarks": notes(found),
        "conclusion": conclude(runs, found),
        "skipped": skipped(runs.values()),
        "runs": [(name, facts(results), reproduce(results)) for name, results in runs.items()],
        "citations": citations(found),
        "left_out": _LEFT_OUT[detail],
        "limit": f"{LIMIT / 1e6:.0f} MB",
    }


def _parts(found: list[Section], detail: int) -> list[Part]:
    return [_part(i, name, s, detail) for i, (name, s) in enumerate(zip(section_names(found), found, strict=True))]


def _part(index: int, name: str, section: Section, detail: int) -> Part:
    first, more = _split_columns(table([section])) if section.lines else (None, None)
    return Part(
        id=f"s{index + 1}",
        name=name,
        question=question(section),
        section=section,
        summary=summary(section),
        meanings=meanings(section),
        table=first,
        more=more,
        notes=world_notes(section),
        failures=failures(section),
        methods=Markup(methods_figure(section) if detail else ""),  # the figures are escaped already
        dose=Markup(dose_figure(section) if detail else ""),
        grid=Markup(grid_figure(section) if detail else ""),
        heat=heat(section) if detail == 2 else None,
    )


def _split_columns(whole: Table) -> tuple[Table, Table | None]:
    """The table with as many columns as fit on a page of 1,300 pixels, and a second one with the other metrics."""
    metrics = [c for c in whole.columns if c.rank == 3]
    room = WIDE - (len(whole.columns) - len(metrics))
    if len(metrics) <= max(room, 3):
        return whole, None
    over = metrics[max(room, 3) :]
    name = [c for c in whole.columns if c.key == "method"]
    return replace(whole, columns=[c for c in whole.columns if c not in over]), replace(whole, columns=[*name, *over])


def _render(context: dict[str, Any]) -> str:
    return _template("report.html.j2").render(colours=COLOURS, **context)


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("diorama.report", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["breakable"] = breakable
    return environment.get_template(name)


def breakable(text: str) -> Markup:
    """The text, escaped, with places where a line may break; an arrow stays with its metric.

    >>> breakable("lmse_shading<"), breakable("mig ↑") == "mig\\u00a0↑"
    (Markup('lmse_<wbr>shading&lt;'), True)
    """
    kept = escape(text).replace(" ↑", "\u00a0↑").replace(" ↓", "\u00a0↓")
    return kept.replace("_", Markup("_<wbr>")).replace("/", Markup("/<wbr>"))
