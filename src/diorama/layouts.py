"""Layouts: how rendered scenes are written to disk: `flat`, and as FunnyBirds, MIT Intrinsic Images, CANDLE … keep them."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core import device
from diorama.core.asking import screens
from diorama.core.capabilities import Parted, Sets
from diorama.core.catalogue import Component
from diorama.core.errors import Excluded, InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.progress import Progress
from diorama.core.scene import Scene, encoded, rng
from diorama.io.images import quantise, resize, write_png
from diorama.io.names import case_path
from diorama.io.pictures import coloured_parts
from diorama.metrics.funnybirds import target_pair

#: Pictures on a contact sheet, at most.
SHOWN = 256
_LAYERS = ("reflectance", "shading", "specular")


@dataclass(frozen=True)
class Writing:
    """What is written: so many scenes of a world, each changed alike, to a folder; `model` names further targets (flat)."""

    world: Component
    count: int
    seed: int
    changes: dict[str, Any]
    out: Path
    progress: Progress
    model: Component | None = None

    def scenes(self, count: int) -> Iterator[tuple[str, Scene]]:
        """The scenes with their names, one after the other; progress is told when the next is asked for."""
        for i in range(count):
            name, scene = self.world.object.scene_at(self.seed, i)
            yield name, self.world.object.do(scene, **self.changes) if self.changes else scene
            self.progress(i + 1, count)

    def unchanged(self, layout: str) -> None:
        """Refuse changes in a layout that writes scenes as they are."""
        if self.changes:
            raise InputError(f"layout {layout!r} writes scenes unchanged: leave --do {next(iter(self.changes))}=… out")


def write_flat(ask: Writing) -> Path:
    """Write `images/<case>.png` (linear: 16-bit, sRGB: 8-bit), `truth/<case>/…`, manifest and contact sheets.

    Returns the contact sheet. The case names are those that `predictions(folder=…)` looks for; `targets` are the classes
    that a case must be explained for: the true one, what a given model predicts, and the two of target sensitivity.
    """
    world, out = ask.world, ask.out
    count = ask.count if world.object.length is None else min(ask.count, len(world.object))
    sheet, parts = Sheet(), Sheet()
    with _manifest(ask) as note:
        for name, scene in ask.scenes(count):
            try:
                frame = world.object.render([scene])[0]
            except Excluded as error:  # a damaged photo: its case would not count either
                note({"case": name, "excluded": str(error), "scene": scene.to_json()})
                continue
            file = case_path(Path("images"), name, ".png").as_posix()
            image = {"image": file, "encoding": frame.encoding, "size": list(frame.image.shape[1::-1])}
            label = frame.truth.get("label")
            said = {"targets": _targets(world.object, frame, ask.model)} if label is not None else {}
            note({"case": name, **image, "target": label, **said, "scene": scene.to_json()})
            _write_frame(out, name, frame)
            sheet.add(frame.srgb())
            if "parts" in frame.truth:
                parts.add(coloured_parts(frame.truth["parts"]))
    if not sheet.pictures:
        raise InputError(f"{world.label}: none of {count} scenes can be shown; {out}/manifest.json says why")
    if parts.pictures:
        write_png(out / "contact_parts.png", parts.picture())
    return sheet.written(out)


@contextmanager
def _manifest(ask: Writing) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Write manifest.json case by case, as the frames are made; the file has its name once it is whole."""
    ask.out.mkdir(parents=True, exist_ok=True)
    part = ask.out / f".manifest.json.{os.getpid()}"
    head = {"world": ask.world.label, "seed": ask.seed, "do": ask.changes}
    try:
        with open(part, "wb") as file:
            between = encoded(head)[:-1] + b',"cases":[\n'

            def note(entry: dict[str, Any]) -> None:
                nonlocal between
                file.write(between + encoded(entry))
                between = b",\n"

            yield note
            file.write(b"\n]}\n")
        os.replace(part, ask.out / "manifest.json")
    finally:
        part.unlink(missing_ok=True)


def _targets(world: Any, frame: Frame, model: Component | None) -> list[int]:
    """The true class, what the model predicts, and the two classes of target sensitivity where parts make a class."""
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


def write_funnybirds(ask: Writing) -> Path:
    """Write the official on-disk data set of FunnyBirds: `count` birds in each split, with every intervention."""
    from diorama.worlds.birds.layout import write_funnybirds as write

    ask.unchanged("funnybirds")
    splits = []
    for split in ("train", "test"):
        staged = replace(ask.world.object, split=split)
        splits.append([staged.sample(rng(ask.seed, split, i)) for i in range(ask.count)])
    write(ask.out, ask.world.object, *splits)
    ask.progress(ask.count, ask.count)
    return ask.out


def write_figures(ask: Writing) -> Path:
    """Figures 6 (part gallery) and 8 (samples) of the FunnyBirds paper."""
    from diorama.worlds.birds.figures import part_gallery, sample_sheet

    ask.unchanged("figures")
    world, count = ask.world.object, ask.count
    if count > SHOWN:
        raise InputError(f"-n {count}: figure 8 is one picture of at most {SHOWN} birds")
    write_png(ask.out / "figure6_parts.png", part_gallery(world))
    ask.progress(1, 2)
    write_png(ask.out / "figure8_samples.png", sample_sheet(world, -(-count // 8), min(count, 8), ask.seed))
    ask.progress(2, 2)
    return ask.out


def write_mit(ask: Writing) -> Path:
    """Write `<case>/{original,diffuse,shading,reflectance,specular,mask,light01…light10}.png` as MIT Intrinsic Images.

    16-bit linear RGB, 0 outside the mask; shading is gray when the light is white and nothing interreflects. One
    exposure for all files of a scene keeps every layer within range; manifest.json says which. The
    world `mit_intrinsic(root=…, objects=…)` reads the folder.
    """
    if {"light", "light_angle"} & ask.changes.keys():
        raise InputError("layout 'mit' writes every light: leave --do light=… out")
    world, sheet = ask.world.object, Sheet()
    with _manifest(ask) as note:
        for name, scene in ask.scenes(ask.count):
            frame, *lights = world.render([scene, *(world.do(scene, light=k) for k in range(1, 11))])
            gray = scene.params["temperature"] is None and not world.bounces
            layers, exposure = mit_layers(frame, lights, gray)
            for file, pixels in layers.items():
                write_png(ask.out / name / f"{file}.png", pixels)
            note({"case": name, "exposure": exposure, "scene": scene.to_json()})
            sheet.add(frame.srgb())
    return sheet.written(ask.out)


def mit_layers(frame: Frame, lights: list[Frame], gray: bool) -> tuple[dict[str, np.ndarray], float]:
    """The 16-bit files of one object and the exposure that brings all of them within range.

    Layers are rounded first and the images made from them: original = round(R·S + C) holds to the last bit. In pixels
    that show several paints the shading of each channel differs a little; with `gray`, S is the largest of the three and
    R = diffuse/S there, as in the real capture, whose twin is gray.
    """
    inside, top = frame.mask[:, :, None], 65535
    r, s, c = (np.where(inside, frame.truth[name], 0).astype(np.float64) for name in _LAYERS)
    if gray:
        even = s.max(axis=2, keepdims=True)
        r, s = np.where(even > 0, r * s / np.where(even > 0, even, 1), r), even
    views = [np.where(inside, view.image, 0).astype(np.float64) for view in lights]
    exposure = min(1.0, 0.999 / max(float(x.max()) for x in (s, r * s + c, *views)))
    r, s, c = (quantise(x, 16).astype(np.float64) for x in (r, s * exposure, c * exposure))
    files = {"original": r * s / top + c, "diffuse": r * s / top, "shading": s[:, :, 0] if gray else s}
    files |= {"reflectance": r, "specular": c, "mask": frame.mask * float(top)}
    files |= {f"light{i:02d}": exposure * view * top for i, view in enumerate(views, 1)}
    return {name: np.rint(values).astype(np.uint16) for name, values in files.items()}, exposure


def write_mosaic(ask: Writing) -> Path:
    """Write mosaics with the official table of the Attribution Confusion Matrix: `data/…` and `mosaics.csv`."""
    from diorama.worlds.mosaic.files import write_mosaics

    ask.unchanged("mosaic")
    if ask.seed:
        raise InputError("layout 'mosaic' writes a mosaic world as it is: write mosaic(…, seed=…), no --seed")
    return write_mosaics(ask.world.object, ask.count, ask.out, ask.progress)


def write_candle(ask: Writing) -> Path:
    """Write `<index>.png` and `<index>.json` as CANDLE was published, every combination once; goes on where it stopped.

    One process per core; each image is a function of (seed, index). The world `candle_recorded(root=…)` reads the folder.
    """
    from diorama.worlds.candle.layout import write_numbered

    world = ask.world
    pictures = write_numbered(world.object, world.digest, ask.count, ask.seed, ask.changes, ask.out, ask.progress)
    return contact_sheet(pictures, limit=240).written(ask.out)


def write_dataset(ask: Writing) -> Path:
    """Write 8-bit images, `labels.csv` with all factors and a split, boxes, and the weak labels of worlds with levels."""
    from diorama.data.folder import write_dataset as write

    sheet = Sheet()
    made = write(ask.world, ask.count, ask.seed, ask.changes, ask.out, ask.progress, sheet.add)
    sheet.written(ask.out)
    return made


def write_concepts(ask: Writing, linear: bool = False) -> Path:
    """Write concept sets with the paper's folder names, or the scenes of another world as their `randoms`.

    8-bit sRGB; `concepts-linear` adds the linear layers as NPY. Goes on where it stopped. The world
    `natural_concepts(root=…, kind=folder)` reads the folder.
    """
    from diorama.worlds.concepts.figure import figure3
    from diorama.worlds.concepts.layout import write_randoms, write_sets

    ask.unchanged("concepts")
    world, out = ask.world, ask.out
    if not isinstance(world.object, Sets):
        return contact_sheet(write_randoms(world.object, ask.count, ask.seed, out, ask.progress)).written(out)
    write_sets(world.object, world.label, world.digest, min(ask.count, len(world.object)), out, linear, ask.progress)
    (out / "figure3.svg").write_text(figure3(world.object), encoding="utf-8")
    return out / "figure3.svg"


class Sheet:
    """A contact sheet in the making: the first pictures, no larger than they are shown, whatever the number of frames."""

    def __init__(self, limit: int = 192) -> None:
        self.limit, self.pictures = limit, list[np.ndarray]()

    def add(self, image: np.ndarray) -> None:
        """Note a picture (h, w, 3) in [0, 1]."""
        if len(self.pictures) < SHOWN:
            h, w = _size(image, min(self.limit, max(image.shape[:2])))
            self.pictures.append(quantise(image if image.shape[:2] == (h, w) else resize(image, w, h), 8))

    def picture(self, gap: int = 4) -> np.ndarray:
        """The pictures on a grid as uint8; small ones enlarged, so that pixels stay visible."""
        largest = max(max(image.shape[:2]) for image in self.pictures)
        side = largest * (self.limit // largest)
        sizes = [_size(image, side) for image in self.pictures]
        high, wide = np.max(sizes, axis=0) + gap
        columns = int(np.ceil(np.sqrt(len(sizes))))
        sheet = np.full((-(-len(sizes) // columns) * high + gap, columns * wide + gap, 3), 255, np.uint8)
        for i, (image, (h, w)) in enumerate(zip(self.pictures, sizes, strict=True)):
            y = gap + (i // columns) * high + (high - gap - h) // 2
            x = gap + (i % columns) * wide + (wide - gap - w) // 2
            sheet[y : y + h, x : x + w] = resize(image, w, h)
        return sheet

    def written(self, out: Path) -> Path:
        """The sheet as contact.png in a folder."""
        write_png(out / "contact.png", self.picture())
        return out / "contact.png"


def _size(image: np.ndarray, side: int) -> tuple[int, int]:
    """Height and width of a picture whose longer side has `side` pixels."""
    h, w = np.maximum(np.rint(np.multiply(image.shape[:2], side / max(image.shape[:2]))), 1).astype(int)
    return int(h), int(w)


def contact_sheet(images: Iterable[np.ndarray], limit: int = 192) -> Sheet:
    """Pictures (h, w, 3) in [0, 1] on a sheet; none larger than `limit`, small ones enlarged."""
    sheet = Sheet(limit)
    for image in images:
        sheet.add(image)
    return sheet


LAYOUTS: dict[str, Callable[..., Path]] = {
    "flat": write_flat,
    "funnybirds": write_funnybirds,
    "figures": write_figures,
    "mit": write_mit,
    "mosaic": write_mosaic,
    "candle": write_candle,
    "dataset": write_dataset,
    "concepts": write_concepts,
    "concepts-linear": partial(write_concepts, linear=True),
}
#: What every world can be written as.
ANY = ("flat", "dataset", "concepts", "concepts-linear")


def layouts_of(world: Any) -> tuple[str, ...]:
    """The layouts in which a world can be written."""
    return (*ANY[:1], *world.layouts, *ANY[1:])


def check_layout(world: Component, layout: str) -> None:
    """Refuse a layout that nobody knows, or that this world does not have."""
    if layout not in LAYOUTS:
        raise InputError(f"unknown layout {layout!r}; {did_you_mean(layout, list(LAYOUTS))}")
    if layout not in (has := layouts_of(world.object)):
        raise InputError(f"{world.name} cannot be written in layout {layout!r}; it has {', '.join(has)}")
