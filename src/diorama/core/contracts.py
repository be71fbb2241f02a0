"""The contracts of worlds, methods and protocols: structural types, nothing to inherit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np

from diorama.core.answers import Answer, Layers
from diorama.core.frame import Frame
from diorama.core.scene import Scene

if TYPE_CHECKING:
    from diorama.core.bench import Bench


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


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one case: a value, or a list with one entry per point of the protocol's own grid `at`.

    Without a value the status is "undefined" or "excluded" and the reason says why; the other metrics stand.
    """

    metric: str
    value: float | list[float] | None
    at: str = ""
    status: Literal["ok", "undefined", "excluded"] = "ok"
    reason: str = ""


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
    names of metrics of a whole cell, the first of which leads; `unlisted` are metrics that tables leave out;
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
