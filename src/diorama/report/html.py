"""The report as one HTML file: no network, at most 3 MB, readable without JavaScript and on paper."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from diorama.report.cases import Heat, heat
from diorama.report.curves import grid_figure
from diorama.report.figures import dose_figure, methods_figure
from diorama.report.gallery import Gallery, select
from diorama.report.notes import Failure, failures, incomplete, remarks, skipped, world_notes
from diorama.report.prose import citations, facts, reproduce, summary
from diorama.report.sections import Section, sections
from diorama.report.spread import spreads
from diorama.report.summary import Results
from diorama.report.tables import Table, spread_table, table
from diorama.report.verdicts import Verdict

#: The colours of pages and notebook cells, by day and by night.
COLOURS = {
    "light": "--paper:#fff;--ink:#1d2127;--soft:#5c6570;--rule:#dfe3e8;--wash:#f5f7f9;--good:#00705a;--bad:#b5440b;"
    "--s0:#0072b2;--s1:#b8560a;--s2:#007d5c;--s3:#a8497f;--s4:#7a6a00;--s5:#2f86c4;--s6:#6b4fa0;--control:#6b737d",
    "dark": "--paper:#15181c;--ink:#e4e7ea;--soft:#9aa4ae;--rule:#313840;--wash:#1d2126;--good:#4cc9a4;--bad:#f2995c;"
    "--s0:#56b4e9;--s1:#e69f00;--s2:#2fc79a;--s3:#dd8fba;--s4:#e0d34a;--s5:#8fc7ff;--s6:#b9a3e8;--control:#a0a8b0",
}
LIMIT = 3_000_000
#: Beyond this size the tables of every case are left out, then the figures, to leave room for pictures.
ROOMY = 1_500_000
#: Bytes of pictures in a cell of a notebook, sections that it shows, and pictures of each method.
PICTURES, SHOWN, WORST = 400_000, 4, 2


@dataclass(frozen=True, slots=True)
class Part:
    """A section as the template sees it."""

    id: str
    section: Section
    summary: str
    table: Table | None
    verdicts: list[Verdict]
    notes: list[str]
    failures: list[Failure]
    remarks: list[Failure]
    methods: Markup
    dose: Markup
    grid: Markup
    heat: Heat | None


def html(runs: dict[str, Results], limit: int = LIMIT) -> str:
    """The whole page. The pictures get what the rest leaves of the limit, the worst cases first."""
    found = sections(runs)
    for detail in (2, 1, 0):
        context = _context(runs, found, detail)
        bare = len(_render({**context, "gallery": Gallery({}, 0)}).encode())
        if bare <= min(ROOMY, limit // 2):
            break
    slack = 2_000 + 200 * sum(len(section.lines) for section in found)
    return _render({**context, "gallery": select(found, limit - slack - bare)})


def fragment(results: Results) -> str:
    """What a cell of a notebook shows: tables, verdicts, dose curves and the worst cases."""
    found = sections({"": results})
    first = found[:SHOWN]
    gallery = select(first, PICTURES, WORST)
    parts = [_part(i, section, 1) for i, section in enumerate(first)]
    context = {"parts": parts, "gallery": gallery, "more": len(found) - len(first), "incomplete": incomplete([results])}
    return _template("notebook.html.j2").render(colours=COLOURS, skipped=skipped([results]), **context)


_LEFT_OUT = {2: "", 1: "The tables of every case were", 0: "The figures and the tables of every case were"}


def _context(runs: dict[str, Results], found: list[Section], detail: int) -> dict[str, Any]:
    return {
        "title": _title(found),
        "parts": [_part(i, section, detail) for i, section in enumerate(found)],
        "spreads": [spread_table(spread) for spread in spreads(found)],
        "incomplete": incomplete(runs.values()),
        "skipped": skipped(runs.values()),
        "runs": [(name, facts(results), reproduce(results)) for name, results in runs.items()],
        "citations": citations(found),
        "left_out": _LEFT_OUT[detail],
        "limit": f"{LIMIT / 1e6:.0f} MB",
    }


def _title(found: list[Section]) -> str:
    """The protocols and the worlds, by name alone."""
    protocols = dict.fromkeys(s.protocol.partition("(")[0].strip() for s in found)
    worlds = dict.fromkeys(s.world.partition("(")[0] for s in found)
    return f"{', '.join(protocols)} on {', '.join(worlds)}" if found else "An empty run"


def _part(index: int, section: Section, detail: int) -> Part:
    return Part(
        id=f"s{index + 1}",
        section=section,
        summary=summary(section),
        table=table([section]) if section.lines else None,
        verdicts=section.verdicts,
        notes=world_notes(section),
        failures=failures(section),
        remarks=remarks(section),
        methods=Markup(methods_figure(section) if detail else ""),  # the figures escape what they write
        dose=Markup(dose_figure(section) if detail else ""),
        grid=Markup(grid_figure(section) if detail else ""),
        heat=heat(section) if detail == 2 else None,
    )


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
    """The text, escaped, with places where a narrow column may break it.

    >>> breakable("lmse_shading<")
    Markup('lmse_<wbr>shading&lt;')
    """
    return escape(text).replace("_", Markup("_<wbr>")).replace("/", Markup("/<wbr>"))
