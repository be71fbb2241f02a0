"""Training examples from a labelled world: scenes, and all classes that each scene may belong to.

If the objects of the world have parts, some examples lack parts on purpose (Hesse et al. 2023, §4): a network that has
never seen a bird without its beak gives meaningless logits when a protocol removes the beak. Such an example belongs to
every class that has the parts that are left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.capabilities import Labelled, Parted
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng


@dataclass(frozen=True, slots=True)
class Order:
    """Which examples to stage: `count` of a world, drawn for a purpose.

    `removal` removes n ~ U{0 … parts} random parts from every second example; `bare` removes all parts from each.
    """

    world: Labelled
    seed: int
    purpose: str
    count: int
    bare: bool = False
    removal: bool = False

    def scene(self, index: int) -> Scene:
        """The scene of an index."""
        scene, gone = self.world.sample(rng(self.seed, self.purpose, index)), self.removed(index)
        return self.world.do(scene, **dict.fromkeys(gone)) if gone else scene

    def removed(self, index: int) -> tuple[str, ...]:
        """The parts that the example of an index lacks."""
        names = self.world.part_names if isinstance(self.world, Parted) else ()
        if self.bare or not self.removal:
            return names if self.bare else ()
        generator = rng(self.seed, self.purpose, "removed", index)
        if generator.random() < 0.5:
            return ()
        return tuple(names[i] for i in sorted(generator.permutation(len(names))[: generator.integers(len(names) + 1)]))

    def example(self, index: int) -> tuple[Frame, np.ndarray]:
        """The frame of an index, and which classes it may belong to, bool (classes,)."""
        frame = self.world.render([self.scene(index)])[0]
        return frame, targets_of(self.world, frame, self.removed(index))

    @property
    def what(self) -> str:
        """What the examples are, for progress messages."""
        return f"{self.purpose} scenes"

    def arrays(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """The arrays for the rendered examples: type and shape of a row."""
        image, classes = self.example(0)[0].image.shape, len(self.world.classes)
        return {"images": (np.uint8, image), "labels": (np.int64, ()), "targets": (np.bool_, (classes,))}

    def row(self, index: int) -> Mapping[str, Any]:
        """The rows of one example."""
        frame, targets = self.example(index)
        images = np.round(frame.srgb() * 255).astype(np.uint8)
        return {"images": images, "labels": frame.truth["label"], "targets": targets}

    def identity(self) -> dict[str, Any]:
        """A description that is written beside rendered examples: examples with another description are not reused."""
        drawn = {"seed": self.seed, "purpose": self.purpose, "count": self.count}
        lacking = {"bare": self.bare, "removal": self.removal}
        return drawn | lacking | {"world": described(self.world), "classes": len(self.world.classes)}


def described(world: Labelled) -> str:
    """A text for a world that is the same in every process: its `repr`, or the name of its class if that has an address."""
    shown = repr(world)
    return type(world).__qualname__ if " at 0x" in shown else shown


def targets_of(world: Labelled, frame: Frame, gone: Iterable[str] = ()) -> np.ndarray:
    """The classes that a frame may belong to after the parts `gone` were removed, bool (classes,).

    A part also counts as gone if the truth's factors have None for it. If classes are not made of parts, only the
    frame's own class is possible.
    """
    hot, label = np.zeros(len(world.classes), bool), int(frame.truth["label"])
    hot[label] = True
    if isinstance(world, Parted) and isinstance(world.classes[label], Mapping):
        factors, missing = frame.truth.get("factors") or {}, set(gone)
        kept = {p: v for p, v in world.classes[label].items() if p not in missing and factors.get(p, v) is not None}
        hot[list(compatible_classes(world.classes, kept))] = True
    return hot


def compatible_classes(classes: Sequence[Mapping[str, int]], kept: Mapping[str, int]) -> tuple[int, ...]:
    """The classes that a bird showing only the variants `kept` may belong to: the targets of the multi-target loss.

    >>> compatible_classes([{"beak": 0, "eye": 1}, {"beak": 0, "eye": 2}], {"beak": 0})
    (0, 1)
    """
    return tuple(i for i, bird in enumerate(classes) if all(bird[part] == kept[part] for part in kept))


def labelled(world: Any, name: str, asking: str) -> Labelled:
    """The world, if a network can be fitted to it: it must be staged and know its classes."""
    if not isinstance(world, Labelled):
        raise InputError(f"{asking}: {name} has no classes to tell apart; give a world that has, e.g. birds")
    if world.length is not None:
        raise InputError(f"{asking}: {name} is a list of recorded scenes; give a staged world, e.g. birds")
    if len(world.classes) < 2:
        raise InputError(f"{asking}: {name} has {len(world.classes)} classes: at least two are needed")
    return world
