"""Staged objects in the layout of MIT Intrinsic Images: 16-bit files with one exposure, one file for every light."""

from pathlib import Path

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.writing import Writing
from diorama.io.images import quantise, write_png
from diorama.io.sheet import Sheet

_LAYERS = ("reflectance", "shading", "specular")


def write_mit(ask: Writing) -> Path:
    """Write `<case>/{original,diffuse,shading,reflectance,specular,mask,light01…light10}.png` as MIT Intrinsic Images.

    16-bit linear RGB, 0 outside the mask; shading is gray if the light is white and there is no inter-reflection. One
    exposure for all files of a scene, written to manifest.json, keeps every layer within range. The world
    `mit_intrinsic(root=…, objects=…)` reads the folder.
    """
    if {"light", "light_angle"} & ask.changes.keys():
        raise InputError("layout 'mit' writes every light: leave --do light=… out")
    world, sheet = ask.world.object, Sheet()
    with ask.manifest() as note:
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

    Layers are rounded first and images computed from them, so that original = round(R·S + C) holds to the last bit. In
    pixels that show several paints the channels of the shading differ a little; with `gray`, S is the largest of the three
    and R = diffuse/S there, as in the real capture, whose twin is gray.
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
