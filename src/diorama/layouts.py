"""Layouts: how rendered scenes are written to disk. Every world has `flat`, `dataset` and `concepts`.

Worlds declare the folder layouts of other projects themselves, each with the function that writes it (`World.layouts`).
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core import device
from diorama.core.asking import screens
from diorama.core.capabilities import Parted
from diorama.core.catalogue import Component
from diorama.core.contracts import World
from diorama.core.errors import Excluded, InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.writing import Writing
from diorama.io.images import quantise, write_png
from diorama.io.names import case_path
from diorama.io.pictures import coloured_parts
from diorama.io.sheet import Sheet
from diorama.metrics.funnybirds import target_pair

_LAYERS = ("reflectance", "shading", "specular")
#: The layouts of every world: `module:function`, called with a `Writing`, returns the file to look at first.
ANY = {
    "flat": "diorama.layouts:write_flat",
    "dataset": "diorama.data.folder:write_dataset",
    "concepts": "diorama.worlds.concepts.layout:write_concepts",
    "concepts-linear": "diorama.worlds.concepts.layout:write_linear",
}


def layouts_of(world: World) -> dict[str, str | Callable[[Writing], Path]]:
    """The layouts of a world, `flat` first, then its own."""
    flat, *others = ANY
    return {name: {**ANY, **world.layouts}[name] for name in (flat, *world.layouts, *others)}


def write(layout: str, ask: Writing) -> Path:
    """Write scenes in one of the world's layouts."""
    has = layouts_of(ask.world.object)
    if layout not in has:
        raise InputError(f"{ask.world.name} cannot be written in layout {layout!r}; {did_you_mean(layout, list(has))}")
    place = has[layout]
    if not isinstance(place, str):
        return place(ask)
    module, _, function = place.partition(":")
    made: Path = getattr(importlib.import_module(module), function)(ask)
    return made


def write_flat(ask: Writing) -> Path:
    """Write `images/<case>.png` (linear: 16-bit, sRGB: 8-bit), `truth/<case>/…`, manifest and contact sheets.

    Returns the contact sheet. `predictions(folder=…)` looks for files with these case names; `targets` are the classes that
    a case must be explained for: the true one, the one a given model predicts, and the two of target sensitivity.
    """
    world, out = ask.world, ask.out
    count = ask.count if world.object.length is None else min(ask.count, len(world.object))
    sheet, parts = Sheet(), Sheet()
    with ask.manifest() as note:
        for name, scene in ask.scenes(count):
            try:
                frame = world.object.render([scene])[0]
            except Excluded as error:  # a damaged photo, which a run excludes too
                note({"case": name, "excluded": str(error), "scene": scene.to_json()})
                continue
            file = case_path(Path("images"), name, ".png").as_posix()
            image = {"image": file, "encoding": frame.encoding, "size": list(frame.image.shape[1::-1])}
            label = frame.truth.get("label")
            targets = {"targets": _targets(world.object, frame, ask.model)} if label is not None else {}
            note({"case": name, **image, "target": label, **targets, "scene": scene.to_json()})
            _write_frame(out, name, frame)
            sheet.add(frame.srgb())
            if "parts" in frame.truth:
                parts.add(coloured_parts(frame.truth["parts"]))
    if not sheet.pictures:
        raise InputError(f"{world.label}: none of {count} scenes can be shown; {out}/manifest.json says why")
    if parts.pictures:
        write_png(out / "contact_parts.png", parts.picture())
    return sheet.written(out)


def _targets(world: Any, frame: Frame, model: Component | None) -> list[int]:
    """The true class, the predicted one, and, if classes are made of parts, the two of target sensitivity."""
    found = [int(frame.truth["label"])]
    if model:
        images = screens([frame], device.chunk(device.current()))
        found.append(int(model.object.logits(images)[0].argmax()))
    pair = target_pair(world.classes, found[0]) if isinstance(world, Parted) and world.classes else None
    return list(dict.fromkeys([*found, *(pair[0] if pair else ())]))


def _write_frame(out: Path, name: str, frame: Frame) -> None:
    write_png(case_path(out / "images", name, ".png"), quantise(frame.image, 8 if frame.encoding == "srgb" else 16))
    truth = case_path(out / "truth", name)
    for layer in _LAYERS:
        if layer in frame.truth:
            values = frame.truth[layer]
            write_png(truth / f"{layer}.png", quantise(values[:, :, 0] if values.shape[2] == 1 else values, 16))
    if "mask" in frame.truth:
        write_png(truth / "mask.png", frame.mask.astype(np.uint8) * 255)
    if "parts" in frame.truth:
        write_png(truth / "parts.png", np.asarray(frame.truth["parts"], np.uint8))
