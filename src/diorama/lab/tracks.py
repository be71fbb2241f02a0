"""Other tracks for one scene: layers with a planted error, codes of encoders, a concept as the lamp moves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from diorama.core import spec
from diorama.core.answers import Layers
from diorama.core.capabilities import Parted
from diorama.core.catalogue import Component
from diorama.core.contracts import Fitting
from diorama.core.errors import InputError
from diorama.core.scene import Scene, rng
from diorama.data.traverse import Prepared, moved, prepared
from diorama.data.views import WorldView
from diorama.io.images import quantise
from diorama.lab.desk import PLAIN, Desk, Send, middle, tried
from diorama.lab.handles import Handle, handles, resolved, worded
from diorama.lab.messages import Reply, Request
from diorama.methods.decompose.leak import Leak
from diorama.metrics.cav import draw_sets, fit_cavs
from diorama.protocols.layers.judging import comparison

Fresh = Callable[[], None]
#: Values of a factor in a sweep, latents and pictures of a traversal, scenes to learn a concept from.
SWEEP, LATENTS, STEPS, SCENES = 7, 6, 7, 24


# Layers


def layers(desk: Desk, request: Request, send: Send, fresh: Fresh) -> None:
    """Reflectance and shading: first of the truth with a planted leak, then of every decomposer."""
    scene = desk.scene(request)
    frame = desk.bench(scene).frame(scene)
    if {"reflectance", "shading"} - set(frame.truth):
        return
    planted = Leak(request.leak).decompose([frame])
    note = f"the truth, with {request.leak:.0%} of its shading leaked into the reflectance"
    send(_compared("leak", -1, frame, planted, note))
    if request.drag:
        return
    for method in desk.methods_of("decompose"):
        fresh()
        number = list(desk.methods).index(method)
        if isinstance(method.object, Fitting):
            send(Reply("layers", {"method": number, "why": "it has to be fitted: run it with diorama run"}))
            continue
        outcome = tried(lambda method=method: desk.bench(scene, 0, "decompose", method).layers(scene))  # type: ignore[misc]
        if outcome.error:
            send(Reply("layers", {"method": number, "name": method.label, "why": outcome.reason}))
        else:
            send(_compared(method.label, number, frame, outcome.value, _point(desk, method)))


def _point(desk: Desk, method: Component) -> str:
    """A text about the parameters of a method with a grid."""
    cell = desk.cell(0, method, PLAIN["decompose"])
    point = cell.asked.points[middle(cell)]
    values = ", ".join(f"{name}={worded(value)}" for name, value in point.items())
    return f"at {values}, the middle of its grid; a run chooses on other cases" if point else ""


def _compared(name: str, number: int, frame: Any, found: Layers, note: str) -> Reply:
    """A reply with the panels of the gallery: truth, answer and error of both layers."""
    panels = comparison(frame, found)[1:]
    arrays = {f"{i}": quantise(panel.image, 8) for i, panel in enumerate(panels)}
    errors = [float(np.abs(panels[i].image).mean()) for i in (2, 5)]
    captions = [panel.caption for panel in panels]
    about = {"method": number, "name": name, "said": note, "captions": captions, "errors": errors}
    return Reply("layers", about, arrays)


# Codes


def codes(desk: Desk, request: Request, send: Send, fresh: Fresh) -> None:
    """For every encoder, how far each latent moves while one true factor moves, and a traversal of each latent."""
    scene = desk.scene(request)
    sweeps = [sweep for handle in handles(desk.world.object, scene) if (sweep := swept(handle))]
    for method in desk.methods_of("represent"):
        fresh()
        number = list(desk.methods).index(method)
        send(Reply("progress", {"method": number, "name": method.label, "done": 0, "of": None}))
        outcome = tried(partial(_codes, desk, scene, method, sweeps, fresh))
        if outcome.error:
            send(Reply("codes", {"method": number, "name": method.label, "why": outcome.reason}))
        else:
            head, arrays = outcome.value
            send(Reply("codes", {"method": number, "name": method.label, **head}, arrays))


def swept(handle: Handle) -> tuple[str, list[dict[str, Any]]] | None:
    """A factor and the changes that move it over its range; None for handles that are no single factor."""
    if handle.kind == "slider":
        return handle.label, [{handle.name: float(v)} for v in np.linspace(handle.low, handle.high, SWEEP)]
    if handle.kind == "menu" and len(handle.options) > 1 and all(option.do for option in handle.options):
        places = np.unique(np.linspace(0, len(handle.options) - 1, SWEEP).astype(int))
        return handle.label, [handle.options[i].do for i in places]
    return None


def _codes(
    desk: Desk, scene: Scene, method: Component, sweeps: list[tuple[str, list[dict[str, Any]]]], fresh: Fresh
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    view = WorldView(desk.world.object, desk.world.label)
    method = method.on(desk.world.name)
    encoder = partial(prepared, method.object.for_track("represent"), view, method.label)
    ready: Prepared = desk.memory.keep("run", ("encoder", method.digest), encoder)
    spread = np.maximum(np.std(ready.codes, axis=0), 1e-9)
    paths, bench = [], desk.bench(scene)
    for _, changes in sweeps:
        fresh()
        frames = bench.frames([view.do(scene, **resolved(scene, change)) for change in changes])
        paths.append(np.asarray(ready.method.encode([f.blind() for f in frames]), np.float64))
    motion = np.array([np.ptp(path, axis=0) for path in paths]) / spread if paths else np.zeros((0, len(spread)))
    head: dict[str, Any] = {"factors": [name for name, _ in sweeps], "motion": motion.T.tolist()}
    fresh()
    if not ready.decodes:
        return {**head, "latents": [], "why_not": "it cannot decode, so its latents cannot be drawn"}, {}
    found = moved(ready, view.name, bench.frame(scene), STEPS, None)
    pictures = np.concatenate([np.concatenate(list(row), axis=1) for row in found.images[:LATENTS]], axis=0)
    head |= {"latents": list(found.latents[:LATENTS]), "steps": STEPS}
    drawn = {"traversal": pictures, "decoded": found.decoded}
    return head, {name: quantise(image.astype(np.float32), 8) for name, image in drawn.items()}


# A concept as the lamp moves


def concept(desk: Desk, request: Request, send: Send, fresh: Fresh) -> None:
    """The score of a concept vector in a layer, for the scene as it is and for other positions of the lamp."""
    if not desk.models or not isinstance(desk.world.object, Parted):
        raise InputError("a concept needs a model and a world with parts")
    model = desk.models[request.model].object
    layer = model.cam_layer or (model.layers[-1] if model.layers else None)
    if layer is None:
        raise InputError("the model has no layer in which a concept could be found")
    text = request.concept or f"{desk.world.object.part_names[0]}=none"
    scene = desk.scene(request)
    learnt = partial(_learnt, desk, request.model, layer, text, fresh)
    cavs = desk.memory.keep("run", ("concept", request.model, text), learnt)
    angles = np.linspace(-np.pi / 2, np.pi / 2, 13)
    positions = [desk.world.object.do(scene, light={"pitch": float(a), "roll": 0.0}) for a in angles]
    fresh()
    found = cavs.scores(_activations(desk, request.model, layer, [scene, *positions]))[0]
    head = {"concept": text, "layer": layer, "accuracy": float(cavs.accuracy[0]), "now": float(found[0])}
    send(Reply("concept", {**head, "angles": np.degrees(angles).tolist(), "scores": found[1:].tolist()}))


def _learnt(desk: Desk, model: int, layer: str, text: str, fresh: Fresh) -> Any:
    """The direction that separates scenes after the change from unchanged scenes."""
    world = desk.world.object
    plain = [world.sample(rng(0, "lab concept", i)) for i in range(2 * SCENES)]
    after = [world.do(scene, **spec.changes(text)) for scene in plain[:SCENES]]
    fresh()
    changed = _activations(desk, model, layer, after)
    fresh()
    others, generator = _activations(desk, model, layer, plain[SCENES:]), np.random.default_rng(0)
    return fit_cavs("ridge", changed, others, draw_sets(SCENES, SCENES, 1, generator), generator)


def _activations(desk: Desk, model: int, layer: str, scenes: list[Scene]) -> np.ndarray:
    frames = desk.bench(scenes[0]).frames(scenes)
    images = np.stack([frame.srgb() for frame in frames])
    found = [desk.models[model].object.features(images[i : i + 8], layer) for i in range(0, len(images), 8)]
    return np.concatenate(found).reshape(len(images), -1).astype(np.float32)
