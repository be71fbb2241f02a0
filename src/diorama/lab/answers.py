"""Slow answers about a scene: maps of explainers with their part importances, and the scores of protocols for this case."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from diorama.core.answers import Answer
from diorama.core.bench import Bench
from diorama.core.capabilities import Parted
from diorama.core.catalogue import Component, build, entries
from diorama.core.contracts import Fitting, Protocol
from diorama.core.guard import attempt
from diorama.core.plan import Cell
from diorama.core.refusals import lacking, refusal
from diorama.core.scene import Scene
from diorama.lab.desk import Desk, Send, case_of, middle, tried
from diorama.lab.messages import Reply, Request
from diorama.protocols.mosaics.evidence import evidence_map
from diorama.protocols.parts.importance import part_importance
from diorama.protocols.parts.pictures import heat_of
from diorama.protocols.parts.single_deletion import SingleDeletion
from diorama.worlds.mosaic.mosaic import Mosaic

#: Seconds between two progress messages.
SAY_EVERY = 0.2
#: The most metrics of a protocol that are shown.
SHOWN = 4


def interruptible(model: Component, between: Callable[[], None]) -> Component:
    """A copy of the model that calls `between` before every pass, to count passes and to stop outdated work."""
    inner = model.object
    kind = type(inner)

    def logits(self: Any, images: np.ndarray) -> np.ndarray:
        between()
        return kind.logits(self, images)

    copied = copy.copy(inner)
    made = type(kind.__name__, (kind,), {"__slots__": (), "logits": logits, "__module__": kind.__module__})
    object.__setattr__(copied, "__class__", made)  # works for frozen dataclasses too
    found = replace(model)
    object.__setattr__(found, "object", copied)
    return found


class Passes:
    """Counts a method's passes through the model, reports progress, and stops outdated work (`fresh` raises Stale)."""

    def __init__(self) -> None:
        self.fresh: Callable[[], None] = lambda: None
        self.say: Callable[[int, int | None], None] = lambda done, total: None
        self.known: dict[str, int] = {}
        self.done, self.doing, self.last = 0, "", 0.0

    def between(self) -> None:
        """Called before every pass."""
        self.fresh()
        self.done += 1
        if time.monotonic() - self.last > SAY_EVERY:
            self.last = time.monotonic()
            self.say(self.done, self.known.get(self.doing))

    def begin(self, doing: str) -> None:
        """Start counting the passes of another computation."""
        self.doing, self.done, self.last = doing, 0, time.monotonic()

    def end(self) -> None:
        """Record the number of passes of the finished computation, as the total for the next time."""
        self.known[self.doing] = max(self.done, 1)


def maps(desk: Desk, request: Request, send: Send, passes: Passes) -> None:
    """A map of every explainer, gradient methods first: they take one pass."""
    scene = desk.scene(request)
    order = sorted(desk.methods_of("explain"), key=lambda m: not m.object.gradients)
    for method in order:
        passes.fresh()
        number = list(desk.methods).index(method)
        passes.say = partial(_progress, send, number, method.label)
        passes.begin(f"{method.label}/{request.model}")
        outcome = tried(partial(_map, desk, request, scene, method))
        if outcome.error:
            send(Reply("map", {"method": number, "why": outcome.reason}))
            continue
        passes.end()
        head, arrays = outcome.value
        send(Reply("map", {"method": number, **head}, arrays))


def _progress(send: Send, number: int, label: str, done: int, total: int | None) -> None:
    send(Reply("progress", {"method": number, "name": label, "done": done, "of": total}))


def _map(desk: Desk, request: Request, scene: Scene, method: Component) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    start = time.perf_counter()
    bench = desk.bench(scene, request.model, "explain", method)
    target = desk.target(bench, scene, request)
    answer = bench.answer(scene, target)
    heat, signed = heat_of(answer, bench.frame(scene).image.shape[:2])
    top = max(float(np.quantile(np.abs(heat), 0.995)), 1e-12)
    head = {"target": target, "signed": signed, "note": answer.note, "claims": claims(bench, scene, answer)}
    seconds = round(time.perf_counter() - start, 3)
    return head | {"seconds": seconds}, {"heat": np.rint(np.clip(heat / top, -1, 1) * 127).astype(np.int8)}


def claims(bench: Bench, scene: Scene, answer: Answer) -> list[float] | None:
    """The importance of each region according to the answer, as protocols compute it; None if they have no conversion."""
    world = bench.world.object
    if isinstance(world, Parted):
        elements = SingleDeletion().elements(bench, scene)
        found = attempt(lambda: part_importance(answer, elements))
    elif isinstance(world, Mosaic):
        index = bench.frame(scene).truth["cells"]["index"]
        found = attempt(lambda: np.bincount(index.ravel(), evidence_map(answer)[0].ravel(), world.cells))
    else:
        return None
    return None if found.error else found.value.tolist()


# Scores of protocols


def judges(desk: Desk, track: str) -> list[str]:
    """The protocols of a track that judge single scenes of this world and need no parameters."""
    found = []
    for name in entries("protocol"):
        outcome = attempt(partial(build, "protocol", name))
        if outcome.error:
            continue
        protocol: Any = outcome.value
        single = type(protocol.object).case is Protocol.case
        if single and protocol.object.track == track and not lacking(desk.world, protocol):
            found.append(name)
    return found


def scores(desk: Desk, request: Request, send: Send, passes: Passes) -> None:
    """The scores of this case for every method, the truth itself and chance."""
    scene = desk.scene(request)
    for track in ("explain", "decompose"):
        methods = [m for m in desk.methods_of(track) if not isinstance(m.object, Fitting)]
        if not methods or (track == "explain" and not desk.models):
            continue
        chance = build("method", f"{track}/random")
        for protocol in desk.memory.keep("run", ("judges", track), partial(judges, desk, track)):
            asked = [("oracle", None, "oracle"), ("chance", chance, "random"), *((m.label, m, "") for m in methods)]
            lines = []
            for name, method, control in asked:
                passes.fresh()
                passes.say = lambda done, total: None
                passes.begin("")
                cell = desk.cell(request.model, method, protocol, control)
                if method is None or not refusal(cell):
                    lines.append({"name": name, "scores": _scored(desk, cell, scene)})
            judge: Any = build("protocol", protocol).object
            listed = [metric for metric in judge.metrics if metric not in judge.unlisted][:SHOWN]
            about = {"protocol": protocol, "track": track, "metrics": listed, "direction": judge.direction}
            send(Reply("scores", {**about, "lines": lines}))


def _scored(desk: Desk, cell: Cell, scene: Scene) -> dict[str, Any]:
    """Every metric of the case as in a row: a value, or why there is none."""
    case = case_of(scene)
    outcome = tried(lambda: list(cell.protocol.object.score(cell.bench(case, desk.memory, None, middle(cell)), case)))
    if outcome.error:
        return {metric: {"value": None, "why": outcome.text} for metric in cell.protocol.object.metrics}
    return {s.metric: {"value": s.value, "why": s.reason} for s in outcome.value}
