"""The FunnyBirds folder on disk: where its files are, how its part maps are coded, and a writer for staged birds.

    classes.json  parts.json  dataset_train.json  dataset_test.json
    train/<class>/<index>.png       train_part_map/<class>/<index>.png         and the same for test
    test_interventions/<class>/<index>/body_<kept parts>.png                    all 32 subsets
    test_interventions/<class>/<index>/background_interventions/<n>.png         without background object n

Images are RGBA PNG; the index counts over the whole split and has six digits.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.core.writing import Writing
from diorama.io.images import quantise, read_png
from diorama.worlds.birds.birds import Birds
from diorama.worlds.birds.metadata import Split, class_records, part_records, to_record

#: The colour of every id of a part map: empty, body, beak, eyes, feet, tail, wings, then the background objects.
CODES = np.array(
    [
        (0, 0, 0),
        (170, 170, 170),
        (255, 255, 0),
        (255, 255, 253),
        (255, 255, 254),
        (255, 0, 1),
        (255, 0, 2),
        (0, 0, 255),
        (0, 255, 1),
        (0, 255, 2),
        *((204, 204, 204 + i) for i in range(52)),
    ],
    np.uint8,
)


def encode_parts(parts: np.ndarray) -> np.ndarray:
    """A part map (h, w) in the published colours (h, w, 3)."""
    return CODES[parts]


def decode_parts(colours: np.ndarray) -> np.ndarray:
    """The ids of a coloured part map; colours that are no code (blended edge pixels) become 0, empty.

    >>> decode_parts(np.array([[(255, 0, 2), (204, 204, 207), (9, 9, 9)]], np.uint8)).tolist()
    [[6, 13, 0]]
    """
    packed, codes = _packed(colours), _packed(CODES)
    order = np.argsort(codes)
    place = np.minimum(np.searchsorted(codes[order], packed), len(codes) - 1)
    found = order[place]
    return np.where(codes[found] == packed, found, 0).astype(np.uint8)


def _packed(colours: np.ndarray) -> np.ndarray:
    wide = colours.astype(np.int64)
    return (wide[..., 0] << 16) | (wide[..., 1] << 8) | wide[..., 2]


def image_path(root: Path, split: str, label: int, index: int) -> Path:
    """The image of a sample; `split` may be `train`, `test`, `train_part_map` or `test_part_map`."""
    return root / split / str(label) / f"{index:06d}.png"


def subset_path(root: Path, label: int, index: int, kept: Iterable[str]) -> Path:
    """The test image that keeps only some parts."""
    return _interventions(root, label, index) / f"body_{'_'.join(sorted(kept))}.png"


def removal_path(root: Path, label: int, index: int, thing: int) -> Path:
    """The test image without one background object."""
    return _interventions(root, label, index) / "background_interventions" / f"{thing}.png"


def _interventions(root: Path, label: int, index: int) -> Path:
    return root / "test_interventions" / str(label) / f"{index:06d}"


def write_layout(ask: Writing) -> Path:
    """Write the official on-disk data set of FunnyBirds: `count` birds in each split, with every intervention."""
    ask.unchanged("funnybirds")
    splits = []
    for split in ("train", "test"):
        staged = replace(ask.world.object, split=split)
        splits.append([staged.sample(rng(ask.seed, split, i)) for i in range(ask.count)])
    write_funnybirds(ask.out, ask.world.object, *splits)
    ask.progress(ask.count, ask.count)
    return ask.out


def write_funnybirds(root: str | Path, world: Birds, train: Sequence[Scene], test: Sequence[Scene]) -> None:
    """Write both splits with their part maps and metadata, and every intervention on the test split."""
    folder = Path(root)
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "classes.json", class_records(world.classes))
    _write_json(folder / "parts.json", part_records())
    _write_split(folder, world, "train", train)
    _write_split(folder, world, "test", test)
    for index, scene in enumerate(test):
        _write_interventions(folder, world, index, scene)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def _write_split(root: Path, world: Birds, split: Split, scenes: Sequence[Scene]) -> None:
    _write_json(root / f"dataset_{split}.json", [to_record(scene.params, world.classes) for scene in scenes])
    for start in range(0, len(scenes), 64):
        for index, frame in enumerate(world.render(scenes[start : start + 64]), start):
            label = frame.truth["label"]
            write_png(image_path(root, split, label, index), image_bytes(frame))
            write_png(image_path(root, f"{split}_part_map", label, index), encode_parts(frame.truth["parts"]))


def _write_interventions(root: Path, world: Birds, index: int, scene: Scene) -> None:
    label = scene.params["label"]
    if any(thing is None for thing in scene.params["background"]) or None in scene.params["parts"].values():
        raise InputError(f"test scene {index} has something removed; interventions are made on whole scenes")
    targets = {subset_path(root, label, index, kept): s for kept, s in world.subsets(scene).items()}
    targets |= {removal_path(root, label, index, i): s for i, s in world.removals(scene).items()}
    for path, frame in zip(targets, world.render(list(targets.values())), strict=True):
        write_png(path, image_bytes(frame))


def image_bytes(frame: Frame) -> np.ndarray:
    """The frame's image as sRGB bytes."""
    return quantise(frame.srgb(), 8)


def write_png(path: Path, rgb: np.ndarray) -> None:
    """Write an opaque RGBA PNG, making its folder."""
    import cv2

    path.parent.mkdir(parents=True, exist_ok=True)
    rgba = np.dstack([rgb[..., ::-1], np.full(rgb.shape[:2], 255, np.uint8)])
    path.write_bytes(cv2.imencode(".png", rgba, [cv2.IMWRITE_PNG_COMPRESSION, 1])[1].tobytes())


def read_image(path: Path) -> np.ndarray:
    """The RGB bytes (h, w, 3) of an image; alpha is dropped, as the published loader does."""
    image = read_png(path, bits=8)
    if image.ndim != 3:
        raise InputError(f"{path} has no colours; FunnyBirds images and part maps are RGB or RGBA")
    return image
