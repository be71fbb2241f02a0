"""The desk: a world, models and methods, and what a page may want to know of one scene; quick answers live here.

Everything is asked through the bench that a run uses, so that what is shown after a handle is let go are the numbers that
a run would write. While a handle is dragged logits come from a pass of that one image, and are marked: a bench passes a
padded chunk of eight, which costs six times as much and differs in the last bits.
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
from diorama.data.look import told
from diorama.io.images import quantise
from diorama.lab.handles import handles, resolved
from diorama.lab.messages import Reply, Request
from diorama.protocols.parts.part_tables import label_of, single_drops
from diorama.worlds.mosaic.mosaic import Mosaic

#: Bytes of frames, logits and answers that a process of the lab remembers.
BUDGET = 48 << 20
#: The protocols whose benches are used where no protocol judges: the model alone, explanations, decompositions.
PLAIN = {"": "accuracy", "explain": "single_deletion", "decompose": "reconstruction"}

Send = Callable[[Reply], None]


class Stale(Exception):  # noqa: N818 - no failure: somebody asked for something newer
    """Raised where work goes on that nobody waits for any more."""


def tried(call: Callable[[], Any]) -> Outcome:
    """What a call gives, or how it fails; `Stale` is raised again, since nobody waits for either."""
    outcome = attempt(call)
    if isinstance(outcome.error, Stale):
        raise outcome.error
    return outcome


@dataclass(frozen=True)
class Desk:
    """What one process of the lab has before it. `fresh()` raises Stale if a newer request is there."""

    world: Component
    models: Sequence[Component] = ()
    methods: Sequence[Component] = ()
    memory: Memory = field(default_factory=lambda: Memory(BUDGET))
    cells: dict[tuple[Any, ...], Cell] = field(default_factory=dict)

    # Scenes

    def scene(self, request: Request) -> Scene:
        """The scene that is asked about: the one sent, or one of the world's, after the changes."""
        world = self.world.object
        scene = request.scene or self.numbered(request.seed, request.index)[1]
        if scene.world != (own := self.own_name):
            raise InputError(f"the scene is of the world {str(scene.world)[:40]!r}, and the lab shows {own}")
        self._check_like_others(scene)
        changes = resolved(scene, request.do)
        return world.do(scene, **changes) if changes else scene

    def _check_like_others(self, scene: Scene) -> None:
        """Refuse a scene that says other things than those of its world; that values fit, the world itself checks."""
        known = self._first.params
        if self.world.object.staged and scene.params.keys() != known.keys():
            odd = sorted(map(str, scene.params.keys() ^ known.keys()))[0]
            raise InputError(f"a scene of {scene.world} says {', '.join(known)}; look at {odd[:40]!r}")
        if scene.params.get("size") != known.get("size"):
            raise InputError(f"size={str(scene.params.get('size'))[:40]}: the lab shows {known.get('size')}")

    @property
    def own_name(self) -> str:
        """What scenes of the world call it."""
        return self._first.world

    @cached_property
    def _first(self) -> Scene:
        return self.numbered(0, 0)[1]

    def numbered(self, seed: int, index: int) -> tuple[str, Scene]:
        """The index-th scene of a seed, as `diorama run` judges it; of a list of scenes it goes round."""
        world = self.world.object
        return world.scene_at(seed, index if world.length is None else index % world.length)

    def sample(self, asked: Request) -> Reply:
        """The numbered scene that a page asks for."""
        name, scene = self.numbered(asked.seed, asked.index)
        return Reply("scene", {"scene": scene.to_json(), "name": name, "index": asked.index})

    # Benches

    def bench(self, scene: Scene, model: int = 0, track: str = "", method: Component | None = None) -> Bench:
        """The bench of a scene, for the logits of a model or the answers of a method."""
        cell = self.cell(model, method, PLAIN[track])
        return cell.bench(case_of(scene), self.memory, None, middle(cell))

    def cell(self, model: int, method: Component | None, protocol: str, control: str = "") -> Cell:
        """The cell of a table that an answer would belong to."""
        key = (model, method.label if method else "", protocol, control)
        if key not in self.cells:
            judge = build("protocol", protocol)
            of_model = self.models[model] if judge.object.model and model < len(self.models) else None
            self.cells[key] = Cell(self.world, of_model, method, judge, 0, 1, control)
        return self.cells[key]

    def methods_of(self, track: str) -> list[Component]:
        """The methods of one track that can be asked about any scene."""
        return [m for m in self.methods if m.object.track == track and not isinstance(m.object, Saved)]

    # Quick answers

    def quick(self, request: Request, send: Send, fresh: Callable[[], None]) -> None:
        """The picture, logits and effects that a request wants, each sent when it is there."""
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
        """The image, the regions that can be pointed at, what can be taken hold of, and what is true."""
        frame = self.bench(scene).frame(scene)
        arrays = {"image": quantise(frame.srgb(), 8)}
        if (regions := regions_of(frame)) is not None:
            arrays["regions"] = regions
        held = [asdict(handle) for handle in handles(self.world.object, scene)]
        changes = resolved(request.scene, request.do) if request.scene else {}
        said = {"scene": scene.to_json(), "key": scene.key, "handles": held, "did": told(changes), "drag": request.drag}
        return Reply("picture", {**said, "label": frame.truth.get("label"), "truth": _words(frame)}, arrays)

    def logits(self, scene: Scene, request: Request) -> Reply:
        """The logits: of a pass of one image while dragging, and otherwise those that a run would use."""
        bench = self._asked(scene, request.model)
        if request.drag:
            found = np.asarray(bench.model.object.logits(bench.frame(scene).srgb()[None]), np.float64)[0]  # type: ignore[union-attr]
        else:
            found = bench.logits([scene])[0]
        if not np.isfinite(found).all():
            raise InputError("the model gave logits that are NaN or infinite")
        return Reply("logits", {"values": found.tolist(), "approx": request.drag, "model": request.model})

    def effects(self, scene: Scene, request: Request) -> Reply:
        """How much the target's logit falls when each region is taken away: what `do` measures."""
        bench = self._asked(scene, request.model)
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
            raise Undefined("no class is asked about")
        if isinstance(world, Parted):
            return list(world.part_names), single_drops(bench, scene, target)
        if isinstance(world, Mosaic):
            swaps = [world.do(scene, cell=i) for i in range(world.cells)]
            logits = bench.logits([scene, *swaps])[:, target]
            return [f"cell {i + 1}" for i in range(world.cells)], logits[0] - logits[1:]
        raise Undefined("nothing can be taken away in this world")

    def target(self, bench: Bench, scene: Scene, request: Request) -> int | None:
        """The class that is explained: the one asked about, the true one, or the one predicted."""
        if request.target is not None:
            if request.target >= self.models[request.model].object.classes:
                raise InputError(f"there is no class {request.target}")
            return request.target
        if "label" in self.world.object.truth:
            return label_of(bench, scene)
        return int(bench.logits([scene])[0].argmax())

    def _asked(self, scene: Scene, model: int) -> Bench:
        if model >= len(self.models):
            raise InputError(f"there is no model {model}: the lab was started with {len(self.models)}")
        return self.bench(scene, model)

    # What there is

    def hello(self) -> dict[str, Any]:
        """What a page needs to know before it asks."""
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
        """Refuse models and methods that make no sense here, in one line, before anything is served."""
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
    """The point of a method's grid that the lab shows: the middle one. A run chooses it on other cases."""
    return len(cell.asked.points) // 2


def case_of(scene: Scene) -> Case:
    """A scene as the case of a protocol."""
    return Case(f"lab-{scene.key[:12]}", {"scene": scene.to_json()})


def regions_of(frame: Frame) -> np.ndarray | None:
    """What belongs together in the picture, (h, w) uint8 with 0 where nothing is: parts, objects, cells, the sprite."""
    truth = frame.truth
    if truth.get("parts") is not None:
        return np.asarray(truth["parts"], np.uint8)
    if truth.get("cells") is not None:
        return np.asarray(truth["cells"]["index"], np.uint8) + np.uint8(1)
    if frame.scene.world == "sprites":
        return (frame.image[:, :, 0] > 0.5).astype(np.uint8)
    return None


def _words(frame: Frame) -> dict[str, str]:
    """The factors of a frame in words."""
    factors = frame.truth.get("factors") or {}
    return {name: f"{value:.3g}" if isinstance(value, float) else str(value) for name, value in factors.items()}
