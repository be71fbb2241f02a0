"""Figures of a protocol's own grid: every score against the threshold, and the thresholds that were chosen."""

from html import escape
from typing import Any

from diorama.report.figures import Axis, line_at, text_at
from diorama.report.sections import Line, Section
from diorama.report.shown import brief

#: A panel's width and height, the panels per row, and the most panels.
WIDE, HIGH, ACROSS, MOST = 250, 170, 3, 12


def grid_figure(section: Section) -> str:
    """One panel per line of the table; empty if the protocol has no grid of its own."""
    lines = [line for line in section.lines if line.entry.get("grid", {}).get("curves")][:MOST]
    if not lines:
        return ""
    rows = -(-len(lines) // ACROSS)
    panels = [_panel(line, i % ACROSS * WIDE, 24 + i // ACROSS * HIGH) for i, line in enumerate(lines)]
    head = f'<svg viewBox="0 0 {ACROSS * WIDE + 10} {24 + rows * HIGH}" role="img" xmlns="http://www.w3.org/2000/svg">'
    name = lines[0].entry["grid"]["name"]
    title = f"<title>Scores against {escape(name)}</title>"
    return f"{head}{title}{_legend(lines[0])}{''.join(panels)}</svg>"


def _legend(line: Line) -> str:
    shown, grid = [], line.entry["grid"]
    for i, metric in enumerate(grid["curves"]):
        x = 34 + 110 * i
        shown.append(f'<line x1="{x}" y1="11" x2="{x + 22}" y2="11" class="own {_style(grid, metric, i)}"/>')
        shown.append(f'<text x="{x + 28}" y="15" class="tick">{escape(metric)}</text>')
    return "".join(shown)


def _style(grid: dict[str, Any], metric: str, i: int) -> str:
    return "lead" if metric == grid.get("lead") else f"s{i}"


def _panel(line: Line, left: float, top: float) -> str:
    grid = line.entry["grid"]
    x = Axis(0.0, max(grid["points"]), left + 34, left + WIDE - 14)
    y = Axis(0.0, 1.0, top + HIGH - 42, top + 24)
    parts = [text_at((x.start + x.end) / 2, top + 14, line.name[:28], "label", "middle")]
    for tick in (0.0, 0.5, 1.0):
        parts.append(line_at(x.start, y(tick), x.end, y(tick), "grid"))
        parts.append(text_at(x.start - 5, y(tick) + 4, brief(tick), "tick", "end"))
    parts += [text_at(x(tick), y.start + 15, brief(tick), "tick", "middle") for tick in x.ticks(4)]
    for at in grid["chosen"]:
        parts.append(line_at(x(at), y.start, x(at), y.end, "chosen"))
    chosen = ", ".join(brief(at) for at in grid["chosen"]) or "none"
    parts.append(text_at((x.start + x.end) / 2, y.start + 30, f"{grid['name']}; chosen {chosen}", "tick", "middle"))
    for i, (metric, values) in enumerate(grid["curves"].items()):
        points = zip(grid["points"], values, strict=True)
        path = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" class="own {_style(grid, metric, i)}"/>')
    return "".join(parts)
