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

LIMIT = 3_000_000
#: Beyond this size the tables of every case are left out, then the figures, to leave room for pictures.
ROOMY = 1_500_000


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
    return _template().render(context)


@cache
def _template() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("diorama.report", "templates")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["breakable"] = breakable
    return environment.get_template("report.html.j2")


def breakable(text: str) -> Markup:
    """The text, escaped, with places where a narrow column may break it.

    >>> breakable("lmse_shading<")
    Markup('lmse_<wbr>shading&lt;')
    """
    return escape(text).replace("_", Markup("_<wbr>")).replace("/", Markup("/<wbr>"))
