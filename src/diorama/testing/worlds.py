"""Contract checks for worlds. Each returns a problem in one line, or an empty string.

A world's declarations are checked when it is built (`adapt/declared.py`).
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import Frame, residual
from diorama.core.guard import attempt
from diorama.core.scene import Scene, canonical, rng


def scenes_are_json(world: Any) -> str:
    """A scene survives a round trip through canonical JSON."""
    scene = world.sample(rng(0, "check"))
    if not isinstance(scene, Scene):
        return f"sample returned {type(scene).__name__}, not a Scene"
    again = Scene.from_json(json.loads(canonical(scene.to_json())))
    return "" if again == scene else "a scene changes when it is written to JSON"


def sampling_follows_the_generator(world: Any) -> str:
    """The same generator state gives the same scene, and different states give different scenes (if there are several)."""
    scenes = [world.sample(rng(0, "check", i)) for i in (0, 0, *range(1, 8))]
    if scenes[0] != scenes[1]:
        return "sample(rng) gave two scenes for one state of the generator: it uses another random source"
    if len({scene.key for scene in scenes}) == 1 and world.length != 1:
        return "sample(rng) ignores the generator: eight draws gave one scene"
    return ""


def rendering_is_pure(world: Any) -> str:
    """The same scenes give the same bytes, alone or together, and rendering does not change the scenes."""
    scenes = [world.scene_at(0, i)[1] for i in range(min(2, world.length or 2))]
    before = [canonical(scene.to_json()) for scene in scenes]
    together, alone = world.render(scenes), [world.render([scene])[0] for scene in scenes]
    if len(together) != len(scenes):
        return f"render gave {len(together)} frames for {len(scenes)} scenes"
    if before != [canonical(scene.to_json()) for scene in scenes]:
        return "render changed the scenes it was given"
    for a, b in zip(together, alone, strict=True):
        if not _same(a, b):
            return "a scene renders differently alone and with others, or when it is rendered again"
    return ""


def frames_carry_their_truth(world: Any) -> str:
    """The frame has everything declared in `truth`, finite and of the frame's size."""
    frame = world.render([world.scene_at(0, 0)[1]])[0]
    if not np.isfinite(frame.image).all():
        return "the image has values that are NaN or infinite"
    for name in world.truth:
        if name not in frame.truth:
            return f"`truth` declares {name!r}, but the frame does not have it"
    for name in ("mask", "depth", "parts", "normal", "reflectance", "shading", "specular"):
        layer = frame.truth.get(name)
        if layer is not None and np.shape(layer)[:2] != frame.image.shape[:2]:
            return f"truth {name!r} has shape {np.shape(layer)}, the image {frame.image.shape}"
    return ""


def image_is_reflectance_times_shading(world: Any) -> str:
    """Staged worlds satisfy image = reflectance · shading + specular on the mask exactly."""
    if not world.staged or not {"reflectance", "shading"} <= set(world.truth):
        return ""
    off = residual(world.render([world.scene_at(0, 0)[1]])[0])
    return f"image and R·S + C differ by {off:.2%} of the image" if off > 1e-5 else ""


def do_refuses_what_it_does_not_know(world: Any) -> str:
    """An unknown factor is an InputError or TypeError, not silently ignored."""
    error = attempt(lambda: world.do(world.scene_at(0, 0)[1], no_such_factor=1)).error
    if error is None:
        return "do(scene, no_such_factor=1) was accepted"
    proper = isinstance(error, InputError | TypeError)
    return "" if proper else f"do(scene, no_such_factor=1) raised {type(error).__name__}"


def do_is_local(world: Any) -> str:
    """`do` does not change its argument; a change of light changes no pixel's reflectance."""
    _, scene = world.scene_at(0, 0)
    before = canonical(scene.to_json())
    if "light" not in world.factors or not isinstance(scene.params.get("light"), int):
        return ""
    other = world.do(scene, light=1)
    if canonical(scene.to_json()) != before:
        return "do changed the scene it was given instead of returning another"
    changed = {k for k in scene.params if scene.params[k] != other.params.get(k)}
    if changed != {"light"}:
        return f"do(scene, light=1) changed {sorted(changed) or 'nothing'}"
    old, new = world.render([scene, other])
    kept = new.truth.get("reflectance")
    if kept is not None and not np.array_equal(kept, old.truth["reflectance"]):
        return "do(scene, light=1) changed the reflectance"
    return "do(scene, light=1) did not change the image" if np.array_equal(old.image, new.image) else ""


def _same(a: Frame, b: Frame) -> bool:
    if a.truth.keys() != b.truth.keys() or not np.array_equal(a.image, b.image):
        return False
    return all(np.array_equal(a.truth[k], b.truth[k]) for k in a.truth if isinstance(a.truth[k], np.ndarray))


CHECKS: tuple[Callable[[Any], str], ...] = (
    scenes_are_json,
    sampling_follows_the_generator,
    rendering_is_pure,
    frames_carry_their_truth,
    image_is_reflectance_times_shading,
    do_refuses_what_it_does_not_know,
    do_is_local,
)
