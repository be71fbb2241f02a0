"""The factors of CANDLE: their values in the published order, the index of a combination, the metadata of an image."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diorama.core.errors import InputError, did_you_mean

#: In the published order. The paper's data set has the first three, the later one (AAAI 2022) all sixteen.
SCENES = (
    *("indoor", "outdoor", "playground", "bridge", "city square", "hall", "grassland", "garage", "street", "beach"),
    *("station", "tunnel", "moonlit grass", "dusk city", "skywalk", "garden"),
)
#: From the slowest to the fastest in the published numbering.
NAMES = ("scene", "light", "object", "color", "size", "rotation")
VALUES: dict[str, tuple[Any, ...]] = {
    "scene": SCENES[:3],
    "light": ("left", "middle", "right"),
    "object": ("cube", "sphere", "cylinder", "cone", "torus"),
    "color": ("red", "blue", "yellow", "purple", "orange"),
    "size": (1.5, 2.0, 2.5),
    "rotation": (0, 15, 30, 45, 60, 90),
}
WIDTH, HEIGHT = 320, 240  # pixels of the published images, in which metadata counts


def levels(scenes: int) -> tuple[int, ...]:
    """The number of values of each factor, in the order of NAMES.

    >>> levels(3), int(np.prod(levels(3)))
    ((3, 3, 5, 5, 3, 6), 4050)
    """
    return (scenes, *(len(VALUES[name]) for name in NAMES[1:]))


def known(name: str, scenes: int = len(SCENES)) -> tuple[Any, ...]:
    """The values of a factor."""
    return SCENES[:scenes] if name == "scene" else VALUES[name]


def level_of(name: str, value: Any, scenes: int = len(SCENES)) -> int:
    """The index of a value among those of its factor; an InputError names the valid ones.

    >>> level_of("color", "yellow"), level_of("size", 2)
    (2, 1)
    """
    found = known(name, scenes)
    if isinstance(value, bool) or value not in found:
        if isinstance(value, str) and name != "size":
            raise InputError(f"candle: {name}={value!r}: {did_you_mean(value, [str(v) for v in found])}")
        raise InputError(f"candle: {name}={value!r}: give one of {', '.join(map(str, found))}")
    return found.index(value)


def grid(scenes: int = 3) -> np.ndarray:
    """Every combination once, in the published order: (4050, 6) positions in the order of NAMES for three scenes.

    >>> grid()[3541].tolist()
    [2, 1, 4, 1, 2, 1]
    """
    return np.stack(np.unravel_index(np.arange(np.prod(levels(scenes))), levels(scenes)), axis=1)


def values_of(row: Sequence[int]) -> dict[str, Any]:
    """The factors of a row of `grid` by name."""
    return {name: known(name)[int(level)] for name, level in zip(NAMES, row, strict=True)}


def metadata(
    factors: Mapping[str, Any], loose: Sequence[int], visible: Sequence[int] | None, height: int = HEIGHT
) -> dict[str, Any]:
    """The published JSON of an image, with the tight box beside the published one.

    Both boxes are [[xmin, ymin], [xmax, ymax]] in pixels, with the origin at the bottom left and y upwards; `bounds` is
    loose, made before the camera's jitter and not cut off at the image's edge; `visible_bounds` is tight (far edge
    excluded).
    The arguments are x0, y0, x1, y1 from the top left, as in `Frame.truth["boxes"]`.

    >>> m = metadata({"object": "cube", "color": "red", "size": 2.0, "rotation": 0, "scene": "hall", "light": "left"},
    ...              (150, 100, 245, 140), None)
    >>> m["objects"]["Cube_0"]["bounds"], m["bounds_origin"]
    ([[150, 100], [245, 140]], 'bottom-left')
    """
    thing = {
        "object_type": factors["object"],
        **{name: factors[name] for name in ("color", "size", "rotation")},
        "bounds": flipped(loose, height),
        "visible_bounds": None if visible is None else flipped(visible, height),
    }
    about = {"scene": factors["scene"], "lights": factors["light"], "bounds_origin": "bottom-left"}
    return {**about, "objects": {f"{factors['object'].capitalize()}_0": thing}}


def flipped(box: Sequence[int], height: int = HEIGHT) -> list[list[int]]:
    """x0, y0, x1, y1 from the top left as [[xmin, ymin], [xmax, ymax]] from the bottom left.

    >>> flipped((10, 20, 30, 60))
    [[10, 180], [30, 220]]
    """
    x0, y0, x1, y1 = (int(v) for v in box)
    return [[x0, height - y1], [x1, height - y0]]
