"""The layers of staged tabletop scenes, each traced once and shared by all images that have it in common.

With direct light only, shading and highlights do not depend on paint, reflectance does not depend on light, and the
lamp's temperature multiplies both. So R (per paint), S and C (per light, gray) are traced separately and every image is
composed as R·S·tint + C·tint. In pixels that show several surfaces, R and S are the plain means over the pixel: only there
the result differs from the traced image of `tabletop`, whose S is weighted by the paints.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.keys import source_key
from diorama.core.scene import Scene, canonical
from diorama.io.disk_cache import DISK_CACHE
from diorama.render.stage import Stage
from diorama.worlds.tabletop.stage import SHADOWS, UNIFORM, Params, lamp_position, stage_of, tint

#: Bytes of layers that are kept: all of ten scenes' sweeps of the lamp at 128 pixels.
_KEPT = 256 << 20


@dataclass(frozen=True, slots=True)
class Studio:
    """The settings that all pictures of a world share."""

    size: int
    samples: int
    meshes: str | None = None
    textures: str | None = None
    up: str = "y"
    content: str = ""  # the digest of the files of meshes and textures


class Lighting(NamedTuple):
    """Gray shading and highlights (h, w) of a white lamp, and the part map."""

    shading: np.ndarray
    specular: np.ndarray
    parts: np.ndarray


def compose(studio: Studio, scene: Scene) -> Frame:
    """The frame of a tabletop scene without inter-reflection; image = R·S + C to the last bit."""
    params = scene.params
    light, paint = lighting(studio, params), reflectance(studio, params)
    colour = tint(params["temperature"]).astype(np.float32)
    shading, specular = light.shading[:, :, None] * colour, light.specular[:, :, None] * colour
    truth = {
        "mask": light.parts > 0,
        "parts": light.parts,
        "reflectance": paint,
        "shading": shading,
        "specular": specular,
        "lights": [lamp_position(params).tolist()],
        "factors": {name: params[name] for name in ("light", "light_angle", "temperature", "uniform", "specular")},
    }
    return Frame(scene, paint * shading + specular, "linear", truth)


def lighting(studio: Studio, params: Params) -> Lighting:
    """Shading and highlights of a scene, which do not depend on its paints."""
    bare = [{k: v for k, v in thing.items() if k != "paint"} | {"paint": [UNIFORM] * 3} for thing in params["objects"]]
    kept = {k: params[k] for k in ("camera", "light_angle", "power", "radius", "fill", "specular", "pan")}
    place = {"lights": [params["lights"][params["light"]]], "light": 0, "objects": bare}
    return Lighting(*_kept(_lit, studio, {**kept, **place, "table": UNIFORM, "uniform": True, "temperature": None}))


def _lit(studio: Studio, params: Params) -> tuple[np.ndarray, ...]:
    picture = _traced(studio, params, lambda stage: stage)
    parts = np.maximum(picture["part"], 0).astype(np.uint8)
    return picture["shading"][:, :, 0], picture["specular"][:, :, 0], parts


def reflectance(studio: Studio, params: Params) -> np.ndarray:
    """The mean reflectance (h, w, 3) of each pixel, which does not depend on the light."""
    paints = [[UNIFORM] * 3 if params["uniform"] else thing["paint"] for thing in params["objects"]]
    kept = {k: params[k] for k in ("camera", "pan", "table")}
    things = [{k: thing[k] for k in ("mesh", "position", "turn", "scale")} for thing in params["objects"]]
    if any(isinstance(paint, dict) for paint in paints):
        painted = [{**thing, "paint": paint} for thing, paint in zip(things, paints, strict=True)]
        return _kept(_painted, studio, {**kept, "objects": painted})[0]
    marked = [{**thing, "paint": code} for thing, code in zip(things, np.eye(3).tolist(), strict=False)]
    (shares,) = _kept(_shares, studio, {**kept, "objects": marked, "table": 0.0})
    return shares @ np.array([[params["table"]] * 3, *paints], np.float32)


def _painted(studio: Studio, params: Params) -> tuple[np.ndarray]:
    return (_traced(studio, params, _dark)["albedo"],)


def _shares(studio: Studio, params: Params) -> tuple[np.ndarray]:
    """(h, w, 1 + objects): the shares of table and objects in each pixel, from objects painted in pure colours."""
    picture = _traced(studio, params, _dark)
    things = picture["albedo"][:, :, : len(params["objects"])]
    table = picture["coverage"][:, :, None] - things.sum(axis=2, keepdims=True)
    return (np.concatenate([table, things], axis=2),)


def _dark(stage: Stage) -> Stage:
    """The stage without any light: only camera rays are traced, which is quick."""
    unlit = [replace(instance, specular=None) for instance in stage.instances]
    return replace(stage, instances=unlit, lights=(), environment=None)


_ANY_LIGHT = {"lights": [[0.0, -4.0, 4.0]], "light": 0, "light_angle": None, "temperature": None, "power": 1.0}
_DEFAULTS = {**_ANY_LIGHT, "radius": 0.5, "fill": 0.0, "uniform": False, "specular": False}


def _traced(studio: Studio, params: Params, change: Callable[[Stage], Stage]) -> dict[str, Any]:
    from diorama.render import render

    things = [{"gloss": [0.0, 1.0], **thing} for thing in params["objects"]]
    try:
        stage = stage_of({**_DEFAULTS, **params, "objects": things}, studio.meshes, studio.textures, studio.up)
        return render(change(stage), studio.size, studio.size, studio.samples, 0, shadows=SHADOWS)
    except InputError:
        raise
    except ValueError as error:  # a mesh file cannot be read, the camera is inside an object
        raise InputError(f"tabletop: {error}") from error


HELD: OrderedDict[tuple[str, Studio, str], tuple[np.ndarray, ...]] = OrderedDict()


def _kept(make: Callable[[Studio, Params], tuple[np.ndarray, ...]], studio: Studio, params: Params) -> Any:
    """The result of `make` for these parameters, computed once; the least recently used results are dropped first."""
    key = make.__name__, studio, canonical(params)
    if key not in HELD:
        HELD[key] = tuple(_frozen(layer) for layer in _stocked(make, studio, params))
        while sum(layer.nbytes for layers in HELD.values() for layer in layers) > _KEPT and len(HELD) > 1:
            HELD.popitem(last=False)
    HELD.move_to_end(key)
    return HELD[key]


def _stocked(make: Callable[[Studio, Params], tuple[np.ndarray, ...]], studio: Studio, params: Params) -> Any:
    """The result of `make`, from the disk if an earlier run stored it there."""
    named = {**asdict(studio), "meshes": studio.meshes is not None, "textures": studio.textures is not None}
    what = [_source(), make.__name__, named, params]
    found = DISK_CACHE.recall(what)
    if found is None:
        found = {str(i): np.ascontiguousarray(layer) for i, layer in enumerate(make(studio, params))}
        DISK_CACHE.keep(what, found)
    return [found[str(i)] for i in range(len(found))]


@cache
def _source() -> dict[str, object]:
    return source_key(Path(__file__))


def _frozen(layer: np.ndarray) -> np.ndarray:
    """A read-only copy, because it is shared."""
    kept = np.array(layer, order="C")
    kept.flags.writeable = False
    return kept
