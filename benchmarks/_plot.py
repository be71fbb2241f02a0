"""A small plot as SVG: lines over two logarithmic axes, with a legend."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

COLOURS = ("#0b6e99", "#c2571a", "#4d7c0f")
LEFT, RIGHT, TOP, BOTTOM = 64, 400, 24, 200


def logarithmic(sizes: Sequence[float], lines: Mapping[str, Sequence[float]], across: str, up: str) -> str:
    """Values of every line at some sizes, both axes logarithmic; `across` and `up` are what they show."""
    values = [value for line in lines.values() for value in line]
    low, high = floor(log10(min(values))), ceil(log10(max(values)) + 1e-9)
    first, last = log10(min(sizes)), log10(max(sizes))

    def x(size: float) -> float:
        return LEFT + (RIGHT - LEFT) * (log10(size) - first) / (last - first)

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (log10(value) - low) / (high - low)

    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 500 250" font-family="sans-serif" font-size="12">']
    out.append('<rect width="500" height="250" fill="white"/>')
    for power in range(low, high + 1):
        at = y(10.0**power)
        out.append(f'<path d="M{LEFT} {at:.1f}H{RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for size in sizes:
        out.append(f'<text x="{x(size):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{size:g}</text>')
    for colour, (name, line) in zip(COLOURS, lines.items(), strict=False):
        points = [(x(size), y(value)) for size, value in zip(sizes, line, strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
        out.append(f'<text x="{RIGHT + 8}" y="{points[-1][1] + 4:.1f}" fill="{colour}">{name}</text>')
    out.append(f'<text x="{(LEFT + RIGHT) / 2}" y="{BOTTOM + 40}" text-anchor="middle">{across}</text>')
    out.append(f'<text x="{LEFT}" y="14">{up}</text></svg>')
    return "\n".join(out) + "\n"
