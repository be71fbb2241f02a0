"""Activations and loss gradients for CSM, each computed once: of concept sets, test images and negatives.

The pseudo-layer `output` is the answer itself, flattened. Its loss gradient is the residual, 2/N·(answer − truth), so
that any decomposer can be asked; other layers are those that a network offers through `features` and `loss_grad`.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from diorama.core.bench import Bench, Memo
from diorama.core.catalogue import Component, build, find, parameters
from diorama.core.contracts import Layered
from diorama.core.errors import InputError, Undefined, which_layer
from diorama.core.frame import Frame, channel_mean, linear_to_srgb
from diorama.core.scene import Scene
from diorama.core.spec import Spec
from diorama.metrics.cav import gram
from diorama.metrics.errors import scale
from diorama.protocols.concepts.concept_sets import BRANCHES

Encoding = Literal["linear", "srgb", "log"]
OUTPUT, CHUNK = "output", 16
#: A residual of less than this share of the truth is none: its signs would be those of rounding.
NOTHING = 1e-5
#: After so many seconds a line says how far the images of a large source are.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Source:
    """Frames that are not the world's own: a world spec, how many of its scenes, and the seed of staged ones."""

    text: str
    count: int | None
    seed: int
    size: int | None

    @property
    def world(self) -> Component:
        """The world, made once, with the concept sets' image size where it has one and none is given."""
        return _built(self.text, self.size)

    def __len__(self) -> int:
        known = self.world.object.length or self.count
        if known is None:
            raise InputError(f"{self.text} has no end: say how many of its scenes to take")
        return min(known, self.count or known)

    def frames(self) -> Iterator[list[Frame]]:
        """All frames in chunks."""
        for start in range(0, len(self), CHUNK):
            yield [_frame(self, i) for i in range(start, min(start + CHUNK, len(self)))]


@lru_cache(maxsize=8)
def _built(text: str, size: int | None) -> Component:
    found = find("world", text)
    takes = any(p.name == "size" for p in parameters(found.target, "world"))
    if size is None or not takes or "size" in found.spec.params:
        return build("world", text)
    return build("world", Spec(found.spec.name, {**found.spec.params, "size": size}))


@lru_cache(maxsize=512)
def _frame(source: Source, i: int) -> Frame:
    world = source.world.object
    return world.render([world.scene_at(source.seed, i)[1]])[0]


@dataclass(frozen=True, slots=True)
class Probe:
    """Where and how a decomposer is read: which branch and layer, the encoding of `output`, the scale of its answers."""

    layer: str
    encoding: Encoding
    aligned: bool

    def features(self, bench: Bench, frames: Sequence[Frame], branch: str) -> np.ndarray:
        """Activations (n, d) float32."""
        if self.layer == OUTPUT:
            return _stacked([self._encoded(layer) for layer in _answers(bench, frames, branch)])
        network = self._network(bench)
        return np.concatenate([network.features(bench.shown(chunk), branch, self.layer) for chunk in _chunks(frames)])

    def gradients(self, bench: Bench, frames: Sequence[Frame], branch: str) -> np.ndarray:
        """Gradients (n, d) of the squared error of a branch; rows of zeros where the answer is the truth."""
        answers = _answers(bench, frames, branch)
        truths = [self._target(f, a, branch) for f, a in zip(frames, answers, strict=True)]
        if self.layer == OUTPUT:
            return _stacked([self._residual(f, a, t) for f, a, t in zip(frames, answers, truths, strict=True)])
        network = self._network(bench)
        pairs = zip(_chunks(frames), _chunks(truths), strict=True)
        found = np.concatenate([network.loss_grad(bench.shown(some), branch, self.layer, true) for some, true in pairs])
        near = [_none(t - a, t, f.mask) for f, a, t in zip(frames, answers, truths, strict=True)]
        return np.where(np.array(near)[:, None], np.float32(0), found)

    def _target(self, frame: Frame, answer: np.ndarray, branch: str) -> np.ndarray:
        """The true layer with as many channels as the answer, brought to the answer's scale where scales are aligned.

        min over λ of ‖λ·answer − truth‖² has the same gradient as ‖answer − truth/λ‖², up to λ² > 0. Off the mask the
        target is the answer itself, so that nothing there counts as an error.
        """
        truth = frame.truth.get(branch)
        if truth is None:
            raise Undefined(f"the test image has no true {branch}")
        if answer.shape[2] != truth.shape[2]:
            truth = channel_mean(truth)[:, :, None] if answer.shape[2] == 1 else np.repeat(truth, 3, axis=2)
        factor = float(scale(truth, answer, frame.mask)) if self.aligned else 1.0
        return np.where(frame.mask[:, :, None], truth / factor if factor > 0 else truth, answer)

    def _residual(self, frame: Frame, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        if _none(answer - truth, truth, frame.mask):
            return np.zeros(answer.size, np.float32)
        difference = self._encoded(answer) - self._encoded(truth)
        return (2 / difference.size * difference).ravel()

    def _encoded(self, layer: np.ndarray) -> np.ndarray:
        if self.encoding == "linear":
            return layer
        return linear_to_srgb(layer) if self.encoding == "srgb" else np.log(np.maximum(layer, 1e-3))

    def _network(self, bench: Bench) -> Any:
        if why := without_layer(bench.asked.object, self.layer):  # controls are asked too
            raise InputError(why)
        return bench.asked.object


def without_layer(method: Any, layer: str) -> str:
    """Why a layer of a method cannot be read, or an empty string."""
    if layer != OUTPUT and not isinstance(method, Layered):
        return f"csm: {type(method).__name__} gives no gradients: take layer={OUTPUT}, which needs none"
    known = [*(method.layers if isinstance(method, Layered) else ()), OUTPUT]
    return "" if layer in known else f"csm: the method has no layer {layer!r}; {which_layer(layer, known)}"


def _none(difference: np.ndarray, truth: np.ndarray, mask: np.ndarray) -> bool:
    return bool(np.linalg.norm(difference[mask]) <= NOTHING * np.linalg.norm(truth[mask]))


def _answers(bench: Bench, frames: Sequence[Frame], branch: str) -> list[np.ndarray]:
    """A layer of the answers about frames that are already rendered."""
    for frame in frames:
        bench.memo.frames.setdefault((bench.world.digest, frame.scene.key), frame)
    return [getattr(bench.layers(frame.scene), branch) for frame in frames]


def _stacked(layers: Sequence[np.ndarray]) -> np.ndarray:
    sizes = {layer.size for layer in layers}
    if len(sizes) > 1:
        raise InputError("csm: images are of several sizes or the answers of several channel counts; one is needed")
    return np.array([layer.ravel() for layer in layers], np.float32)


def _chunks(items: Sequence[Any]) -> list[list[Any]]:
    return [list(items[i : i + CHUNK]) for i in range(0, len(items), CHUNK)]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What every case of a cell shares, for one branch: gradients (t, d) of the test images, activations (m, d) of the
    negatives, and the products of negatives with each other (m, m) and with the gradients (t, m). `chance` remembers
    the scores of random CAVs by size, trainer and runs.
    """

    gradients: np.ndarray
    negatives: np.ndarray
    products: np.ndarray
    against: np.ndarray
    chance: dict[tuple[Any, ...], np.ndarray] = field(default_factory=dict)


#: Tables by method, grid point and sources, oldest first: cases follow each other, so do the methods of a plan.
_TABLES: dict[tuple[Any, ...], dict[str, Table]] = {}
#: Bytes of tables that are kept.
BUDGET = 1 << 30


def tables(bench: Bench, probe: Probe, test: Source, negatives: Source | None) -> dict[str, Table]:
    """The table of each branch; test images without residual are left out."""
    key = (bench.asked.digest, bench.point, probe, test, negatives)
    if key not in _TABLES:
        made = _made(bench, probe, test, negatives)
        while _TABLES and sum(map(_bytes, _TABLES.values())) + _bytes(made) > BUDGET:
            del _TABLES[next(iter(_TABLES))]
        _TABLES[key] = made
    return _TABLES[key]


def _bytes(made: dict[str, Table]) -> int:
    return sum(table.gradients.nbytes + table.negatives.nbytes for table in made.values())


def _made(bench: Bench, probe: Probe, test: Source, negatives: Source | None) -> dict[str, Table]:
    gradients = {b: g[np.abs(g).max(axis=1) > 0] for b, g in _passed(bench, test, probe.gradients).items()}
    others = _passed(bench, negatives, probe.features) if negatives else {b: g[:0] for b, g in gradients.items()}
    if any(others[b].shape[1] != gradients[b].shape[1] for b in BRANCHES):
        raise InputError(f"csm: {test.text} and {negatives and negatives.text} give images of two sizes; write size=…")
    return {b: Table(gradients[b], others[b], gram(others[b]), gram(gradients[b], others[b])) for b in BRANCHES}


def _passed(bench: Bench, source: Source, ask: Callable[..., np.ndarray]) -> dict[str, np.ndarray]:
    """What is asked of every frame of a source, for both branches: it is rendered and decomposed once."""
    found: dict[str, list[np.ndarray]] = {branch: [] for branch in BRANCHES}
    start = told = time.monotonic()
    for i, frames in enumerate(source.frames(), start=1):
        on = _on(bench, source)
        for branch, parts in found.items():
            parts.append(ask(on, frames, branch))
        done, now = i * CHUNK, time.monotonic()
        if now - told > PATIENCE and done < len(source):
            told, left = now, (now - start) / done * (len(source) - done) / 60
            text = f"csm: {done} of {len(source)} images of {source.text}, {left:.1f} minutes left"
            print(text, file=sys.stderr, flush=True)
    return {branch: np.concatenate(parts) for branch, parts in found.items()}


def _on(bench: Bench, source: Source) -> Bench:
    """The bench with another world under it and a memory of its own, so that frames are let go chunk by chunk."""
    return replace(bench, world=source.world, memo=Memo())


def activations(bench: Bench, probe: Probe, members: Sequence[Scene], branch: str) -> np.ndarray:
    """The activations of the images of a concept set."""
    return probe.features(bench, bench.frames(members), branch)
