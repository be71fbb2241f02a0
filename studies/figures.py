"""Figures of the results: sheets of pictures as PNG; bars and pairs of dots as SVG without a stylesheet."""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from diorama.core.cases import Panel
from diorama.io.images import quantise, resize, write_png
from studies.page_kit import svg_text, write_svg

_GAP, _TEXT, _LEFT, _WIDTH, _BLUE, _ORANGE = 6, 16, 176, 760, "#0072b2", "#d55e00"


def sheet(path: Path, rows: Sequence[tuple[str, Sequence[Panel]]], side: int = 112) -> None:
    """Write rows of pictures, at most `side` pixels wide and high, with each row's name at the left and captions above."""
    count = max(len(panels) for _, panels in rows)
    write_png(path, np.concatenate([_row(name, panels, side, count) for name, panels in rows]))


def _row(name: str, panels: Sequence[Panel], side: int, count: int) -> np.ndarray:
    high = max(round(side * panel.image.shape[0] / max(panel.image.shape[:2])) for panel in panels)
    row = np.full((high + _TEXT + _GAP, 70 + count * (side + _GAP), 3), 255, np.uint8)
    _write(row, name, 2, _TEXT + high // 2)
    for i, panel in enumerate(panels):
        scale, x = side / max(panel.image.shape[:2]), 70 + i * (side + _GAP)
        h, w = (max(1, round(n * scale)) for n in panel.image.shape[:2])
        row[_TEXT : _TEXT + h, x : x + w] = quantise(resize(panel.image.astype(np.float32), w, h), 8)
        _write(row, panel.caption, x, _TEXT - 4)
    return row


def _write(image: np.ndarray, text: str, x: int, y: int) -> None:
    cv2.putText(image, text, (x, y), cv2.FONT_HERSHEY_SIMPLEX, 0.36, (40, 40, 40), 1, cv2.LINE_AA)


def bars(path: Path, title: str, values: dict[str, float], published: dict[str, float], places: int) -> None:
    """Draw a horizontal bar for each name, the longest last; a triangle marks the published value."""
    scale = (_WIDTH - _LEFT - 90) / max([*values.values(), *published.values()])
    parts = [svg_text(8, 18, title, 13)]
    for i, (name, value) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        y, end, other = 34 + 26 * i, _LEFT + value * scale, _LEFT + published.get(name, 0.0) * scale
        parts.append(svg_text(_LEFT - 8, y + 13, name, 13, anchor="end"))
        parts.append(svg_text(max(end, other) + 8, y + 13, f"{value:.{places}f}", 13))
        parts.append(f'<rect x="{_LEFT}" y="{y}" width="{end - _LEFT:.1f}" height="18" fill="{_BLUE}"/>')
        if name in published:
            parts.append(f'<path d="M{other:.1f} {y + 17} l4 7 l-8 0 z" fill="{_ORANGE}"/>')
    write_svg(path, title, _WIDTH, 44 + 26 * len(values), parts)


def pairs(path: Path, title: str, names: tuple[str, str], values: dict[str, tuple[float, float]]) -> None:
    """Draw two dots on a line for each case: the first value open, the second filled."""
    scale = (_WIDTH - _LEFT - 140) / max(max(pair) for pair in values.values())
    title = f"{title}: {names[0]} open, {names[1]} full"
    parts = [svg_text(8, 18, title, 13)]
    for i, (name, pair) in enumerate(sorted(values.items(), key=lambda item: item[1][0])):
        y, (a, b) = 44 + 20 * i, (_LEFT + v * scale for v in pair)
        parts.append(svg_text(_LEFT - 8, y + 4, name, 13, anchor="end"))
        parts.append(f'<line x1="{a:.1f}" y1="{y}" x2="{b:.1f}" y2="{y}" stroke="#999" stroke-width="2"/>')
        parts.append(f'<circle cx="{a:.1f}" cy="{y}" r="5" fill="#fff" stroke="{_BLUE}" stroke-width="2"/>')
        parts.append(f'<circle cx="{b:.1f}" cy="{y}" r="5" fill="{_ORANGE}"/>')
        parts.append(svg_text(max(a, b) + 12, y + 4, f"{pair[0]:.4f} → {pair[1]:.4f}", 13))
    write_svg(path, title, _WIDTH, 60 + 20 * len(values), parts)
