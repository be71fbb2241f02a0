"""Figures 6 and 8 of the FunnyBirds paper, drawn from any bird world: the gallery of part models, and samples."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.core.scene import rng as stream
from diorama.core.writing import Writing
from diorama.io.images import write_png
from diorama.io.sheet import SHOWN
from diorama.worlds.birds.birds import Birds
from diorama.worlds.birds.classes import CATALOGUE, PARTS
from diorama.worlds.birds.layout import image_bytes

#: A view that shows each part well: pitch and roll of the camera.
_VIEWS: dict[str, tuple[float, float]] = {
    "body": (0.45, -0.25),
    "beak": (0.7, -0.1),
    "eye": (0.15, -0.1),
    "foot": (0.35, -0.2),
    "tail": (0.45, -0.6),
    "wing": (0.2, 0.45),
}


def write_figures(ask: Writing) -> Path:
    """Figures 6 (part gallery) and 8 (samples) of the FunnyBirds paper."""
    ask.unchanged("figures")
    world, count = ask.world.object, ask.count
    if count > SHOWN:
        raise InputError(f"-n {count}: figure 8 is one picture of at most {SHOWN} birds")
    write_png(ask.out / "figure6_parts.png", part_gallery(world))
    ask.progress(1, 2)
    write_png(ask.out / "figure8_samples.png", sample_sheet(world, -(-count // 8), min(count, 8), ask.seed))
    ask.progress(2, 2)
    return ask.out


def part_gallery(world: Birds, tile: int = 128) -> np.ndarray:
    """Figure 6: the body alone, then every variant of every part on it, one part per row; uint8 (h, w, 3)."""
    still = replace(world, size=4 * tile, antialias=True)
    rows = [("body", [_portrait("body", None)])]
    rows += [(part, [_portrait(part, i) for i in range(len(CATALOGUE[part]))]) for part in PARTS]
    return _rows([_close_up(still.render(scenes), name, tile) for name, scenes in rows], [name for name, _ in rows])


def _portrait(part: str, variant: int | None) -> Scene:
    pitch, roll = _VIEWS[part]
    shown = {name: variant if name == part else None for name in PARTS}
    view = {"distance": 240, "pitch": pitch, "roll": roll}
    lamp = {"distance": 300, "pitch": 0.7, "roll": -0.8}
    return Scene("birds", {"label": 0, "parts": shown, "camera": view, "light": lamp, "background": []})


def _close_up(frames: Sequence[Frame], part: str, tile: int) -> list[np.ndarray]:
    """The images cropped to one square that contains the part in all of them (for beak and eyes; else the whole bird)."""
    import cv2

    ids = Birds.part_ids[part] if part in ("beak", "eye") else tuple(range(1, Birds.background_id))
    rows, columns = np.nonzero(np.any([np.isin(frame.truth["parts"], ids) for frame in frames], axis=0))
    size = frames[0].image.shape[0]
    margin = size // (10 if part in ("beak", "eye") else 40)
    half = min(size // 2, int(0.56 * max(np.ptp(rows), np.ptp(columns))) + margin)
    y, x = (int(np.clip((v.min() + v.max()) // 2, half, size - half)) for v in (rows, columns))
    cut = [image_bytes(frame)[y - half : y + half, x - half : x + half] for frame in frames]
    return [cv2.resize(image, (tile, tile), interpolation=cv2.INTER_AREA) for image in cut]


def sample_sheet(world: Birds, rows: int = 4, columns: int = 8, seed: int = 0) -> np.ndarray:
    """Figure 8: samples of the world in a grid; uint8 (h, w, 3)."""
    scenes = [world.sample(stream(seed, "sheet", i)) for i in range(rows * columns)]
    images = [image_bytes(frame) for frame in world.render(scenes)]
    return _rows([images[i * columns : (i + 1) * columns] for i in range(rows)], [""] * rows)


def _rows(rows: Sequence[Sequence[np.ndarray]], names: Sequence[str], gap: int = 4) -> np.ndarray:
    """Rows of equal tiles on white, each under its name."""
    side = rows[0][0].shape[0]
    head = 18 if any(names) else 0
    width = gap + max(len(row) for row in rows) * (side + gap)
    bands = [_band(row, name, width, head, gap) for row, name in zip(rows, names, strict=True)]
    return np.concatenate([*bands, np.full((gap, width, 3), 255, np.uint8)])


def _band(row: Sequence[np.ndarray], name: str, width: int, head: int, gap: int) -> np.ndarray:
    import cv2

    side = row[0].shape[0]
    band = np.full((head + gap + side, width, 3), 255, np.uint8)
    for i, image in enumerate(row):
        x = gap + i * (side + gap)
        band[head + gap :, x : x + side] = image
    if name:
        cv2.putText(band, name, (gap, head), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (40, 40, 40), 1, cv2.LINE_AA)
    return band
