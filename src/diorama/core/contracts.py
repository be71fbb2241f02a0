"""The contracts of worlds, methods and protocols: structural types, nothing to inherit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from diorama.core.answers import Answer, Layers
from diorama.core.errors import AnswerError, InputError
from diorama.core.frame import Frame
from diorama.core.guard import attempt, one_line
from diorama.core.names import readable
from diorama.core.scene import Scene

if TYPE_CHECKING:
    from diorama.core.bench import Bench


#: The ends of a metric's range; None where it has none.
Bounds = tuple[float | None, float | None]


@runtime_checkable
class World(Protocol):
    """Stages or recalls scenes. A recorded world also has `__len__` and `scene(i) -> (name, Scene)`."""

    factors: dict[str, str]
    truth: tuple[str, ...]

    def sample(self, rng: np.random.Generator) -> Scene:
        """A scene drawn with `rng`."""

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The scene with only the named things changed."""

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The frames of some scenes: a pure function of them."""


@runtime_checkable
class Decomposer(Protocol):
    """Splits an image into reflectance and shading. Optional: `views`, `grid` with `sweep`, `fit` with `fitted`."""

    def decompose(self, frames: Sequence[Frame]) -> Layers:
        """The layers of frames[0]; frames[1:] are the views the method declared in `views`."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a protocol scores at once: a function of (protocol, world, seed, index), never of how many are asked for."""

    key: str
    payload: dict[str, Any]
    failure: str = ""  # why the case could not be made; it is then a row with this reason

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not isinstance(self.payload, dict):
            raise AnswerError(
                f"a case is Case(key: str, payload: dict), not Case({self.key!r}, {self.payload!r})"[:300]
            )
        object.__setattr__(self, "key", readable(self.key))


def make_case(protocol: Any, world: World, seed: int, index: int) -> Case:
    """The index-th case of a protocol; one that fails to be made, which its row then says.

    An InputError stands for all cases: the protocol cannot be used on this world.
    """
    outcome = attempt(lambda: protocol.case(world, seed, index))
    if isinstance(outcome.error, InputError):
        raise outcome.error
    if outcome.error is None and isinstance(outcome.value, Case):
        return outcome.value
    why = outcome.reason or f"AnswerError: case() gave {type(outcome.value).__name__}, not a Case"
    return Case(f"failed-{index:05d}", {}, why)


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one case: a value, or a list with one entry per point of the protocol's own grid `at`.

    Without a value the status is "undefined" or "excluded" and the reason says why; the other metrics stand. Numbers of
    numpy and torch become Python's.
    """

    metric: str
    value: float | list[float] | None
    at: str = ""
    status: Literal["ok", "undefined", "excluded"] = "ok"
    reason: str = ""

    def __post_init__(self) -> None:
        if self.status not in ("ok", "undefined", "excluded"):
            raise AnswerError(f"{self.metric}: the status {self.status!r} is not ok, undefined or excluded"[:300])
        if (self.value is None) == (self.status == "ok"):
            raise AnswerError(f"{self.metric}: a score has a value where it is ok, and only there")
        object.__setattr__(self, "value", _plain(self.metric, self.value))
        for name in ("at", "reason"):
            object.__setattr__(self, name, one_line(getattr(self, name)))


def _plain(metric: str, value: Any) -> float | list[float] | None:
    """A value as Python's own numbers."""
    if value is None or type(value) in (float, int):
        return value
    outcome = attempt(lambda: np.asarray(value, np.float64).tolist())
    if (
        isinstance(value, str | bytes)
        or outcome.error
        or not (isinstance(outcome.value, float) or _flat(outcome.value))
    ):
        raise AnswerError(f"{metric} is {type(value).__name__}, not a number or a list of numbers")
    return outcome.value


def _flat(values: Any) -> bool:
    return isinstance(values, list) and len(values) > 0 and all(isinstance(v, float) for v in values)


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of the gallery: (h, w, 3) values in [0, 1] as a screen shows them, and a caption."""

    caption: str
    image: np.ndarray


@runtime_checkable
class ScoringProtocol(Protocol):
    """Judges answers against truth. Optional: `doses` with `dosed`, `prepare`, `pictures`, `settings`,
    `objective`, `published`, `fold`, `changes` (factors that the world must be able to change), `ceiling` (why the truth
    stays below the top), `no_oracle` (why the truth has no score), `tried_on`
    (worlds for `diorama check`), and `summarise(rows) -> Condensed` with `derived`, the
    names of metrics of a whole cell, the first of which leads; `unlisted` are metrics that tables leave out; `ranges` has
    the `Bounds` of metrics for which `range` is not true;
    `refuses(world, model, method)` says why a cell cannot be, or an empty string.
    """

    cite: tuple[str, ...]
    version: int
    direction: Literal["lower", "higher"]
    range: tuple[float, float]
    track: str
    needs: tuple[str, ...]
    metrics: tuple[str, ...]

    def case(self, world: World, seed: int, index: int) -> Case:
        """The index-th case of a seed."""

    def score(self, bench: "Bench", case: Case) -> Iterable[Score]:
        """The scores of a case. Raises Undefined or Excluded where there is none."""

    def oracle(self, bench: "Bench", scene: Scene, target: int | None) -> Answer:
        """The answer that is true, which must reach the top."""


def scene_at(world: World, seed: int, index: int) -> tuple[str, Scene]:
    """The index-th scene of a world with a readable name: the recorded one, or one sampled from (seed, index)."""
    from diorama.core.scene import rng

    recorded = getattr(world, "scene", None)
    if recorded is not None:
        return recorded(index)
    return f"{seed}-{index:05d}", world.sample(rng(seed, "scene", index))
