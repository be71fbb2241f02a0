"""Invariance: how much of a change of light is left in the reflectance, over the views of a scene; needs no truth.

asks        How much light {do} {methods} leave in the paint?
invariance  ↓ share of the change between lights that is left in the reflectance: 0 ignores the light, 1 follows it
            like the image
texture     · how much texture the reflectance keeps, against the image's; 0 unmasks a constant answer, whose
            invariance is perfect
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.capabilities import Lit
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import Bounds, World
from diorama.core.errors import InputError, Undefined
from diorama.core.frame import channel_mean
from diorama.core.scene import Scene
from diorama.metrics.invariance import centred_log, invariance, texture
from diorama.protocols.layers.judging import OnLayers, as_shown, exposed, usual

#: Lights of worlds that do not say which they have (`lights(scene)`): the ten further ones of MIT Intrinsic Images.
LIGHTS = tuple(range(1, 11))


@dataclass(frozen=True, slots=True)
class Invariance(OnLayers):
    """Variance over lights of log R̂ divided by that of log I, with each image's logs centred on the mask: scale-free.

    The method decomposes every view `do(scene, light=i)` separately. 0 ignores the light, 1 follows it like the image.
    `texture`, the variance over pixels of the mean log R̂ over that of the mean log I, unmasks the constant answer, whose
    invariance is perfect and whose texture is 0.
    """

    cite = ("gupta2022",)
    metrics: ClassVar[tuple[str, ...]] = ("invariance", "texture")
    ranges: ClassVar[dict[str, Bounds]] = {"texture": (0.0, None)}
    dose_name = "share of each view's shading leaked into the true reflectance"

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        return usual(world) | {
            "encoding": "natural log of the linear channel mean, at least 1e-3 of the image's mean",
            "scale": "every image its own",
            "views": "every recorded light" if isinstance(world, Lit) else f"{len(LIGHTS)} lights",
            "mean": "arithmetic over scenes",
        }

    def case(self, world: World, seed: int, index: int) -> Case:
        """One scene with its lights."""
        if "light" not in world.factors:
            raise InputError("invariance needs a world whose light can be changed, like mit_intrinsic or mondrian")
        name, scene = world.scene_at(seed, index)
        lights = world.lights(scene) if isinstance(world, Lit) else LIGHTS
        return Case(name, {"scene": scene.to_json(), "lights": list(lights)})

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The change of reflectance and of the image over the lights of one scene."""
        views = _views(bench, case)
        if len(views) < 2:
            raise Undefined("the scene was recorded under one light only")
        mask = np.logical_and.reduce([frame.mask for frame in bench.frames(views)])
        images = np.array([centred_log(channel_mean(bench.frame(v).linear()), mask) for v in views])
        answers = np.array([centred_log(channel_mean(bench.layers(v).reflectance), mask) for v in views])
        value, detail = invariance(answers, images), texture(answers, images)
        if np.isnan(value + detail):
            raise Undefined("the image does not change with the light, or is constant")
        yield Score("invariance", value)
        yield Score("texture", detail)

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Layers:
        """The scene's true reflectance under every light."""
        truth = bench.frame(bench.case.scene).truth
        if truth.get("reflectance") is None:
            raise Undefined("the world has no true reflectance")
        reflectance = truth["reflectance"]
        return Layers(reflectance, _shading(bench, scene, reflectance))

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """Three views and their reflectance."""
        panels = []
        for view in _views(bench, case)[:3]:
            frame, layer = bench.frame(view), channel_mean(bench.layers(view).reflectance)
            light = view.params.get("light")
            panels += [Panel(f"light {light}", frame.srgb()), Panel("reflectance", as_shown(exposed(layer, frame)))]
        return panels


def _views(bench: Bench, case: Case) -> list[Scene]:
    return [bench.world.object.do(case.scene, light=light) for light in case.payload["lights"]]


def _shading(bench: Bench, scene: Scene, reflectance: np.ndarray) -> np.ndarray:
    image = bench.frame(scene).linear()
    image = image if reflectance.shape[2] == 3 else channel_mean(image)[:, :, None]
    return image / np.maximum(reflectance, 1e-4)
