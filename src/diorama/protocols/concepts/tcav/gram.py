"""What TCAV needs of images, in the Gram space: activations of a concept and of others, gradients on test images.

Images are rendered and passed through the model once, in chunks of a fixed size, and not kept; activations too large for
memory go to a temporary file. Only small arrays are kept: products of activations, and of gradients with them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from diorama.core import spec
from diorama.core.asking import padded
from diorama.core.bench import Bench
from diorama.core.catalogue import Component
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.metrics.cav import Draw, draw_sets, gram
from diorama.protocols.concepts.tcav.activations import activations
from diorama.protocols.concepts.wide import empty_rows

#: The index of the first scene of each role in a staged world.
FIRST = {"concept": 100_000, "others": 200_000, "test": 0}
ROLES = tuple(FIRST)


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """Scenes of a world, with their changes applied."""

    world: Component
    scenes: list[Scene]

    def chunks(self, bench: Bench) -> Iterator[tuple[int, list[Frame]]]:
        """Frames in chunks, each with its number of frames without padding; the last one is padded."""
        on_world = bench.on(self.world)
        for part in on_world.passes(self.scenes, self.world.label):
            yield len(part), padded(on_world.frames(part), bench.chunk)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """The products TCAV is computed from: of activations about `origin`, the first `concept` rows those of the concept
    (`gram`) and with the origin (`at_origin`); of gradients with the activations (`cross`) and with the origin (`along`).
    `rows` are the activations themselves, if they are kept.
    """

    concept: int
    gram: np.ndarray
    cross: np.ndarray
    origin: np.ndarray
    at_origin: np.ndarray
    along: np.ndarray
    rows: np.ndarray | None

    def about(self, centred: bool) -> "Material":
        """Products about the origin, or about zero for trainers whose result depends on it."""
        if centred:
            return self
        square = float(self.origin.astype(np.float64) @ self.origin)
        gram = self.gram + self.at_origin[:, None] + self.at_origin + square
        return replace(self, gram=gram, cross=self.cross + self.along[:, None], origin=np.zeros_like(self.origin))

    @property
    def _others(self) -> int:
        return len(self.gram) - self.concept

    def draw(self, seed: int, run: int) -> Draw:
        """A run's images: the concept's and as many others."""
        ((a, b),) = draw_sets(self.concept, self._others, 1, rng(seed, "tcav", "draw", run))
        return a, b + self.concept

    def random(self, seed: int, run: int) -> Draw:
        """Two sets of others that share no image."""
        size = min(self.concept, self._others // 2)
        order = self.concept + rng(seed, "tcav", "random", run).permutation(self._others)
        return order[:size], order[size : 2 * size]

    def halves(self, seed: int, run: int) -> list[Draw]:
        """Two draws of half the images each that share none."""
        generator = rng(seed, "tcav", "halves", run)
        half = min(self.concept, self._others) // 2
        a, b = generator.permutation(self.concept), self.concept + generator.permutation(self._others)
        return [(a[:half], b[:half]), (a[half : 2 * half], b[half : 2 * half])]


def images(world: Component, role: str, seed: int, count: int, change: str) -> Images:
    """The first images of a recorded world, or those scenes of a staged one that belong to the role; with a change."""
    length = world.object.length
    first, count = (FIRST[role], count) if length is None else (0, min(count, length))
    scenes = [world.object.scene_at(seed, first + i)[1] for i in range(count)]
    changes = spec.changes(change)
    return Images(world, [world.object.do(scene, **changes) for scene in scenes] if changes else scenes)


def activations_of(bench: Bench, sets: Sequence[Images], layer: str) -> np.ndarray:
    """The activations (n, d) float32 of all sets, concatenated."""
    assert bench.model is not None
    total, at, rows = sum(len(one.scenes) for one in sets), 0, None
    for count, frames in (chunk for one in sets for chunk in one.chunks(bench)):
        chunk_rows = activations(bench.model.object, stack(frames), layer)[:count]
        rows = empty_rows(total, chunk_rows.shape[1]) if rows is None else rows
        rows[at : at + count] = chunk_rows
        at += count
    assert rows is not None
    return rows


def stack(frames: Sequence[Frame]) -> np.ndarray:
    """Images (n, h, w, 3) as a screen shows them."""
    return np.stack([frame.srgb() for frame in frames])


def material_of(
    bench: Bench, concept: int, rows: np.ndarray, test: Images, gradient: Callable[..., np.ndarray], keep: bool
) -> Material:
    """The products of activations (rows) and of the test images' gradients; the origin is the mean of the negatives."""
    origin = np.mean(rows[concept:], axis=0)
    cross, along = [], []
    for count, frames in test.chunks(bench):
        gradients = gradient(frames)[:count]
        along.append(gradients.astype(np.float64) @ origin)
        cross.append(gram(gradients, rows, None) - along[-1][:, None])
    at_origin = gram(rows, origin[None], None)[:, 0] - float(origin.astype(np.float64) @ origin)
    products = gram(rows, None, origin)
    return Material(
        concept, products, np.concatenate(cross), origin, at_origin, np.concatenate(along), rows if keep else None
    )
