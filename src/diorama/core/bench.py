"""The bench: gives a protocol frames, logits and answers while it scores a case, and caches them.

Passes through a model are made in chunks of a fixed size, padded by repeating the last image: the last bits of a kernel's
results depend on the batch size, and must not depend on how many images happened to be asked for together.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diorama.adapt import engines
from diorama.core import device
from diorama.core.answers import Answer, Layers
from diorama.core.asking import Question, answered, screens
from diorama.core.cases import Case
from diorama.core.catalogue import Component
from diorama.core.contracts import Model, Protocol, Saved, World
from diorama.core.errors import AnswerError, InputError, tell
from diorama.core.frame import Frame
from diorama.core.frame_store import rendered
from diorama.core.guard import Note
from diorama.core.memory import Key, Memory, Scope
from diorama.core.scene import Scene
from diorama.core.watch import undisturbed

#: Seconds between two progress lines of a long pass.
SAY_EVERY = 20.0


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
    memory: Memory
    point: int = 0
    #: Images per pass.
    chunk: int = device.chunk("cpu")
    #: The protocols that ask this method about this world in the same run, this one among them.
    fellows: tuple[Protocol, ...] = ()
    #: What computes the model's logits (`adapt.engines`).
    engine: str = engines.USUAL
    #: How long frames, logits and answers stay in the cache.
    scope: Scope = "unit"
    #: Called with every line of `say`.
    on_line: Callable[[str], None] = tell

    # What a protocol asks for

    def frame(self, scene: Scene) -> Frame:
        """The frame of a scene."""
        return self.frames([scene])[0]

    def frames(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The frames of several scenes; those that are not cached are rendered together."""
        keys = [("frame", self.world.digest, scene.key) for scene in scenes]
        asked = dict(zip(keys, scenes, strict=True))
        found = self.memory.keep_all(self.scope, asked, lambda missing: rendered(self.world, list(missing.values())))
        return [found[key] for key in keys]

    def views(self, scene: Scene) -> list[Frame]:
        """The frame of a scene and of the views that the method declares: `do(scene, **view)` for each."""
        world: World = self.world.object
        return self.frames([scene, *(world.do(scene, **change) for change in self.asked.object.views)])

    def shown(self, frames: Sequence[Frame]) -> list[Frame]:
        """Frames as the method gets them: without their truth, unless it declares `given_truth`."""
        return [*frames] if self.asked.object.given_truth else [frame.blind() for frame in frames]

    def logits(self, scenes: Sequence[Scene]) -> np.ndarray:
        """The model's logits (scenes, classes), float64."""
        keys = [("logits", self.world.digest, self.asked_model.digest, scene.key) for scene in scenes]
        found = self.memory.keep_all(self.scope, dict(zip(keys, scenes, strict=True)), self._logits)
        return np.array([found[key] for key in keys])

    def answer(self, scene: Scene, target: int | None = None) -> Answer:
        """The method's answer about a scene, at this point of its grid; checked."""
        key = self._answer_key((scene, target))
        found = answered(self, {key: (scene, target)})[key][self.point]
        if found.note:
            warnings.warn(found.note, Note, stacklevel=2)
        return found

    def layers(self, scene: Scene) -> Layers:
        """The method's decomposition of a scene."""
        answer = self.answer(scene)
        if not isinstance(answer, Layers):
            raise AnswerError(f"the method returned {type(answer).__name__}, expected Layers")
        return answer

    def ask(self, questions: Sequence[Question]) -> None:
        """Have the method answer about several (scene, target) at once; explanations go through the model together.

        Saved answers are named by case and therefore read when their case is scored.
        """
        if not isinstance(self.asked.object, Saved):
            answered(self, {self._answer_key(question): question for question in questions})

    # Caching, other worlds, progress

    def keep(self, scope: Scope, key: Key, compute: Callable[[], Any]) -> Any:
        """The result of `compute`, cached for the case, the unit or the run; its notes are raised on every call.

        `key` is a name and all that the value depends on besides the world and the model.
        """
        model = self.model.digest if self.model else ""
        return self.memory.keep(scope, ("kept", self.world.digest, model, *key), compute)

    def on(self, world: Component, scope: Scope = "unit") -> "Bench":
        """The same bench with another world, whose frames, logits and answers are cached for `scope`."""
        return replace(self, world=world, scope=scope)

    def passes(self, scenes: Sequence[Scene], what: str) -> Iterator[Sequence[Scene]]:
        """Scenes in chunks, for more scenes than memory holds: the cache drops each chunk before the next one.

        A long pass says from time to time how many images of `what` are done. The first chunk, in which kernels are
        compiled and weights are loaded, is left out of the estimate of the time left.
        """
        start = last = time.monotonic()
        for done in range(0, len(scenes), self.chunk):
            if done == self.chunk:
                start = last = time.monotonic()
            if done > self.chunk and time.monotonic() - last > SAY_EVERY:
                last = time.monotonic()
                left = (last - start) / (done - self.chunk) * (len(scenes) - done) / 60
                self.say(f"{done} of {len(scenes)} images of {what}, {left:.1f} minutes left")
            with self.memory.passing():
                yield scenes[done : done + self.chunk]

    def say(self, text: str) -> None:
        """Report the progress of a long computation in one line."""
        self.on_line(text)

    @contextmanager
    def undisturbed(self, scene: Scene) -> Iterator[None]:
        """Guard a call of the method: if it changes shared state, that is restored and AnswerError is raised."""
        with undisturbed("the method", self.model.watch if self.model else None, scene.key):
            yield

    @property
    def asked_model(self) -> Component:
        """The model of the cell; InputError if it has none."""
        if self.model is None:
            raise InputError("this cell has no model to ask for logits")
        return self.model

    @property
    def forward(self) -> Model:
        """The model to compute logits with: the model itself, or converted for the engine of the plan."""
        model = self.asked_model
        if self.engine == engines.USUAL:
            return model.object
        key = ("engine", model.digest, self.engine)
        return self.memory.keep("run", key, lambda: engines.converted(model.object, self.engine))

    def _answer_key(self, question: Question) -> Key:
        scene, target = question
        case = self.case.key if isinstance(self.asked.object, Saved) else ""
        model = self.model.digest if self.model else ""
        return ("answer", self.world.digest, model, self.asked.digest, scene.key, target, case)

    def _logits(self, missing: dict[Key, Scene]) -> Iterator[np.ndarray]:
        """Compute the logits of scenes, chunk by chunk."""
        frames, model, asked = self.frames(list(missing.values())), self.forward, self.asked_model
        for start in range(0, len(frames), self.chunk):
            part = frames[start : start + self.chunk]
            with undisturbed(asked.name, asked.watch, "logits"):
                found = np.asarray(model.logits(screens(part, self.chunk)), np.float64)
            if not np.isfinite(found).all():
                raise AnswerError(f"{asked.name} gave logits that are NaN or infinite")
            yield from found[: len(part)]
