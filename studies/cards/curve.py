"""The dose curve of a card: the score against the planted error, with truth and chance as level lines; SVG in Markdown."""

from html import escape
from typing import Any

from diorama.report.figures import Axis, line_at, text_at
from diorama.report.shown import brief

WIDTH, HEIGHT = 560, 240
#: Colours that are legible on white and on black; docs/static/site.css styles the other lines and the text.
INK, BAND = "#3a7bd5", "#3a7bd533"


def curve(one: dict[str, Any]) -> str:
    """The figure, as a block of raw HTML."""
    points = [point for point in one["doses"] if point[1] is not None]
    controls = [(c["control"], c["mean"]) for c in one["lines"] if c["control"] and c["mean"] is not None]
    values = [v for point in points for v in point[1:] if v is not None] + [mean for _, mean in controls]
    lo, hi = min(values), max(values)
    margin = (hi - lo) * 0.08 or 0.1
    x, y = Axis(points[0][0], points[-1][0] or 1.0, 64, WIDTH - 90), Axis(lo - margin, hi + margin, HEIGHT - 46, 14)
    parts = [*_frame(x, y, one), _band(points, x, y)]
    path = " ".join(f"{x(p[0]):.1f},{y(p[1]):.1f}" for p in points)
    parts.append(f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="2"/>')
    parts += [f'<circle cx="{x(p[0]):.1f}" cy="{y(p[1]):.1f}" r="3" fill="{INK}"/>' for p in points]
    for control, mean in controls:
        name = {"oracle": "the truth", "random": "chance"}[control]
        parts.append(line_at(x.start, y(mean), x.end, y(mean), "level"))
        parts.append(text_at(x.end + 6, y(mean) + 4, f"{name} {brief(float(mean))}"))
    label = escape(f"{one['metric']} against the planted error")
    head = f'<svg class="dose" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}"'
    return f"```{{raw}} html\n{head}>{''.join(parts)}</svg>\n```"


def _frame(x: Axis, y: Axis, one: dict[str, Any]) -> list[str]:
    parts = []
    for tick in y.ticks(4):
        parts.append(line_at(x.start, y(tick), x.end, y(tick), "grid"))
        parts.append(text_at(x.start - 8, y(tick) + 4, brief(float(tick)), "", "end"))
    parts += [text_at(x(tick), y.start + 16, brief(float(tick)), "", "middle") for tick in x.ticks(5)]
    name = one["dose_name"] or "dose"
    short = name if len(name) < 76 else name[:74] + "…"
    return [*parts, text_at((x.start + x.end) / 2, y.start + 36, short, "", "middle")]


def _band(points: list[list[Any]], x: Axis, y: Axis) -> str:
    with_interval = [p for p in points if p[2] is not None]
    if not with_interval:
        return ""
    upper = [f"{x(p[0]):.1f},{y(p[3]):.1f}" for p in with_interval]
    lower = [f"{x(p[0]):.1f},{y(p[2]):.1f}" for p in reversed(with_interval)]
    return f'<polygon points="{" ".join(upper + lower)}" fill="{BAND}"/>'
