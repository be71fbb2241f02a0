"""The desk: a world, models and methods, and the quick answers about one scene (picture, logits, effects).

Answers come from the bench that runs use, so that numbers shown after a handle is released are those of a run. While a
handle is dragged, logits come from a pass of one image, and are marked as approximate: a bench passes a padded chunk of
eight, which takes six times as long and differs in the last bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from diorama.core.bench import Bench
from diorama.core.capabilities import Labelled, Parted
from diorama.core.cases import Case
from diorama.core.catalogue import Component, build
from diorama.core.contracts import Saved
from diorama.core.errors import InputError, Undefined
from diorama.core.frame import Frame
from diorama.core.guard import Outcome, attempt
from diorama.core.memory import Memory
from diorama.core.plan import Cell
from diorama.core.refusals import refusal
from diorama.core.scene import Scene
from diorama.data.look import changes_text
from diorama.io.images import quantise
from diorama.lab.handles import handles, resolved
from diorama.lab.messages import Reply, Request
from diorama.protocols.parts.part_tables import label_of, single_drops
from diorama.worlds.mosaic.mosaic import Mosaic

#: The cache of a process of the lab, in bytes.
BUDGET = 48 << 20
#: The protocols whose benches are used for logits alone (""), explanations and decompositions.
PLAIN = {"": "accuracy", "explain": "single_deletion", "decompose": "reconstruction"}

Send = Callable[[Reply], None]


class Stale(Exception):  # noqa: N818 - not a failure
    """Raised to stop work on a request when a newer one has arrived."""


def tried(call: Callable[[], Any]) -> Outcome:
    """`attempt`, but `Stale` is raised again."""
    outcome = attempt(call)
    if isinstance(outcome.error, Stale):
        raise outcome.error
    return outcome


@dataclass(frozen=True)
class Desk:
    """The world, models and methods of one process of the lab. Callbacks `fresh()` raise Stale if a newer request exists."""

    world: Component
    models: Sequence[Component] = ()
    methods: Sequence[Component] = ()
    memory: Memory = field(default_factory=lambda: Memory(BUDGET))
    cells: dict[tuple[Any, ...], Cell] = field(default_factory=dict)

    # Scenes

    def scene(self, request: Request) -> Scene:
        """The scene of a request: the one sent, or a numbered one of the world, after the changes."""
        world = self.world.object
        scene = request.scene or self.numbered(request.seed, request.index)[1]
        if scene.world != (own := self.own_name):
            raise InputError(f"the scene is of the world {str(scene.world)[:40]!r}, and the lab shows {own}")
        self._check_like_others(scene)
        changes = resolved(scene, request.do)
        return world.do(scene, **changes) if changes else scene

    def _check_like_others(self, scene: Scene) -> None:
        """Refuse a scene with other parameters than those of its world; the world itself checks their values."""
        known = self._first_scene.params
        if self.world.object.staged and scene.params.keys() != known.keys():
            odd = sorted(map(str, scene.params.keys() ^ known.keys()))[0]
            raise InputError(f"a scene of {scene.world} has the parameters {', '.join(known)}; check {odd[:40]!r}")
        if scene.params.get("size") != known.get("size"):
            raise InputError(f"size={str(scene.params.get('size'))[:40]}: the lab shows {known.get('size')}")

    @property
    def own_name(self) -> str:
        """The name of the world in its scenes."""
        return self._first_scene.world

    @cached_property
    def _first_scene(self) -> Scene:
        return self.numbered(0, 0)[1]

    def numbered(self, seed: int, index: int) -> tuple[str, Scene]:
        """The index-th scene of a seed, the same as in `diorama run`; for a list of scenes the index wraps around."""
        world = self.world.object
        return world.scene_at(seed, index if world.length is None else index % world.length)

    def sample(self, asked: Request) -> Reply:
        """The reply to a request for a numbered scene."""
        name, scene = self.numbered(asked.seed, asked.index)
        return Reply("scene", {"scene": scene.to_json(), "name": name, "index": asked.index})

    # Benches

    def bench(self, scene: Scene, model: int = 0, track: str = "", method: Component | None = None) -> Bench:
        """The bench of a scene, for the logits of a model or the answers of a method."""
        cell = self.cell(model, method, PLAIN[track])
        return cell.bench(case_of(scene), self.memory, None, middle(cell))

    def cell(self, model: int, method: Component | None, protocol: str, control: str = "") -> Cell:
        """The cell of a run that an answer would belong to."""
        key = (model, method.label if method else "", protocol, control)
        if key not in self.cells:
            judge = build("protocol", protocol)
            of_model = self.models[model] if judge.object.model and model < len(self.models) else None
            self.cells[key] = Cell(self.world, of_model, method, judge, 0, 1, control)
        return self.cells[key]

    def methods_of(self, track: str) -> list[Component]:
        """The methods of one track, without saved answers."""
        return [m for m in self.methods if m.object.track == track and not isinstance(m.object, Saved)]

    # Quick answers

    def quick(self, request: Request, send: Send, fresh: Callable[[], None]) -> None:
        """Send the picture, logits and effects that a request wants, each when it is ready."""
        scene = self.scene(request)
        if "picture" in request.want:
            send(self.picture(scene, request))
        if self.models and {"logits", "exact"} & set(request.want):
            fresh()
            send(self.logits(scene, request))
        if self.models and "effects" in request.want:
            fresh()
            send(self.effects(scene, request))

    def picture(self, scene: Scene, request: Request) -> Reply:
        """The image, its regions, the scene's handles, and the truth."""
        frame = self.bench(scene).frame(scene)
        arrays = {"image": quantise(frame.srgb(), 8)}
        if (regions := regions_of(frame)) is not None:
            arrays["regions"] = regions
        held = [asdict(handle) for handle in handles(self.world.object, scene)]
        did = changes_text(resolved(request.scene, request.do)) if request.scene else ""
        head = {"scene": scene.to_json(), "key": scene.key, "handles": held, "did": did, "drag": request.drag}
        return Reply("picture", {**head, "label": frame.truth.get("label"), "truth": _factor_texts(frame)}, arrays)

    def logits(self, scene: Scene, request: Request) -> Reply:
        """The logits: those of a run, or of a pass of one image while dragging."""
        bench = self._model_bench(scene, request.model)
        if request.drag:
            found = np.asarray(bench.model.object.logits(bench.frame(scene).srgb()[None]), np.float64)[0]  # type: ignore[union-attr]
        else:
            found = bench.logits([scene])[0]
        if not np.isfinite(found).all():
            raise InputError("the model gave logits that are NaN or infinite")
        return Reply("logits", {"values": found.tolist(), "approx": request.drag, "model": request.model})

    def effects(self, scene: Scene, request: Request) -> Reply:
        """How much the target's logit falls when each region is removed."""
        bench = self._model_bench(scene, request.model)
        target = self.target(bench, scene, request)
        outcome = attempt(lambda: self._effects(bench, scene, target))
        if isinstance(outcome.error, Undefined | InputError):
            return Reply("effects", {"target": target, "names": [], "values": [], "why": outcome.text})
        if outcome.error:
            raise outcome.error
        names, values = outcome.value
        return Reply("effects", {"target": target, "names": names, "values": values.tolist()})

    def _effects(self, bench: Bench, scene: Scene, target: int | None) -> tuple[list[str], np.ndarray]:
        world = self.world.object
        if target is None:
            raise Undefined("there is no target class")
        if isinstance(world, Parted):
            return list(world.part_names), single_drops(bench, scene, target)
        if isinstance(world, Mosaic):
            swaps = [world.do(scene, cell=i) for i in range(world.cells)]
            logits = bench.logits([scene, *swaps])[:, target]
            return [f"cell {i + 1}" for i in range(world.cells)], logits[0] - logits[1:]
        raise Undefined("nothing can be removed in this world")

    def target(self, bench: Bench, scene: Scene, request: Request) -> int | None:
        """The class that is explained: the one asked about, the true one, or the one predicted."""
        if request.target is not None:
            if request.target >= self.models[request.model].object.classes:
                raise InputError(f"there is no class {request.target}")
            return request.target
        if "label" in self.world.object.truth:
            return label_of(bench, scene)
        return int(bench.logits([scene])[0].argmax())

    def _model_bench(self, scene: Scene, model: int) -> Bench:
        if model >= len(self.models):
            raise InputError(f"there is no model {model}: the lab was started with {len(self.models)}")
        return self.bench(scene, model)

    # Start

    def hello(self) -> dict[str, Any]:
        """The data that a page needs before its first request."""
        world = self.world.object
        classes = [world.class_name(i) for i in range(len(world.classes))] if isinstance(world, Labelled) else []
        return {
            "world": self.world.label,
            "factors": dict(world.factors),
            "length": world.length,
            "models": [{"name": m.label, "classes": m.object.classes} for m in self.models],
            "methods": [{"name": m.label, "track": m.object.track} for m in self.methods],
            "classes": classes,
            "explains": bool(self.models and self.methods_of("explain")),
            "layers": {"reflectance", "shading"} <= set(world.truth),
            "encoders": [m.label for m in self.methods_of("represent")],
            "concepts": bool(self.models and self.models[0].object.layers and isinstance(world, Parted)),
            "taken": isinstance(world, Parted | Mosaic),
        }

    def check(self) -> None:
        """Refuse models and methods that do not fit the world, in one line, before anything is served."""
        for number, model in enumerate(self.models):
            if reason := refusal(self.cell(number, None, PLAIN[""])):
                raise InputError(reason)
            _ = model.digest
        for method in self.methods:
            track = method.object.track
            if track == "explain":
                if not self.models:
                    raise InputError(f"{method.label} explains a model: give one with -M (diorama ls models)")
                cell = self.cell(0, method, PLAIN["explain"])
                if (reason := refusal(cell)) and isinstance(self.world.object, Parted):
                    raise InputError(reason)
            elif track not in ("decompose", "represent"):
                raise InputError(f"{method.label} is a method of the {track} track, which the lab does not show")
            if isinstance(method.object, Saved):
                raise InputError(f"{method.label} reads saved answers, which new scenes do not have")


def middle(cell: Cell) -> int:
    """The point of a method's grid that the lab shows: the middle one. (A run chooses it on other cases.)"""
    return len(cell.asked.points) // 2


def case_of(scene: Scene) -> Case:
    """A scene as the case of a protocol."""
    return Case(f"lab-{scene.key[:12]}", {"scene": scene.to_json()})


def regions_of(frame: Frame) -> np.ndarray | None:
    """The regions of the picture, (h, w) uint8, 0 for background: parts, objects, cells, the sprite."""
    truth = frame.truth
    if truth.get("parts") is not None:
        return np.asarray(truth["parts"], np.uint8)
    if truth.get("cells") is not None:
        return np.asarray(truth["cells"]["index"], np.uint8) + np.uint8(1)
    if frame.scene.world == "sprites":
        return (frame.image[:, :, 0] > 0.5).astype(np.uint8)
    return None


def _factor_texts(frame: Frame) -> dict[str, str]:
    """The factors of a frame as texts."""
    factors = frame.truth.get("factors") or {}
    return {name: f"{value:.3g}" if isinstance(value, float) else str(value) for name, value in factors.items()}
