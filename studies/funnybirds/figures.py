"""Figures 3, 7 and 9 of FunnyBirds for our networks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from diorama.adapt.methods import explain
from diorama.core.answers import Answer, Boxes, Heatmap, Mask, Similarity
from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.io.images import quantise
from diorama.io.pictures import coloured_parts, diverging
from diorama.metrics.funnybirds import minimal_sets
from diorama.protocols.parts.importance import dilation_at, elements, important_parts
from studies.figures import sheet
from studies.funnybirds.table2 import NETWORKS, Cells, Network, named, of_variant, score, value
from studies.page_kit import svg_text, write_svg

SEED = 0
#: The scores in Figure 3.
SHOWN = ("a", "bi", "com", "cor", "con", "mx")


def explained(method: str, network: str, index: int) -> tuple[Any, Answer]:
    """A bird's frame and a method's explanation for its true class."""
    world = build("world", "birds").object
    frame = world.render([world.scene_at(SEED, index)[1]])[0]
    label = np.array([frame.truth["label"]])
    answer = explain(build("method", method).object, build("model", network).object, frame.srgb()[None], label)[0]
    return frame, answer


def shown(answer: Answer, image: np.ndarray) -> np.ndarray:
    """An explanation drawn over the image: a map in colours, or boxes."""
    if isinstance(answer, Boxes):
        return boxed(image, answer.corners)
    assert isinstance(answer, Heatmap | Mask | Similarity)
    return diverging(np.asarray(answer.values, float), image)


def boxed(image: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """An image with boxes drawn in yellow."""
    drawn = np.array(image, np.float32)  # a copy: frames are read-only
    for x0, y0, x1, y1 in corners.astype(int).tolist():
        cv2.rectangle(drawn, (x0, y0), (x1 - 1, y1 - 1), (1.0, 0.85, 0.0), 1)
    return drawn


def figure3(found: dict[str, Cells], path: Path, index: int = 0) -> None:
    """Draw A, BI, Com, Cor, Con and mX of every row as bars, best first, beside the map of one bird."""
    rows = [(network, c) for network, cells in found.items() for c in of_variant(cells, "corrected")]
    rows = [(network, c) for network, c in rows if not c["control"] and c["kind"] != "further"]
    rows.sort(key=lambda row: -(value(row[1], "mx") or 0))
    left, step = 270, 88
    parts = [svg_text(left + i * step, 20, metric, 13) for i, metric in enumerate(SHOWN)]
    for j, (network, cell) in enumerate(rows):
        y = 30 + 76 * j
        frame, answer = explained(named(cell), network, index)
        parts += [_picture(4, y, shown(answer, frame.srgb())), svg_text(78, y + 32, brief(named(cell)), 13)]
        parts.append(svg_text(78, y + 50, network.removeprefix("birds_"), 13))
        for x, metric in zip(range(left, left + len(SHOWN) * step, step), SHOWN, strict=True):
            height = 60 * (value(cell, metric) or 0.0)
            bar = f'<rect x="{x}" y="{y + 66 - height:.1f}" width="40" height="{height:.1f}" fill="#0072b2"/>'
            parts += [bar, svg_text(x + 44, y + 62, score(cell, metric).partition(" ")[0], 13)]
    write_svg(path, "Scores of every row", left + len(SHOWN) * step, 40 + 76 * len(rows), parts)


def _picture(x: float, y: float, image: np.ndarray) -> str:
    data = cv2.imencode(".png", quantise(image.astype(np.float32), 8)[:, :, ::-1])[1].tobytes()
    return f'<image x="{x}" y="{y}" width="70" height="70" href="data:image/png;base64,{base64.b64encode(data).decode()}"/>'


def figure7(path: Path, networks: Sequence[Network] = NETWORKS, birds: Sequence[int] = (0, 3)) -> None:
    """Draw the maps of all methods and networks for the same birds."""
    rows = []
    for index in birds:
        for network in networks:
            methods = (*network.maps, *network.sampled, *network.further)
            drawn = [(m, *explained(m, network.name, index)) for m in methods if m != "part_shapley"]  # this has no map
            image = Panel("image", drawn[0][1].srgb())
            panels = [image, *(Panel(brief(m), shown(a, f.srgb())) for m, f, a in drawn)]
            rows.append((network.name.removeprefix("birds_"), panels))
    sheet(path, rows, 100)


def brief(method: str) -> str:
    """A short form of a method's name."""
    for long, short in (
        ("integrated_gradients", "IG"), ("input_x_gradient", "IxG"), ("guided_", "g. "), ("prototypes(reading=", "proto ("),
    ):  # fmt: skip
        method = method.replace(long, short)
    return method


def figure9(network: str, path: Path, birds: Sequence[int] = (0, 1, 2, 3)) -> None:
    """Draw some birds, their explanations, the parts called important at t = 0.02, and a sufficient set of parts."""
    world = build("world", "birds").object
    rows = []
    for index in birds:
        frame, answer = explained("integrated_gradients", network, index)
        assert isinstance(answer, Heatmap)
        ids, width = [world.part_ids[p] for p in world.part_names], dilation_at(frame.image.shape[0], 5)
        important = important_parts(answer, elements(frame.truth["parts"], ids, width), np.array([0.02]), False)[0]
        sets = minimal_sets([dict(c) for c in world.classes], int(frame.truth["label"]))
        best = max(sets, key=lambda s: sum(important[i] for i in range(5) if s >> i & 1) / s.bit_count())
        sufficient = np.array([bool(best >> i & 1) for i in range(5)])
        panels = [Panel("input", frame.srgb()), Panel("IG", shown(answer, frame.srgb()))]
        panels += [Panel("important, t = 0.02", _only(frame, ids, important))]
        panels += [Panel("sufficient set", _only(frame, ids, sufficient))]
        rows.append((f"bird {index}", panels))
    sheet(path, rows, 128)


def _only(frame: Any, ids: Sequence[tuple[int, ...]], chosen: np.ndarray) -> np.ndarray:
    """The part map with only the chosen parts in colour."""
    parts = np.asarray(frame.truth["parts"])
    coloured = np.isin(parts, [i for of_part, keep in zip(ids, chosen, strict=True) if keep for i in of_part])
    return coloured_parts(np.where(coloured, parts, (parts > 0).astype(parts.dtype)))
