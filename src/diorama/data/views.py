"""Worlds for use in Python: `diorama.world("candle", confounding="pairs")`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from diorama.core.capabilities import Labelled, Levelled
from diorama.core.catalogue import build
from diorama.core.contracts import World
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.core.spec import Spec, parse

if TYPE_CHECKING:
    from diorama.data.torch_dataset import WorldDataset

Split = Literal["train", "val", "test"]
#: The shares of a world that is a list: 80 % training, 10 % validation, 10 % test.
ENDS = {"train": (0.0, 0.8), "val": (0.8, 0.9), "test": (0.9, 1.0)}


class WorldView:
    """A world with convenient methods for notebooks; `world` is the object of the contract."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name

    def __repr__(self) -> str:
        kind = f"{self.world.length} scenes" if self.world.length is not None else "as many scenes as are asked for"
        done, known = ", ".join(self.world.factors) or "nothing", ", ".join(self.world.truth)
        return f"<world {self.name}: {kind}; do({done}); truth {known}>"

    @property
    def factors(self) -> dict[str, str]:
        """What `do` can change, each with its values in words."""
        return self.world.factors

    @property
    def levels(self) -> Mapping[str, Sequence[Any]]:
        """The levels of every factor; empty if the world has none."""
        return self.world.levels if isinstance(self.world, Levelled) else {}

    @property
    def classes(self) -> Sequence[Any]:
        """The classes by label; empty if the world has none."""
        return self.world.classes if isinstance(self.world, Labelled) else ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by label."""
        world = self.world
        return tuple(world.class_name(i) for i in range(len(world.classes))) if isinstance(world, Labelled) else ()

    def sample(self, n: int = 1, seed: int = 0) -> list[Scene]:
        """The first n scenes of a seed, the same as in `diorama run`."""
        return [self.world.scene_at(seed, i)[1] for i in range(self._count(n))]

    def do(self, scene: Any, /, **changes: Any) -> Any:
        """A scene with only the named things changed; a list of scenes gives a list."""
        if isinstance(scene, Scene):
            return self.world.do(scene, **changes)
        return [self.world.do(one, **changes) for one in _scenes(scene)]

    def render(self, scene: Any) -> Any:
        """The frame of a scene; a list of scenes gives a list."""
        return self.world.render([scene])[0] if isinstance(scene, Scene) else self.world.render(_scenes(scene))

    def frames(self, n: int = 1, seed: int = 0) -> Iterator[Frame]:
        """Image and truth of the first n scenes of a seed, one after the other."""
        scenes = self.sample(n, seed)
        return (self.world.render([scene])[0] for scene in scenes)

    def examples(self, n: int, split: Split = "train", seed: int = 0) -> list[Scene]:
        """n scenes of a training, validation or test split, which have no scene in common.

        Unless the world is a list of scenes, `sample` and `diorama run` use other scenes than these.
        """
        if split not in get_args(Split):
            raise InputError(f"split={split!r}; {did_you_mean(str(split), list(get_args(Split)))}")
        if self.world.length is None:
            return [self.world.sample(rng(seed, "dataset", split, i)) for i in range(self._count(n))]
        low, high = (round(share * self.world.length) for share in ENDS[split])
        if not 0 < n <= high - low:
            raise InputError(f"n={n}: split {split!r} of {self.name} has {high - low} scenes; give 1 to {high - low}")
        places = rng(seed, "dataset", self.world.length).permutation(self.world.length)[low : low + n]
        return [self.world.scene_at(seed, int(i))[1] for i in places]

    def torch_dataset(
        self, n: int, seed: int = 0, split: Split = "train", transform: Callable[[Any], Any] | None = None
    ) -> WorldDataset:
        """A map-style torch dataset of n `examples`: (image, target, truth), rendered on access.

        The image is a float tensor (3, h, w), sRGB in [0, 1], after `transform`. The target is the label, or the level of
        every factor by name. `truth` has the arrays of the frame (parts, mask, reflectance …) as tensors. For many epochs,
        render the images once: `diorama render WORLD --layout dataset`.
        """
        from diorama.data.torch_dataset import WorldDataset

        if not isinstance(self.world, Labelled | Levelled):
            raise InputError(f"{self.name} has neither classes nor levels to learn: use .frames(n), or another world")
        return WorldDataset(self.world, self.examples(n, split, seed), transform)

    def _count(self, n: int) -> int:
        most = self.world.length
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1 or (most is not None and n > most):
            allowed = "give at least 1" if most is None else f"{self.name} has {most} scenes: give 1 to {most}"
            raise InputError(f"n={n!r}: {allowed}")
        return int(n)


def world(given: Any, /, **params: Any) -> WorldView:
    """A world by its name or spec with parameters, or from an object with the members of the contract.

    `diorama.world("candle", confounding="pairs")` is `diorama.world("candle(confounding=pairs)")`.
    """
    if isinstance(given, WorldView):
        return given
    if isinstance(given, str):
        asked = parse(given)
        made = build("world", Spec(asked.name, {**asked.params, **params}))
        return WorldView(made.object, made.label)
    if params:
        raise InputError(f"{type(given).__name__} is an object already: it takes no parameter {next(iter(params))!r}")
    from diorama.adapt.worlds import world as adapted

    return WorldView(adapted(given, type(given).__name__), type(given).__name__)


def numbered(view: WorldView, index: int, seed: int) -> tuple[str, Scene]:
    """The index-th scene of a seed with its name; InputError if there is none."""
    if isinstance(index, bool) or not isinstance(index, int) or index < 0:
        raise InputError(f"scene={index!r}: give the number of a scene, from 0")
    most = view.world.length
    if most is not None and index >= most:
        raise InputError(f"scene={index}: {view.name} has {most} scenes, 0 to {most - 1}")
    return view.world.scene_at(seed, index)


def _scenes(given: Any) -> list[Scene]:
    if not isinstance(given, Sequence) or not all(isinstance(scene, Scene) for scene in given):
        raise InputError(f"{type(given).__name__} is no scene: give one scene, or a list of them, from .sample(n)")
    return list(given)


def plain_factors(frame: Frame) -> dict[str, Any]:
    """The factors of a frame whose values are numbers, texts or None, by name."""
    factors = frame.truth.get("factors") or {}
    return {name: v for name, v in factors.items() if isinstance(v, str | int | float | bool | np.number | None)}
