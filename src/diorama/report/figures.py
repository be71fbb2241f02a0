"""Inline SVG figures: the dose–response curve, and the methods with their intervals and cases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from diorama.report.sections import Line, Section
from diorama.report.shown import brief, number
from diorama.report.verdicts import Curve, dose_curve, equivalent_dose

#: Number of colour classes in the stylesheet: Okabe and Ito's colours, which suit all kinds of colour vision.
SERIES = 7
WIDTH = 760


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear map from values to pixels, with round ticks."""

    lo: float
    hi: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.lo) / (self.hi - self.lo) * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values inside the axis."""
        step = nice_step((self.hi - self.lo) / wanted)
        first = math.ceil(self.lo / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.hi / step + 1e-9) + 1)]


def nice_step(rough: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below.

    >>> nice_step(0.013), nice_step(30)
    (0.02, 50.0)
    """
    power = 10.0 ** math.floor(math.log10(rough))
    return next(round(m * power, 12) for m in (1, 2, 2.5, 5, 10) if m * power >= rough * (1 - 1e-9))


def kept_apart(wanted: Sequence[float], gap: float, lo: float, hi: float) -> list[float]:
    """Positions as near as possible to the wanted ones, at least `gap` apart and inside [lo, hi], in the same order.

    >>> kept_apart([10.0, 12.0, 50.0], 10, 0, 100)
    [6.0, 16.0, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[float]] = []  # [sum of (wanted − offset), size]: a block is placed at the mean of its members
    for i in order:
        blocks.append([wanted[i], 1])
        while len(blocks) > 1 and _top(blocks[-2], gap, lo, hi) + blocks[-2][1] * gap > _top(blocks[-1], gap, lo, hi):
            total, size = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total - size * blocks[-1][1] * gap, blocks[-1][1] + size]
    placed = [_top(b, gap, lo, hi) + k * gap for b in blocks for k in range(int(b[1]))]
    return [placed[order.index(i)] for i in range(len(wanted))]


def _top(block: list[float], gap: float, lo: float, hi: float) -> float:
    return max(lo, min(block[0] / block[1], hi - (block[1] - 1) * gap))


def text_at(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    """A text of the figure, escaped."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def line_at(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight line of the figure."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _svg(height: float, title: str, desc: str, parts: list[str]) -> str:
    head = f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" xmlns="http://www.w3.org/2000/svg">'
    return f"{head}<title>{escape(title)}</title><desc>{escape(desc)}</desc>{''.join(parts)}</svg>"


def shorten(name: str, limit: int) -> str:
    """The name; if it is too long, its middle is cut out: names of one family differ at their ends."""
    if len(name) <= limit:
        return name
    kept = limit - 1
    return name[: kept - kept // 2] + "…" + name[-(kept // 2) :]


def tick_label(value: float, axis: Axis, wanted: int = 5) -> str:
    """A tick's number, with the decimals that its step needs."""
    step = nice_step((axis.hi - axis.lo) / wanted)
    return number(value, max(0, -math.floor(math.log10(step) + 1e-9) + (1 if brief(step).endswith("25") else 0)))


def colours(section: Section) -> dict[str, str]:
    """The colour class of each line by cell key; the same in every figure of the section."""
    found = {line.entry["key"]: f"s{i % SERIES}" for i, line in enumerate(section.methods)}
    return {**found, **{line.entry["key"]: "control" for line in section.lines if line.control}}


def dose_figure(section: Section) -> str:
    """The score against the planted error, with every method as a horizontal line labelled at the right."""
    curve = dose_curve(section)
    if curve is None or curve.doses[0] == curve.doses[-1]:
        return ""
    scored = [line for line in section.lines if line.mean is not None and line.control != "oracle"]
    inside = [line for line in scored if line.control != "random" or _near(line.mean, curve, section)]
    values = [v for p in curve.points for v in (p["mean"], p["lo"], p["hi"]) if v is not None]
    values += [line.mean for line in inside if line.mean is not None]
    lo, hi = _padded(min(values), max(values))
    height, right = 380.0, WIDTH - 218.0
    x, y = Axis(curve.doses[0], curve.doses[-1], 64, right), Axis(lo, hi, height - 52, 22)
    parts = [*_frame(x, y, section.metric, section.some.manifest["dose_name"] or "dose"), _band(curve, x, y)]
    parts += _levels(section, inside, curve, x, y)
    parts += [_trace(curve, x, y), *_outside(section, [s for s in scored if s not in inside], x)]
    desc = "; ".join(f"dose {brief(d)}: {section.show(m)}" for d, m in zip(curve.doses, curve.means, strict=True))
    return _svg(height, f"{section.metric} against the planted error", desc, parts)


def _near(value: float | None, curve: Curve, section: Section) -> bool:
    """Whether a control is near enough to be drawn without squeezing the curve."""
    means = [*curve.means, *(m.mean for m in section.methods if m.mean is not None)]
    reach = max(means) - min(means)
    return value is not None and min(means) - 0.5 * reach <= value <= max(means) + 0.5 * reach


def _padded(lo: float, hi: float) -> tuple[float, float]:
    """The range with a margin; it ends at zero if zero is near."""
    room = (hi - lo) * 0.06 or abs(hi) * 0.1 or 1.0
    return (0.0 if 0 <= lo < 4 * room else lo - room), (0.0 if lo < 0 and -4 * room < hi <= 0 else hi + room)


def _frame(x: Axis, y: Axis, up: str, along: str) -> list[str]:
    parts = []
    for tick in y.ticks():
        parts.append(line_at(x.start, y(tick), x.end, y(tick), "grid"))
        parts.append(text_at(x.start - 8, y(tick) + 4, tick_label(tick, y), "tick", "end"))
    for tick in x.ticks():
        parts.append(line_at(x(tick), y.start, x(tick), y.start + 5, "axis"))
        parts.append(text_at(x(tick), y.start + 19, tick_label(tick, x), "tick", "middle"))
    parts.append(line_at(x.start, y.start, x.end, y.start, "axis"))
    parts.append(text_at(x.start - 8, y.end - 10, up, "name", "start"))
    parts.append(text_at((x.start + x.end) / 2, y.start + 40, shorten(along, 80), "name", "middle"))
    return parts


def _band(curve: Curve, x: Axis, y: Axis) -> str:
    sure = [(d, p) for d, p in zip(curve.doses, curve.points, strict=True) if p["lo"] is not None]
    if not sure:
        return ""
    upper = [f"{x(d):.1f},{y(p['hi']):.1f}" for d, p in sure]
    lower = [f"{x(d):.1f},{y(p['lo']):.1f}" for d, p in reversed(sure)]
    return f'<polygon points="{" ".join(upper + lower)}" class="band"/>'


def _trace(curve: Curve, x: Axis, y: Axis) -> str:
    spots = [(x(d), y(m)) for d, m in zip(curve.doses, curve.means, strict=True)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in spots)
    dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.2" class="dot"/>' for a, b in spots)
    return f'<polyline points="{path}" class="curve"/>{dots}'


def _levels(section: Section, lines: list[Line], curve: Curve, x: Axis, y: Axis) -> list[str]:
    """A horizontal line per method, a ring where it meets the curve, and a label with the dose that scores the same."""
    heights = [y(line.mean) for line in lines if line.mean is not None]
    spots, classes = kept_apart(heights, 17, y.end, y.start - 4), colours(section)
    parts = []
    for line, height, spot in zip(lines, heights, spots, strict=True):
        style = classes[line.entry["key"]]
        parts.append(line_at(x.start, height, x.end, height, f"level {style}"))
        parts.append(f'<path d="M{x.end:.1f} {height:.1f} L{x.end + 14:.1f} {spot:.1f}" class="leader {style}"/>')
        dose = equivalent_dose(curve, line.mean or 0.0, section.direction)
        if dose is not None:
            parts.append(f'<circle cx="{x(dose):.1f}" cy="{height:.1f}" r="5" class="ring {style}"/>')
        like = f" ≈ {dose:.2f}" if dose is not None else f" > {brief(curve.doses[-1])}"
        parts.append(text_at(x.end + 18, spot + 4, f"{shorten(line.name, 16)}{like}", f"label {style}"))
    return parts


def _outside(section: Section, lines: list[Line], x: Axis) -> list[str]:
    """A text that names the controls beyond the frame."""
    if not lines:
        return []
    arrow = "↑" if section.direction == "lower" else "↓"
    names = ", ".join(f"{line.name} {section.show(line.mean)}" for line in lines)
    return [text_at(x.end, 12, f"{arrow} off the scale: {names}", "tick", "end")]


def methods_figure(section: Section) -> str:
    """Each method's mean and interval, with every case as a faint dot and the published value as a triangle."""
    lines = [line for line in section.lines if line.mean is not None]
    methods = [line for line in lines if not line.control]
    if not methods:
        return ""
    shown = [*methods, *(line for line in lines if line.control == "oracle")]
    within = [v for line in shown for v in (_extent(line) if not line.control else [line.mean]) if v is not None]
    lo, hi = _padded(min(within), max(within))
    left, step = 190.0, 30.0
    height = 30 + step * len(lines) + 46
    x, classes = Axis(lo, hi, left, WIDTH - 70), colours(section)
    parts = []
    for tick in x.ticks(6):
        parts.append(line_at(x(tick), 22, x(tick), height - 46, "grid"))
        parts.append(text_at(x(tick), height - 28, tick_label(tick, x, 6), "tick", "middle"))
    along = f"{section.metric}, {section.direction} is better"
    parts.append(text_at((x.start + x.end) / 2, height - 8, along, "name", "middle"))
    for i, line in enumerate(lines):
        parts += _method(section, line, x, 36 + step * i, classes[line.entry["key"]])
    desc = "; ".join(f"{line.name} {section.score(line)}" for line in lines)
    return _svg(height, f"{section.metric} of every method", desc, parts)


def _extent(line: Line) -> list[float]:
    ends = [line.mean, line.primary["lo"], line.primary["hi"], line.entry["published"], *line.values().values()]
    return [v for v in ends if v is not None]


def sample(values: list[float], most: int = 80) -> list[float]:
    """At most so many of the values, evenly spaced by rank, with the extremes.

    >>> sample([5.0, 1.0, 3.0, 2.0, 4.0], 3)
    [1.0, 3.0, 5.0]
    """
    if len(values) <= most:
        return values
    ordered = sorted(values)
    return [ordered[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def _method(section: Section, line: Line, x: Axis, y: float, style: str) -> list[str]:
    mean = line.mean or 0.0
    name = f"{line.name} (control)" if line.control else line.name
    parts = [text_at(x.start - 14, y + 4, shorten(name, 21), "label", "end")]
    value = text_at(x.end + 64, y + 4, section.show(mean), "tick", "end")
    if not x.lo <= mean <= x.hi:
        over = (x.end, y + 4, "off the scale →", "tick", "end")
        return [*parts, text_at(*over) if mean > x.hi else text_at(x.start, y + 4, "← off the scale", "tick"), value]
    inside = sample([v for v in line.values().values() if x.lo <= v <= x.hi])
    shift = [0.0] if len(inside) <= 24 else [-6.0, 3.0, -3.0, 6.0, 0.0]  # many cases would overlap on one line
    for i, v in enumerate(inside):
        parts.append(f'<circle cx="{x(v):.1f}" cy="{y + shift[i % len(shift)]:.1f}" r="3" class="case {style}"/>')
    if line.primary["lo"] is not None:
        ends = [min(max(v, x.lo), x.hi) for v in (line.primary["lo"], line.primary["hi"])]
        parts.append(line_at(x(ends[0]), y, x(ends[1]), y, f"bar {style}"))
    parts.append(f'<circle cx="{x(mean):.1f}" cy="{y:.1f}" r="5.5" class="mean {style}"/>')
    if line.entry["published"] is not None:
        at = x(line.entry["published"])
        parts.append(f'<path d="M{at:.1f} {y - 8:.1f} l4 -6 l-8 0 z" class="published"><title>published</title></path>')
    return [*parts, value]
