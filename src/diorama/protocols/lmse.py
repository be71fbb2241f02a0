"""LMSE: local mean squared error of shading and reflectance, parameters chosen leave-one-out (Grosse et al. 2009)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.contracts import Case, Panel, Score, World, scene_at
from diorama.core.controls import DOSES
from diorama.core.errors import Undefined
from diorama.core.frame import Frame, channel_mean, linear_to_srgb, residual
from diorama.core.scene import Scene
from diorama.metrics.lmse import lmse


@dataclass(frozen=True, slots=True)
class Lmse:
    """½·LMSE(shading) + ½·LMSE(reflectance), both gray (channel means), windows of 20 pixels every 10, masked.

    A parameter is chosen for each case as the grid point with the smallest sum over the other cases. Also scored:
    `reconstruction`, min over k of ‖I − k·R·S − C‖/‖I‖ of the answer, and `truth_residual`, the same of the world's
    own truth.
    """

    cite: ClassVar[tuple[str, ...]] = ("grosse2009",)
    version: ClassVar[int] = 1
    direction: ClassVar[Literal["lower", "higher"]] = "lower"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    track: ClassVar[str] = "decompose"
    needs: ClassVar[tuple[str, ...]] = ("reflectance", "shading")
    metrics: ClassVar[tuple[str, ...]] = (
        "lmse",
        "lmse_reflectance",
        "lmse_shading",
        "reconstruction",
        "truth_residual",
    )
    doses: ClassVar[tuple[float, ...]] = DOSES
    dose_name: ClassVar[str] = "share of the true shading leaked into the true reflectance"
    #: Gehler et al., NIPS 2011, Table 1 (leave-one-out on the 16 objects); the 2009 paper prints no numbers.
    published: ClassVar[dict[tuple[str, str], float]] = {
        ("mit_intrinsic", "decompose/baseline"): 0.0726,
        ("mit_intrinsic", "decompose/retinex_gray"): 0.0407,
        ("mit_intrinsic", "decompose/retinex_color"): 0.0295,
        ("mit_intrinsic", "decompose/weiss"): 0.0215,
        ("mit_intrinsic", "decompose/weiss_retinex"): 0.0164,
    }

    preset: Literal["grosse"] = "grosse"

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        return {
            "encoding": "linear, gray",
            "scale": "one per window",
            "window": "20 pixels every 10",
            "mask": "the world's" if "mask" in world.truth else "none",
            "mean": "arithmetic over cases",
            "tuning": "leave one out",
        }

    def case(self, world: World, seed: int, index: int) -> Case:
        """One scene of the world."""
        name, scene = scene_at(world, seed, index)
        return Case(name, {"scene": scene.to_json()})

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """Eq. 9 of the paper for one object."""
        scene = Scene.from_json(case.payload["scene"])
        frame, layers = bench.frame(scene), bench.layers(scene)
        reflectance, shading = _two(frame, layers)
        if np.isnan(reflectance + shading):
            raise Undefined("the image is smaller than one window, or the truth is zero in all of them")
        yield Score("lmse", (reflectance + shading) / 2)
        yield Score("lmse_reflectance", reflectance)
        yield Score("lmse_shading", shading)
        yield Score("reconstruction", residual(_explained(frame, layers)))
        if bench.point == 0:
            yield Score("truth_residual", residual(frame))

    def objective(self, layers: Layers, frame: Frame) -> float:
        """The score of one answer, for methods that are fitted."""
        return sum(_two(frame, layers)) / 2

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Layers:
        """The world's truth."""
        truth = bench.frame(scene).truth
        return Layers(truth["reflectance"], truth["shading"], truth.get("specular"))

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Layers:
        """The true reflectance times the true shading to the power of the dose; what is leaked is taken from shading."""
        true = self.oracle(bench, scene, target)
        leak = np.maximum(true.shading.mean(axis=2, keepdims=True), 1e-6) ** np.float32(dose)
        return Layers(true.reflectance * leak, true.shading / leak)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """The frame, the true layers, the answered layers, and where they differ."""
        scene = Scene.from_json(case.payload["scene"])
        frame, layers = bench.frame(scene), bench.layers(scene)
        panels = [Panel("image", frame.srgb())]
        for name in ("reflectance", "shading"):
            truth, answer = channel_mean(frame.truth[name]), channel_mean(getattr(layers, name))
            truth, answer = _aligned(truth, answer, frame.mask)
            error = np.abs(truth - answer)[:, :, None] * np.array([1.0, 0.45, 0.1])
            panels += [
                Panel(f"true {name}", _shown(truth)),
                Panel(name, _shown(answer)),
                Panel("error", np.clip(error * 3, 0, 1)),
            ]
        return panels


@lru_cache(maxsize=4)
def _true_gray(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    return channel_mean(frame.truth["reflectance"]), channel_mean(frame.truth["shading"])


def _two(frame: Frame, layers: Layers) -> tuple[float, float]:
    """LMSE of reflectance and of shading, gray."""
    reflectance, shading = _true_gray(frame)
    return (
        lmse(reflectance, channel_mean(layers.reflectance), frame.mask),
        lmse(shading, channel_mean(layers.shading), frame.mask),
    )


def _explained(frame: Frame, layers: Layers) -> Frame:
    truth = {"mask": frame.mask, "reflectance": layers.reflectance, "shading": layers.shading}
    if layers.specular is not None:
        truth["specular"] = layers.specular
    return Frame(frame.scene, frame.image, frame.encoding, truth)


def _aligned(truth: np.ndarray, answer: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both layers on the truth's scale: its 99th percentile becomes 1, the answer follows by least squares."""
    scale = (truth * answer)[mask].sum() / max((answer * answer)[mask].sum(), 1e-12)
    top = max(np.quantile(truth[mask], 0.99), 1e-12)
    return np.where(mask, truth / top, 0), np.where(mask, answer * scale / top, 0)


def _shown(layer: np.ndarray) -> np.ndarray:
    return linear_to_srgb(np.repeat(layer[:, :, None], 3, axis=2))
