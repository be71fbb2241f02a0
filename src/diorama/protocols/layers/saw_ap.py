"""SAW AP: precision of smooth shading on annotated photos, by Kovacs et al. 2017 or by Li & Snavely 2018.

asks    {Do} {methods} find where shading is smooth, as people see it?
saw_ap  ↑ average precision of "smooth shading" on annotated photos: 1 all right
photos  · number of photos that the curve is summed over
"""

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.capabilities import Listed
from diorama.core.cases import Case, Score
from diorama.core.contracts import Protocol, World
from diorama.core.errors import InputError, Undefined
from diorama.core.frame import Frame, channel_mean
from diorama.core.scene import Scene
from diorama.metrics.saw import average_precision, curve_area, kovacs_confusion, li_confusion


@dataclass(frozen=True, slots=True)
class SawAp(Protocol):
    """Area under the precision–recall curve of "smooth", from a confusion summed over *all* photos, which are one case.

    preset  li (li2018) is usually called SAW AP: log shading, smooth pixels on the unfiltered gradient. kovacs
            (kovacs2017) draws only a curve, on linear shading scaled to a maximum of 1, whose area is given here. The
            two cannot be compared, so there is no default
    mode    mode of li: 1 is the weighted "challenge"
    gamma   takes shading to the power of 1/2.2 first, as CGIntrinsics does

    Labels are the world's `factors["saw"]`.
    """

    cite = ("kovacs2017", "li2018")
    track = "decompose"
    example = 'diorama run -w "saw(root=…)" -m retinex_gray -p {}'
    needs = ("factors", Listed)
    metrics: ClassVar[tuple[str, ...]] = ("saw_ap", "photos")

    preset: Literal["li", "li2018", "kovacs", "kovacs2017"]
    mode: Literal[0, 1] = 0
    gamma: bool = False

    def __post_init__(self) -> None:
        if self._kovacs and self.mode:
            raise InputError("saw_ap: mode=1 belongs to preset=li")

    @property
    def _kovacs(self) -> bool:
        return self.preset.startswith("kovacs")

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        encoding = "linear, maximum 1" if self._kovacs else "natural log, at least 1e-4"
        return {
            "encoding": ("shading^(1/2.2), then " if self.gamma else "") + encoding,
            "scale": "maximum of each photo" if self._kovacs else "none: gradients of logs",
            "window": "Sobel, 10×10 maximum " + ("everywhere" if self._kovacs else "except at smooth labels"),
            "mask": "annotated pixels",
            "weights": f"classes 1, 1, 2; mode {self.mode}",
            "mean": "none: one confusion over all photos",
        }

    def count(self, world: World, asked: int | None) -> int:
        """One, whatever is asked for."""
        return 1

    def case(self, world: World, seed: int, index: int) -> Case:
        """All photos of the world."""
        return Case(
            "all", {"scenes": [world.scene_at(seed, i)[1].to_json() for i in builtins.range(world.length or 0)]}
        )

    def scenes(self, world: World, case: Case) -> list[Scene]:
        """All photos."""
        return [Scene.from_json(scene) for scene in case.payload["scenes"]]

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The area under the curve of all photos."""
        labelled = [s for s in self.scenes(bench.world.object, case) if (_labels(bench.frame(s)) < 3).any()]
        confusion: Any = sum(self._confusion(bench.frame(s), bench.layers(s)) for s in labelled)
        value = (curve_area if self._kovacs else average_precision)(confusion) if labelled else float("nan")
        if np.isnan(value):
            raise Undefined("the photos need labels of smooth shading and of edges")
        yield Score("saw_ap", value)
        yield Score("photos", float(len(labelled)))

    def _confusion(self, frame: Frame, layers: Layers) -> np.ndarray:
        shading = np.maximum(channel_mean(layers.shading), 0)
        shading = shading ** (1 / 2.2) if self.gamma else shading
        if self._kovacs:
            return kovacs_confusion(shading / max(float(shading.max()), 1e-12), _labels(frame))
        return li_confusion(shading, _labels(frame), channel_mean(frame.srgb()) if self.mode else None)

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Layers:
        """Shading that steps at every labelled edge and nowhere else."""
        labels = _labels(bench.frame(scene))
        stripes = (np.indices(labels.shape).sum(axis=0) % 2)[:, :, None]
        return Layers(np.ones((*labels.shape, 1)), np.where((labels < 2)[:, :, None] & (stripes == 1), 0.01, 1.0))


def _labels(frame: Frame) -> np.ndarray:
    labels = (frame.truth.get("factors") or {}).get("saw")
    if labels is None:
        raise Undefined("the world has no SAW labels")
    return labels
