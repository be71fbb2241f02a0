"""The renderer: stages of triangle meshes to images with exact layers. Imports nothing else of Diorama.

    toon_image(stage, w, h, samples=5)    flat toon images (FunnyBirds), ids, parts, depth
    toon_layers(stage, w, h).composite(drop={"beak"})   the toon image without a layer, byte for byte
    render(stage, w, h, samples, bounces) physically shaded: albedo·shading + specular = image

Names load on first use, so that importing this package needs neither numba nor Embree.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diorama.render.layers import ToonLayers
    from diorama.render.mesh import Mesh, read_mesh
    from diorama.render.path import render
    from diorama.render.stage import Camera, Environment, Instance, PointLight, RectLight, Stage
    from diorama.render.toon import Toon, toon_image, toon_layers

_HOME = {
    "ToonLayers": "layers",
    "Mesh": "mesh",
    "read_mesh": "mesh",
    "render": "path",
    **dict.fromkeys(("Camera", "Environment", "Instance", "PointLight", "RectLight", "Stage"), "stage"),
    **dict.fromkeys(("Toon", "toon_image", "toon_layers"), "toon"),
}
__all__ = [
    "Camera",
    "Environment",
    "Instance",
    "Mesh",
    "PointLight",
    "RectLight",
    "Stage",
    "Toon",
    "ToonLayers",
    "read_mesh",
    "render",
    "toon_image",
    "toon_layers",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
