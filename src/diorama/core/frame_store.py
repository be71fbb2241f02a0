"""The disk cache for frames of worlds that render slowly; a cached frame equals the rendered one to the bit.

The cache key is the digest of the world's key (parameters, data, source of the renderer, libraries) and the scene.
`io.disk_cache` says where the cache is, how large it gets, and what happens to damaged files.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from diorama.core.catalogue import Component
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.disk_cache import DISK_CACHE

_LAYERS = ("reflectance", "shading", "specular")


def rendered(world: Component, scenes: Sequence[Scene]) -> list[Frame]:
    """The frames of scenes in order; those of a slow world come from the disk cache if it has them."""
    if not world.object.slow:
        return list(world.object.render(list(scenes)))
    found = {scene.key: _recall(world, scene) for scene in scenes}
    missing = {scene.key: scene for scene in scenes if found[scene.key] is None}
    for frame in world.object.render(list(missing.values())) if missing else ():
        found[frame.scene.key] = frame
        _keep(world, frame)
    return [found[scene.key] for scene in scenes]  # type: ignore[misc]


def _keep(world: Component, frame: Frame) -> None:
    """Add a frame to the cache, unless its arrays or JSON values would be read back differently."""
    arrays = {n: v for n, v in frame.truth.items() if isinstance(v, np.ndarray)}
    words = {n: v for n, v in frame.truth.items() if n not in arrays}
    header = {"encoding": frame.encoding, "order": list(frame.truth), "words": words}
    try:
        text = json.dumps(header, allow_nan=False)
    except (TypeError, ValueError):
        return
    exact = _with_types(json.loads(text)) == _with_types(header)
    if not exact or not all(v.flags.c_contiguous and not v.dtype.hasobject for v in (frame.image, *arrays.values())):
        return
    arrays |= {} if _is_composed(frame) else {"image": frame.image}
    DISK_CACHE.keep([world.digest, frame.scene.key], {**arrays, "header": np.frombuffer(text.encode(), np.uint8)})


def _recall(world: Component, scene: Scene) -> Frame | None:
    arrays = DISK_CACHE.recall([world.digest, scene.key])
    if arrays is None:
        return None
    try:
        header = json.loads(arrays.pop("header").tobytes())
        image = arrays.pop("image", None)
        truth = {n: arrays[n] if n in arrays else header["words"][n] for n in header["order"]}
        return Frame(scene, _compose(arrays) if image is None else image, header["encoding"], truth)
    except (KeyError, ValueError, TypeError, AttributeError):  # another file in its place
        return None


def _is_composed(frame: Frame) -> bool:
    """Whether the image can be computed from its layers to the last bit, so that it need not be stored."""
    layers = {name: frame.truth.get(name) for name in _LAYERS}
    if not all(isinstance(v, np.ndarray) and v.shape == frame.image.shape for v in layers.values()):
        return False
    return np.array_equal(_compose(layers), frame.image)


def _compose(layers: dict[str, Any]) -> np.ndarray:
    return np.asarray(layers["reflectance"] * layers["shading"] + layers["specular"])


def _with_types(value: Any) -> Any:
    """A JSON value with its types, for strict comparison: 1 is not 1.0 or True."""
    if isinstance(value, dict):
        return {(type(k), k): _with_types(v) for k, v in value.items()}
    return [_with_types(v) for v in value] if isinstance(value, list) else (type(value), value)
