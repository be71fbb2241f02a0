"""Your own protocol, which counts its cases in its own way: does the answered shading fall off in the right direction?
====================================================================================================================

diorama check examples/own_protocol.py:Falloff
diorama run -w examples/own_world.py:Ramps -m retinex_gray -m baseline -p examples/own_protocol.py:Falloff --controls
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from own_world import Tilted

from diorama import Case, Score, Undefined, World
from diorama.core.answers import Layers
from diorama.core.contracts import Protocol


@dataclass(frozen=True)
class Falloff(Protocol):
    """The angle between the slope of the answered log shading and the true tilt, over 180°; one case for each tilt."""

    track = "decompose"
    needs = ("shading", Tilted)
    metrics: ClassVar[tuple[str, ...]] = ("falloff",)
    direction = "lower"
    tried_on: ClassVar[tuple[str, ...]] = (__file__.replace("own_protocol", "own_world") + ":Ramps",)

    def count(self, world: World, asked: int | None) -> int:
        """As many cases as the world has tilts, whatever is asked for."""
        assert isinstance(world, Tilted)
        return len(world.tilts)

    def case(self, world: World, seed: int, index: int) -> Case:
        """The first scene under the index-th tilt."""
        assert isinstance(world, Tilted)
        scene = world.do(world.scene_at(seed, 0)[1], tilt=world.tilts[index])
        return Case(f"tilt-{world.tilts[index]:03d}", {"scene": scene.to_json()})

    def score(self, bench: Any, case: Case) -> Iterator[Score]:
        """The angle of one case."""
        slope = _slope(np.log(np.maximum(bench.layers(case.scene).shading.mean(axis=2), 1e-6)))
        if not slope.any():
            raise Undefined("the answered shading is flat")
        difference = np.rad2deg(np.arctan2(slope[1], slope[0])) - case.scene.params["tilt"]
        yield Score("falloff", abs((difference + 180) % 360 - 180) / 180)

    def oracle(self, bench: Any, scene: Any, target: int | None) -> Layers:
        """The true layers."""
        truth = bench.frame(scene).truth
        angle, (h, w) = np.deg2rad(scene.params["tilt"]), truth["mask"].shape
        y, x = np.indices((h, w)) / (h - 1) - 0.5
        return Layers(truth["reflectance"], np.exp(x * np.cos(angle) + y * np.sin(angle))[:, :, None])


def _slope(plane: np.ndarray) -> np.ndarray:
    """The slope in x and y of the plane through the values, by least squares."""
    y, x = (axis - axis.mean() for axis in np.indices(plane.shape, float))
    return np.array([(plane * x).sum(), (plane * y).sum()])
