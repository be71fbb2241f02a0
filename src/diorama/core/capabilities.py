"""Capabilities of worlds: a list, labelled, made of parts … A protocol names those it requires in `needs`.

Outsiders may write another such class and require it in their own protocol: the plan only checks `isinstance`.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from diorama.core.contracts import World
from diorama.core.errors import InputError
from diorama.core.scene import Scene


class Listed(World):
    """A world that is a list of scenes: photographs, recorded objects, enumerated staged sets."""

    in_words = "a world that is a list of scenes"

    staged = False

    @abstractmethod
    def __len__(self) -> int:
        """How many scenes there are."""

    @abstractmethod
    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th scene with its name."""

    @property
    def length(self) -> int:
        """How many scenes there are."""
        return len(self)

    def scene_at(self, seed: int, index: int) -> tuple[str, Scene]:
        """The index-th scene, whatever the seed."""
        return self.scene(index)

    def sample(self, rng: np.random.Generator) -> Scene:
        """One of the scenes."""
        return self.scene(int(rng.integers(len(self))))[1]

    def do(self, *scene: Any, **changes: Any) -> Scene:
        """Nothing about a photo can be changed, unless a world overrides this."""
        if changes:
            raise InputError(f"{scene[0].world} cannot change {next(iter(changes))!r}: a photo was recorded once")
        return scene[0]


class Labelled(World):
    """Every scene is of one of `classes`: their names, or their parts; empty where the world does not know them."""

    in_words = "a world whose scenes have classes"

    @property
    def classes(self) -> Sequence[Any]:
        """The classes, by label."""
        return ()

    def class_name(self, label: int) -> str:
        """Used in captions: the name of a class."""
        return str(label)

    def label(self, scene: Scene) -> int:
        """Called by mosaics: the class of a scene, from its parameters if they have it, otherwise from its frame."""
        known = scene.params.get("label")
        return known if type(known) is int else int(self.render([scene])[0].truth["label"])


class Parted(Labelled):
    """Objects have parts that `do(scene, NAME=None)` removes; `classes` are combinations of part variants."""

    in_words = "a world whose objects have parts with names"

    #: The id of the first background object in the truth `parts`; the others follow.
    background_id: int = 0

    @property
    @abstractmethod
    def part_names(self) -> tuple[str, ...]:
        """The parts, in a fixed order."""

    @property
    @abstractmethod
    def part_ids(self) -> Mapping[str, tuple[int, ...]]:
        """The ids of each part in the truth `parts`: one per sub-part."""

    def removals(self, scene: Scene) -> Mapping[int, Scene]:
        """Called by part protocols: the scene without each background object, by its index."""
        return {}


class Levelled(World):
    """A world whose factors have levels, for protocols on codes."""

    in_words = "a world whose factors have levels, like sprites"
    #: How many frames a draw has by default in protocols on codes, for worlds that are slow to render.
    drawn: ClassVar[int | None] = None

    @property
    @abstractmethod
    def levels(self) -> Mapping[str, Sequence[Any]]:
        """The values of each factor, in order."""


class Confounded(Levelled):
    """A world of levels with a part in which factors are confounded, as in a data set collected by chance."""

    in_words = "a world with a confounded part, like candle"

    @abstractmethod
    def confounded(self, scene: Scene) -> bool:
        """Called by the layout `dataset`: whether a scene belongs to the confounded part."""


class Sets(Listed):
    """A world of concept sets: each scene stands for a set of images in which one thing changes (`params["change"]`)."""

    in_words = "a world of concept sets, like concepts or natural_concepts"

    @abstractmethod
    def members(self, scene: Scene) -> Sequence[Scene]:
        """The images of a set."""

    def opposite(self, scene: Scene) -> Scene | None:
        """The set of the other change of the same staged scene, where there is one."""
        return None


class Lit(World):
    """A recorded world in which `do(scene, light=…)` takes one of the lights that were recorded."""

    in_words = "a world with recorded lights"

    @abstractmethod
    def lights(self, scene: Scene) -> Sequence[Any]:
        """The lights of a scene."""


def scene_at(world: World, seed: int, index: int) -> tuple[str, Scene]:
    """The index-th scene of a world with a readable name: the recorded one, or one sampled from (seed, index)."""
    return world.scene_at(seed, index)
