"""The bench: what a protocol may ask for while it scores a case. Everything asked twice is computed once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from diorama.core.answers import Answer, Layers, check_answer
from diorama.core.catalogue import Component
from diorama.core.contracts import Case, World
from diorama.core.errors import AnswerError
from diorama.core.frame import Frame
from diorama.core.scene import Scene


@dataclass(slots=True)
class Memo:
    """What has been rendered and answered in one unit of work, shared by all its cells."""

    frames: dict[tuple[str, str], Frame] = field(default_factory=dict)
    answers: dict[tuple[str, str, str, str], list[Answer]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """The method under test as the bench sees it: the object, its digest, its grid points, and how to vary it."""

    object: Any
    digest: str
    points: tuple[dict[str, Any], ...]
    at_point: Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Bench:
    """One case of one cell, at one point of the method's grid."""

    world: Component
    asked: Asked
    protocol: Any
    case: Case
    memo: Memo
    point: int = 0

    def frame(self, scene: Scene) -> Frame:
        """The frame of a scene."""
        return self.frames([scene])[0]

    def frames(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The frames of several scenes, those not yet known rendered together."""
        keys = [(self.world.digest, scene.key) for scene in scenes]
        missing = {key: scene for key, scene in zip(keys, scenes, strict=True) if key not in self.memo.frames}
        if missing:
            rendered = self.world.object.render(list(missing.values()))
            self.memo.frames.update(zip(missing, rendered, strict=True))
        return [self.memo.frames[key] for key in keys]

    def views(self, scene: Scene) -> list[Frame]:
        """The frame of a scene and of the views that the method declares: `do(scene, **view)` for each."""
        world: World = self.world.object
        changes = getattr(self.asked.object, "views", ())
        return self.frames([scene, *(world.do(scene, **change) for change in changes)])

    def answer(self, scene: Scene, target: int | None = None) -> Answer:
        """What the method says about a scene, at this point of its grid; checked."""
        key = (self.world.digest, self.asked.digest, scene.key, f"{self.case.key}:{target}")
        if key not in self.memo.answers:
            answers = self._ask(scene, target)
            if len(answers) != len(self.asked.points):
                raise AnswerError(f"sweep gave {len(answers)} answers for a grid of {len(self.asked.points)} points")
            size = self.frame(scene).image.shape[:2]
            for answer in answers:
                check_answer(answer, size)
            self.memo.answers[key] = answers
        return self.memo.answers[key][self.point]

    def layers(self, scene: Scene) -> Layers:
        """The method's decomposition of a scene."""
        answer = self.answer(scene)
        if not isinstance(answer, Layers):
            raise AnswerError(f"the method returned {type(answer).__name__}, expected Layers")
        return answer

    def _ask(self, scene: Scene, target: int | None) -> list[Answer]:
        method = self.asked.object
        if hasattr(method, "answers"):  # a control
            return method.answers(self, scene, target)
        if hasattr(method, "load"):  # saved predictions
            return [method.load(self.case.key, self.frame(scene), target)]
        return _ASK[self.protocol.track](self, scene)


def _decompose(bench: Bench, scene: Scene) -> list[Answer]:
    frames, asked = bench.views(scene), bench.asked
    if asked.points == ({},):
        return [_call(asked.object, frames)]
    if hasattr(asked.object, "sweep"):
        return list(asked.object.sweep(frames))
    return [_call(asked.at_point(point), frames) for point in asked.points]


def _call(method: Any, frames: list[Frame]) -> Answer:
    return method.decompose(frames) if hasattr(method, "decompose") else method(frames)


_ASK: dict[str, Callable[[Bench, Scene], list[Answer]]] = {"decompose": _decompose}
