"""Activations and loss gradients for CSM, of concept sets, test images and negatives: every image passes once.

The pseudo-layer `output` is the answer itself, flattened. Its loss gradient is the residual, 2/N·(answer − truth), so
that any decomposer can be used; other layers are those that a network offers through `features` and `loss_grad`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from diorama.core.bench import Bench
from diorama.core.catalogue import Component
from diorama.core.contracts import Layered, Saved, World
from diorama.core.errors import InputError, Undefined, which_layer
from diorama.core.frame import Frame, channel_mean, linear_to_srgb
from diorama.core.memory import Scope
from diorama.core.scene import Scene
from diorama.metrics.errors import scale
from diorama.protocols.concepts.concept_sets import BRANCHES
from diorama.protocols.concepts.wide import Activations

Transform = Literal["linear", "srgb", "log"]
OUTPUT = "output"
#: A residual of less than this share of the truth counts as none: its signs would come from rounding.
NOTHING = 1e-5


@dataclass(frozen=True, slots=True)
class Probe:
    """Where a decomposer is read out: the layer, the transform of `output`, whether the truth is scaled to the answer."""

    layer: str
    transform: Transform
    aligned: bool = False

    @property
    def unscaled(self) -> "Probe":
        """The same layer and transform, for activations, which do not depend on the truth."""
        return replace(self, aligned=False)

    def transformed(self, layer: np.ndarray) -> np.ndarray:
        """A layer of an answer under the transform of `output`."""
        if self.transform == "linear":
            return layer
        return linear_to_srgb(layer) if self.transform == "srgb" else np.log(np.maximum(layer, 1e-3))

    def residual(self, answer: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """The gradient of the squared error with respect to the answer."""
        difference = self.transformed(answer) - self.transformed(truth)
        return 2 / difference.size * difference


def _target(frame: Frame, answer: np.ndarray, branch: str, aligned: bool) -> np.ndarray:
    """The true layer with the channels of the answer, scaled to the answer if `aligned`.

    min over λ of ‖λ·answer − truth‖² has the same gradient as ‖answer − truth/λ‖², up to λ² > 0. Off the mask the
    target is the answer itself, so that the error there is 0.
    """
    truth = frame.truth.get(branch)
    if truth is None:
        raise Undefined(f"the test image has no true {branch}")
    if answer.shape[2] != truth.shape[2]:
        truth = channel_mean(truth)[:, :, None] if answer.shape[2] == 1 else np.repeat(truth, 3, axis=2)
    factor = float(scale(truth, answer, frame.mask)) if aligned else 1.0
    return np.where(frame.mask[:, :, None], truth / factor if factor > 0 else truth, answer)


def _features(bench: Bench, frames: Sequence[Frame], probes: Sequence[Probe]) -> list["Readings"]:
    """Activations (n, d) at every probe, of all inner layers and both branches from one pass."""
    inner = list(dict.fromkeys(probe.layer for probe in probes if probe.layer != OUTPUT))
    wanted = [(branch, inner) for branch in BRANCHES]
    read = _network(bench, inner).features_of(bench.shown(frames), wanted) if inner else [[] for _ in wanted]
    known = {b: dict(zip(inner, rows, strict=True)) for b, rows in zip(BRANCHES, read, strict=True)}
    answers = _answers(bench, frames) if OUTPUT in {probe.layer for probe in probes} else {}
    return [
        {b: known[b][p.layer] if p.layer in inner else _stacked(map(p.transformed, answers[b])) for b in BRANCHES}
        for p in probes
    ]


def _gradients(bench: Bench, frames: Sequence[Frame], probes: Sequence[Probe]) -> list["Readings"]:
    """Gradients (n, d) of the squared error of each branch; rows of zeros where the answer is the truth."""
    answers = _answers(bench, frames)
    targets = {
        (b, aligned): [_target(f, a, b, aligned) for f, a in zip(frames, answers[b], strict=True)]
        for b in BRANCHES
        for aligned in dict.fromkeys(probe.aligned for probe in probes)
    }
    inner = _inner_gradients(bench, frames, probes, targets)
    readings: list[Readings] = []
    for probe in probes:
        rows = {}
        for b in BRANCHES:
            truths = targets[b, probe.aligned]
            trios = list(zip(frames, answers[b], truths, strict=True))
            own = inner.get((b, probe.aligned, probe.layer))
            own = _stacked(probe.residual(a, t) for _, a, t in trios) if own is None else own
            exact = np.array([_negligible(a - t, t, f.mask) for f, a, t in trios])[:, None]
            rows[b] = np.where(exact, np.float32(0), own)
        readings.append(rows)
    return readings


def _inner_gradients(
    bench: Bench,
    frames: Sequence[Frame],
    probes: Sequence[Probe],
    targets: dict[tuple[str, bool], list[np.ndarray]],
) -> dict[tuple[str, bool, str], np.ndarray]:
    """The gradients at inner layers by (branch, aligned, layer), all from one forward pass."""
    layers = {
        (b, aligned): list(dict.fromkeys(p.layer for p in probes if p.aligned == aligned and p.layer != OUTPUT))
        for b, aligned in targets
    }
    wanted = [key for key in targets if layers[key]]
    if not wanted:
        return {}
    network = _network(bench, list(dict.fromkeys(layer for key in wanted for layer in layers[key])))
    requests = [(b, layers[b, aligned]) for b, aligned in wanted]
    read = network.loss_grads_of(bench.shown(frames), requests, [targets[key] for key in wanted])
    return {
        (*key, layer): rows
        for key, some in zip(wanted, read, strict=True)
        for layer, rows in zip(layers[key], some, strict=True)
    }


def without_layer(method: Any, layer: str) -> str:
    """Why a layer of a method cannot be read, or an empty string."""
    if layer != OUTPUT and not isinstance(method, Layered):
        return f"csm: {type(method).__name__} gives no gradients: take layer={OUTPUT}, which needs none"
    known = [*(method.layers if isinstance(method, Layered) else ()), OUTPUT]
    return "" if layer in known else f"csm: the method has no layer {layer!r}; {which_layer(layer, known)}"


def _network(bench: Bench, layers: Sequence[str]) -> Layered:
    """The method, if it has these layers; controls come here too."""
    for layer in layers:
        if why := without_layer(bench.asked.object, layer):
            raise InputError(why)
    return bench.asked.object


def _negligible(difference: np.ndarray, truth: np.ndarray, mask: np.ndarray) -> bool:
    return bool(np.linalg.norm(difference[mask]) <= NOTHING * np.linalg.norm(truth[mask]))


def _answers(bench: Bench, frames: Sequence[Frame]) -> dict[str, list[np.ndarray]]:
    """The layers of the answers about frames, by branch."""
    layers = [bench.layers(frame.scene) for frame in frames]
    return {branch: [getattr(of_frame, branch) for of_frame in layers] for branch in BRANCHES}


def _stacked(layers: Iterable[np.ndarray]) -> np.ndarray:
    rows = [np.asarray(layer, np.float32).reshape(1, -1) for layer in layers]
    stack = Activations(len(rows))
    for row in rows:
        stack.add(row)
    return stack.array


#: Activations or gradients (n, d) float32 of images at one probe, by branch.
Readings = dict[str, np.ndarray]
#: A function that gives the readings of frames at every probe.
Reading = Callable[[Bench, Sequence[Frame], Sequence[Probe]], list[Readings]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads a method's activations and gradients at a probe. Images pass once for it and its fellows; the run keeps them."""

    bench: Bench
    probe: Probe
    fellows: Sequence[Probe]

    def gradients(self, world: Component[World], count: int | None) -> Readings:
        """The gradients of the first scenes of a world, or all; rows without residual are left out."""
        readings = self._of_world(world, count, _gradients)
        return {branch: rows[np.abs(rows).max(axis=1) > 0] for branch, rows in readings.items()}

    def features(self, world: Component[World], count: int | None) -> Readings:
        """The activations of the first scenes of a world, or all; there may be thousands, so frames are not kept."""
        return self._unscaled._of_world(world, count, _features, "unit")

    def members(self, concept: Scene) -> Readings:
        """The activations of the images of a concept set."""
        members = partial(self.bench.world.object.members, concept)
        return self._unscaled._read(self.bench.world, (concept.key,), members, _features)

    @property
    def _unscaled(self) -> "Reader":
        """The reader of activations, which do not depend on the truth: one for both variants."""
        return replace(self, probe=self.probe.unscaled, fellows=[probe.unscaled for probe in self.fellows])

    def _of_world(self, world: Component[World], count: int | None, reading: Reading, scope: Scope = "run") -> Readings:
        """Images of another world; of the same size as the concept sets, unless a size is given."""
        seed, side = self.bench.case.payload["seed"], self.bench.world.object.size
        sized = self.bench.keep("run", ("csm sized", world.digest, side), lambda: world.with_default(size=side))
        length = sized.object.length or count
        if length is None:
            raise InputError(f"{world.label} is endless: give the number of scenes to take")
        places = range(min(length, count or length))
        scenes = partial(_scenes, sized.object, seed, places)
        return self._read(sized, (seed, len(places)), scenes, reading, scope, spills=True)

    def _read(
        self,
        world: Component[World],
        name: tuple[Any, ...],
        scenes: Callable[[], Sequence[Scene]],
        reading: Reading,
        scope: Scope = "run",
        spills: bool = False,
    ) -> Readings:
        bench, asked = self.bench.on(world), self.bench.asked
        elsewhere = bench.on(world, scope)
        saved = bench.case.key if isinstance(asked.object, Saved) else ""
        key = ("csm", reading.__name__, asked.digest, bench.point, saved, *name)

        def passed() -> Readings:
            probes = list(dict.fromkeys([*self.fellows, self.probe]))
            readings = _passed(bench, elsewhere, scenes(), reading, probes, spills)
            for probe, rows in readings.items():
                if probe != self.probe:
                    bench.keep("run", (*key, probe), partial(dict, rows))
            return readings[self.probe]

        return bench.keep("run", (*key, self.probe), passed)


def _scenes(world: World, seed: int, places: range) -> list[Scene]:
    return [world.scene_at(seed, i)[1] for i in places]


def _passed(
    bench: Bench,
    elsewhere: Bench,
    scenes: Sequence[Scene],
    reading: Reading,
    probes: Sequence[Probe],
    spills: bool,
) -> dict[Probe, Readings]:
    """Pass every image once; frames that `elsewhere` keeps for the run serve other methods too."""
    rows: dict[tuple[Probe, str], Activations] = {
        (p, b): Activations(len(scenes), spills) for p in probes for b in BRANCHES
    }
    for some in bench.passes(scenes, bench.world.label):
        for probe, of_branches in zip(probes, reading(bench, elsewhere.frames(some), probes), strict=True):
            for branch, part in of_branches.items():
                rows[probe, branch].add(part)
    return {p: {b: rows[p, b].array for b in BRANCHES} for p in probes}
