"""The published FunnyBirds metadata: the draw order of its generator, and conversion of its flat records to and from scenes.

`classes.json`, `dataset_train.json` and `dataset_test.json` are functions of a seed and of CPython's `random`: seed 0
gives the published ones. Classes and train samples come from one stream, test samples from a fresh one.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from diorama.core.errors import InputError
from diorama.worlds.birds.classes import CATALOGUE, PARTS, draw_classes
from diorama.worlds.birds.scenes import COLOURS, SHAPES, Params

Split = Literal["train", "test"]
Classes = Sequence[Mapping[str, int]]

REMOVED = "placeholder"
PER_CLASS: dict[str, int] = {"train": 1000, "test": 10}


def published_params(split: Split, seed: int = 0, per_class: int | None = None) -> Iterator[Params]:
    """The scenes of a split in the published order, class by class; 1,000 (train) or 10 (test) birds of each class.

    >>> bird = next(published_params("test"))
    >>> bird["label"], bird["camera"]["distance"], len(bird["background"])
    (0, 298, 25)
    """
    stream = random.Random(seed)
    classes = draw_classes(stream)
    if split == "test":
        stream = random.Random(seed)
    for label in range(len(classes)):
        for _ in range(PER_CLASS[split] if per_class is None else per_class):
            yield _draw(stream, label, classes[label], removal=split == "train")


def _draw(stream: random.Random, label: int, variants: Mapping[str, int], removal: bool) -> Params:
    distance = stream.randint(200, 400)
    camera_pitch, camera_roll, light_pitch, light_roll = (_angle(stream) for _ in range(4))
    gone: set[int] = set()
    if removal and stream.choice([0, 1]):
        gone = set(stream.sample(range(len(PARTS)), stream.randint(0, len(PARTS))))
    return {
        "label": label,
        "parts": {part: None if i in gone else variants[part] for i, part in enumerate(PARTS)},
        "camera": {"distance": distance, "pitch": camera_pitch, "roll": camera_roll},
        "light": {"distance": distance, "pitch": light_pitch, "roll": light_roll},
        "background": [_draw_object(stream) for _ in range(stream.randint(0, 34))],
    }


def _angle(stream: random.Random) -> float:
    return stream.uniform(0, 2 * math.pi)


def _draw_object(stream: random.Random) -> Params:
    return {
        "shape": SHAPES[stream.randint(0, 4)],
        "radius": stream.randint(100, 200),
        "pitch": _angle(stream),
        "roll": _angle(stream),
        "scale": [stream.randint(5, 20) for _ in range(3)],
        "rotation": [_angle(stream) for _ in range(3)],
        "color": stream.choice(COLOURS),
    }


def class_records(classes: Classes) -> list[dict[str, Any]]:
    """The content of `classes.json`."""
    return [{"class_idx": i, "parts": dict(bird)} for i, bird in enumerate(classes)]


def part_records() -> dict[str, list[dict[str, str]]]:
    """The content of `parts.json`."""
    return {part: [variant.record() for variant in CATALOGUE[part]] for part in PARTS}


def to_record(params: Params, classes: Classes) -> dict[str, Any]:
    """A scene as an entry of `dataset_*.json`. The format has no place for removed objects: they are left out."""
    if params["light"]["distance"] != params["camera"]["distance"]:
        raise InputError(
            f"light distance={params['light']['distance']!r} cannot be recorded: FunnyBirds puts the lamp at the camera's "
            f"distance, {params['camera']['distance']!r}"
        )
    return {
        "class_idx": params["label"],
        **{f"camera_{key}": params["camera"][key] for key in ("distance", "pitch", "roll")},
        "light_distance": 300,  # what the published files say; their renderer puts the lamp at the camera's distance
        **{f"light_{key}": params["light"][key] for key in ("pitch", "roll")},
        **_part_fields(params, classes),
        **_object_fields([thing for thing in params["background"] if thing is not None]),
    }


def _part_fields(params: Params, classes: Classes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part, variant in params["parts"].items():
        shown = CATALOGUE[part][classes[params["label"]][part] if variant is None else variant].record()
        fields |= {f"{part}_{key}": REMOVED if variant is None else value for key, value in shown.items()}
    return fields


def _object_fields(things: Sequence[Params]) -> dict[str, str]:
    columns: dict[str, list[Any]] = {
        "objects": [SHAPES.index(thing["shape"]) for thing in things],
        **{key: [thing[key] for thing in things] for key in ("radius", "pitch", "roll")},
        **{f"scale_{axis}": [thing["scale"][i] for thing in things] for i, axis in enumerate("xyz")},
        **{f"rot_{axis}": [thing["rotation"][i] for thing in things] for i, axis in enumerate("xyz")},
        "color": [thing["color"] for thing in things],
    }
    return {f"bg_{name}": "".join(f"{value}," for value in values) for name, values in columns.items()}


def from_record(record: Mapping[str, Any]) -> Params:
    """A scene from an entry of `dataset_*.json`; the lamp is where the published renderer puts it."""
    try:
        return {
            "label": int(record["class_idx"]),
            "parts": {part: _variant(part, record) for part in PARTS},
            "camera": {key: record[f"camera_{key}"] for key in ("distance", "pitch", "roll")},
            "light": {"distance": record["camera_distance"]} | {k: record[f"light_{k}"] for k in ("pitch", "roll")},
            "background": _objects(record),
        }
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"not a FunnyBirds record: {type(error).__name__} {error}; see dataset_test.json") from error


def _variant(part: str, record: Mapping[str, Any]) -> int | None:
    shown = {key: record[f"{part}_{key}"] for key in CATALOGUE[part][0].record()}
    if REMOVED in shown.values():
        return None
    return [variant.record() for variant in CATALOGUE[part]].index(shown)


def _objects(record: Mapping[str, Any]) -> list[Params | None]:
    names = "objects radius pitch roll scale_x scale_y scale_z rot_x rot_y rot_z color".split()  # noqa: SIM905
    rows = zip(*(str(record[f"bg_{name}"]).split(",")[:-1] for name in names), strict=True)
    return [
        {
            "shape": SHAPES[int(shape)],
            "radius": _number(radius),
            "pitch": float(pitch),
            "roll": float(roll),
            "scale": [_number(v) for v in rest[:3]],
            "rotation": [float(v) for v in rest[3:6]],
            "color": rest[6],
        }
        for shape, radius, pitch, roll, *rest in rows
    ]


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)
