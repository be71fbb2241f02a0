"""Layouts: how rendered scenes are written to disk. `flat` is one image per case with a manifest and the truth."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.catalogue import Component
from diorama.core.contracts import scene_at
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.images import quantise, resize, write_png
from diorama.core.rows import write_json

Progress = Callable[[int, int], None]
_LAYERS = ("reflectance", "shading", "specular")


def write_flat(world: Component, count: int, seed: int, changes: dict[str, Any], out: Path, progress: Progress) -> Path:
    """Write `images/<case>.png` (16-bit, in the frame's own encoding), `truth/<case>/…`, manifest and contact sheet.

    Returns the contact sheet. The case names are those that `predictions(folder=…)` looks for.
    """
    if hasattr(world.object, "__len__"):
        count = min(count, len(world.object))
    entries, thumbnails = [], []
    for i in range(count):
        name, scene = scene_at(world.object, seed, i)
        scene = world.object.do(scene, **changes) if changes else scene
        frame = world.object.render([scene])[0]
        _write(out, name, frame)
        image = {"image": f"images/{name}.png", "encoding": frame.encoding, "size": list(frame.image.shape[1::-1])}
        entries.append({"case": name, **image, "target": frame.truth.get("label"), "scene": scene.to_json()})
        thumbnails.append(frame.srgb())
        progress(i + 1, count)
    manifest = {"world": world.label, "seed": seed, "do": changes, "cases": entries}
    try:
        write_json(out / "manifest.json", manifest)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror}") from error
    write_png(out / "contact.png", contact_sheet(thumbnails))
    return out / "contact.png"


def _write(out: Path, name: str, frame: Frame) -> None:
    try:
        write_png(out / "images" / f"{name}.png", quantise(frame.image, 16))
        for layer in _LAYERS:
            if layer in frame.truth:
                values = frame.truth[layer]
                write_png(
                    out / "truth" / name / f"{layer}.png",
                    quantise(values[:, :, 0] if values.shape[2] == 1 else values, 16),
                )
        if "mask" in frame.truth:
            write_png(out / "truth" / name / "mask.png", frame.mask.astype(np.uint8) * 255)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror}; choose another -o") from error


def contact_sheet(images: list[np.ndarray], side: int = 160, gap: int = 4) -> np.ndarray:
    """Pictures (h, w, 3) in [0, 1] on a grid of cells of `side` pixels, white between them, as uint8."""
    columns = int(np.ceil(np.sqrt(len(images))))
    rows = -(-len(images) // columns)
    sheet = np.full((rows * (side + gap) + gap, columns * (side + gap) + gap, 3), 255, np.uint8)
    for i, image in enumerate(images):
        scale = side / max(image.shape[:2])
        width, height = max(1, round(image.shape[1] * scale)), max(1, round(image.shape[0] * scale))
        y = gap + (i // columns) * (side + gap) + (side - height) // 2
        x = gap + (i % columns) * (side + gap) + (side - width) // 2
        sheet[y : y + height, x : x + width] = quantise(resize(image, width, height), 8)
    return sheet


LAYOUTS = {"flat": write_flat}
