"""The bench: what a protocol may ask for while it scores a case. Everything asked twice is computed once.

Passes through a model are made in chunks of a fixed size, padded by repeating the last image: kernels give other last
bits at other batch sizes, so a result must not depend on how many images happened to be asked for together.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Layers, check_answer
from diorama.core.catalogue import Component
from diorama.core.contracts import Case, World
from diorama.core.controls import is_control
from diorama.core.errors import AnswerError, InputError
from diorama.core.explaining import explain
from diorama.core.frame import Frame
from diorama.core.guard import Note, noting
from diorama.core.scene import Scene
from diorama.core.watch import blame, undisturbed

_METHOD = "the method"
#: Images per pass through a model.
CHUNK = 8


@dataclass(slots=True)
class Memo:
    """What has been rendered, passed through the model and answered in one unit of work, shared by all its cells."""

    frames: dict[tuple[str, str], Frame] = field(default_factory=dict)
    logits: dict[tuple[str, str, str], np.ndarray] = field(default_factory=dict)
    answers: dict[tuple[str, ...], list[Answer]] = field(default_factory=dict)
    tables: dict[tuple[str, ...], Any] = field(default_factory=dict)
    notes: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)  # by any of the keys above
    prepared: dict[str, float] = field(default_factory=dict)  # by cell key: what preparing took, in seconds per case


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
    model: Component | None
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
            with self._noting(missing):
                rendered = self.world.object.render(list(missing.values()))
                self.memo.frames.update(zip(missing, rendered, strict=True))
        self._repeat_notes(keys)
        return [self.memo.frames[key] for key in keys]

    def views(self, scene: Scene) -> list[Frame]:
        """The frame of a scene and of the views that the method declares: `do(scene, **view)` for each."""
        world: World = self.world.object
        changes = getattr(self.asked.object, "views", ())
        return self.frames([scene, *(world.do(scene, **change) for change in changes)])

    def shown(self, frames: Sequence[Frame]) -> list[Frame]:
        """Frames as the method gets them: without their truth, unless it declares `given_truth`."""
        return [*frames] if given_truth(self.asked.object) else [frame.blind() for frame in frames]

    def logits(self, scenes: Sequence[Scene]) -> np.ndarray:
        """The model's logits (scenes, classes), float64."""
        if self.model is None:
            raise InputError("this cell has no model to ask for logits")
        model, made = self.model, self.memo.logits
        keys = [(self.world.digest, model.digest, scene.key) for scene in scenes]
        missing = {key: scene for key, scene in zip(keys, scenes, strict=True) if key not in made}
        with self._noting(missing):
            for chunk, images in _chunks(list(missing), self.frames(list(missing.values()))):
                with undisturbed(model.name, model.watch, "logits"):
                    found = np.asarray(model.object.logits(images), np.float64)
                if not np.isfinite(found).all():
                    raise AnswerError(f"{model.name} gave logits that are NaN or infinite")
                made.update(zip(chunk, found, strict=False))
        self._repeat_notes(keys)
        return np.array([made[key] for key in keys])

    def once(self, name: str, scene: Scene, compute: Callable[[], Any]) -> Any:
        """What follows from world, model and scene alone, computed once for all cells of the unit."""
        key = (name, self.world.digest, self.model.digest if self.model else "", scene.key)
        if key not in self.memo.tables:
            with self._noting([key]):
                self.memo.tables[key] = compute()
        self._repeat_notes([key])
        return self.memo.tables[key]

    def answer(self, scene: Scene, target: int | None = None) -> Answer:
        """What the method says about a scene, at this point of its grid; checked."""
        key = self._answer_key(scene, target)
        if key not in self.memo.answers:
            self._answer({key: (scene, target)})
        self._repeat_notes([key])
        found = self.memo.answers[key][self.point]
        if note := getattr(found, "note", ""):
            warnings.warn(note, Note, stacklevel=2)
        return found

    def ask(self, questions: Sequence[tuple[Scene, int | None]]) -> None:
        """Have the method answer about several (scene, target) at once; explanations go through the model together.

        Saved answers are named by case and therefore read when their case is scored.
        """
        if not hasattr(self.asked.object, "load"):
            known = self.memo.answers
            self._answer({key: q for q in questions if (key := self._answer_key(*q)) not in known})

    @contextmanager
    def _noting(self, keys: Iterable[tuple[str, ...]]) -> Iterator[None]:
        """Remember the notes raised inside under these keys: whoever uses what is remembered gets them too."""
        with noting() as notes:
            yield
        self.memo.notes.update(dict.fromkeys(keys, tuple(notes)))

    def _repeat_notes(self, keys: Iterable[tuple[str, ...]]) -> None:
        for note in dict.fromkeys(note for key in keys for note in self.memo.notes.get(key, ())):
            warnings.warn(note, Note, stacklevel=3)

    def _answer(self, missing: dict[tuple[str, ...], tuple[Scene, int | None]]) -> None:
        if missing and self.protocol.track == "explain" and not _answers_itself(self.asked.object):
            self._explain(missing)
            self._check_model(missing)
            return
        for key, (scene, target) in missing.items():
            with self._noting([key]):
                self._keep(key, scene, self._one(scene, target))

    def _check_model(self, answered: Iterable[tuple[str, ...]]) -> None:
        """Compare every weight with what it was; if the method changed one, nothing it said stands."""
        changed = self.model.watch.put_back(thorough=True) if self.model and self.model.watch else []
        for key in answered if changed else ():
            del self.memo.answers[key]
        blame(_METHOD, changed)

    @contextmanager
    def undisturbed(self, scene: Scene) -> Iterator[None]:
        """Let the method answer about a scene: what others use is put back if it changes, and that is an error."""
        with undisturbed(_METHOD, self.model.watch if self.model else None, scene.key):
            yield

    def layers(self, scene: Scene) -> Layers:
        """The method's decomposition of a scene."""
        answer = self.answer(scene)
        if not isinstance(answer, Layers):
            raise AnswerError(f"the method returned {type(answer).__name__}, expected Layers")
        return answer

    def _answer_key(self, scene: Scene, target: int | None) -> tuple[str, ...]:
        case = self.case.key if hasattr(self.asked.object, "load") else ""
        model = self.model.digest if self.model else ""
        return (self.world.digest, model, self.asked.digest, scene.key, str(target), case)

    def _keep(self, key: tuple[str, ...], scene: Scene, answers: list[Answer]) -> None:
        if len(answers) != len(self.asked.points):
            raise AnswerError(f"sweep gave {len(answers)} answers for a grid of {len(self.asked.points)} points")
        size = self.frame(scene).image.shape[:2]
        for answer in answers:
            check_answer(answer, size)
        self.memo.answers[key] = answers

    def _one(self, scene: Scene, target: int | None) -> list[Answer]:
        method = self.asked.object
        if is_control(method):
            return method.answers(self, scene, target)
        if hasattr(method, "load"):  # saved predictions
            frame = self.shown([self.frame(scene)])[0]
            with self.undisturbed(scene):
                return [method.load(self.case.key, frame, target)]
        return _decompose(self, scene)

    def _explain(self, missing: dict[tuple[str, ...], tuple[Scene, int | None]]) -> None:
        assert self.model is not None
        methods = [self.asked.object] if self.asked.points == ({},) else [*map(self.asked.at_point, self.asked.points)]
        if hasattr(methods[0], "explain_targets"):
            self._explain_targets(methods, missing)
            return
        frames = self.frames([scene for scene, _ in missing.values()])
        for chunk, images in _chunks(list(missing), frames):
            targets = np.array([missing[key][1] for key in chunk] + [missing[chunk[-1]][1]] * (CHUNK - len(chunk)))
            with self._noting(chunk), self.undisturbed(missing[chunk[0]][0]):
                found = [explain(method, self.model.object, np.array(images), targets.copy()) for method in methods]
            for i, key in enumerate(chunk):
                self._keep(key, missing[key][0], [answers[i] for answers in found])

    def _explain_targets(self, methods: list[Any], missing: dict[tuple[str, ...], tuple[Scene, int | None]]) -> None:
        """Image by image, all targets together: for methods whose passes serve every class."""
        assert self.model is not None
        scenes = {scene.key: scene for scene, _ in missing.values()}
        for name, scene in scenes.items():
            keys = [key for key, question in missing.items() if question[0].key == name]
            image, targets = self.frame(scene).srgb(), [missing[key][1] for key in keys]
            with self._noting(keys), self.undisturbed(scene):
                found = [list(method.explain_targets(self.model.object, image, targets)) for method in methods]
            for i, key in enumerate(keys):
                self._keep(key, scene, [answers[i] for answers in found])


def _answers_itself(method: Any) -> bool:
    return is_control(method) or hasattr(method, "load")


def given_truth(method: Any) -> bool:
    """Whether a method says that it needs the truth it is asked for: one that plants a known error in it."""
    return getattr(method, "given_truth", False) is True


def _chunks(keys: list[Any], frames: list[Frame]) -> Iterator[tuple[list[Any], np.ndarray]]:
    """The keys in chunks with their images (CHUNK, h, w, 3) as a screen shows them, the last chunk padded."""
    for start in range(0, len(keys), CHUNK):
        images = [frame.srgb() for frame in frames[start : start + CHUNK]]
        yield keys[start : start + CHUNK], np.stack(images + [images[-1]] * (CHUNK - len(images)))


def _decompose(bench: Bench, scene: Scene) -> list[Answer]:
    frames, asked = bench.shown(bench.views(scene)), bench.asked
    with bench.undisturbed(scene):
        if asked.points == ({},):
            return [_call(asked.object, frames)]
        if hasattr(asked.object, "sweep"):
            return list(asked.object.sweep(frames))
        return [_call(asked.at_point(point), frames) for point in asked.points]


def _call(method: Any, frames: list[Frame]) -> Answer:
    return method.decompose(frames) if hasattr(method, "decompose") else method(frames)
