"""Rendering of bird scenes: scenes that share a camera and a lamp share one set of layers.

Nothing casts a shadow, so every part and every background object is a separate layer, and any choice of them is a
nearest-depth composite, byte for byte equal to rendering only those.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from diorama.core.errors import InputError
from diorama.core.scene import canonical
from diorama.render.toon import toon_image, toon_layers
from diorama.worlds.birds.parts import Cast, PartSet, cast_of, part_set, stage_of
from diorama.worlds.birds.scenes import Params

#: Samples per pixel when anti-aliased: few up to 128 pixels, on which the bundled networks were trained; many above, where
#: five samples would leave gaps in the outline, which is 0.0015 of the picture wide.
FEW, MANY, SMALL = 5, 16, 128
Arrays = dict[str, np.ndarray]


def render_params(scenes: Sequence[Params], size: int, antialias: bool, folder: str | None) -> list[Arrays]:
    """`image` uint8 (h, w, 3) sRGB, `parts` uint8 (h, w) and `depth` float32 (h, w) of every scene, in order."""
    parts = part_set(folder)
    groups: dict[str, list[int]] = {}
    for i, params in enumerate(scenes):
        groups.setdefault(canonical([params["camera"], params["light"]]), []).append(i)
    out: dict[int, Arrays] = {}
    for members in groups.values():
        pictures = _render_group([scenes[i] for i in members], size, samples_of(size) if antialias else 1, parts)
        out |= dict(zip(members, pictures, strict=True))
    return [out[i] for i in range(len(scenes))]


def samples_of(size: int) -> int:
    """How many samples an anti-aliased picture takes per pixel.

    >>> samples_of(128), samples_of(256)
    (5, 16)
    """
    return FEW if size <= SMALL else MANY


def _render_group(scenes: Sequence[Params], size: int, samples: int, parts: PartSet) -> list[Arrays]:
    casts = [cast_of(params) for params in scenes]
    everyone: Cast = {layer: member for cast in casts for layer, member in cast.items()}
    stage = stage_of(everyone, scenes[0], parts)
    try:
        if len(scenes) == 1:
            return [_arrays(toon_image(stage, size, size, samples))]
        layers = toon_layers(stage, size, size, samples)
    except ValueError as error:  # the camera is inside an object, a mesh is flat
        raise InputError(str(error)) from error
    return [_arrays(layers.composite(drop=everyone.keys() - cast.keys())) for cast in casts]


def _arrays(picture: Mapping[str, np.ndarray]) -> Arrays:
    parts = np.maximum(picture["part"], 0).astype(np.uint8)
    return {"image": picture["image"], "parts": parts, "depth": picture["depth"]}
