"""Random scenes: staged negatives for concept vectors, in which solids, paint, camera, table and light all vary at once.

They replace random photographs: 2,000 by default, drawn independently of the concept sets and the test scenes, and quick to
render. One or three objects, some flat and some patterned, are seen from near or far and from low or high, on a black to
white table, under a lamp of any colour, power, size and place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.bounds import Count
from diorama.core.scene import Scene, rng
from diorama.worlds.concepts.scenes import paints
from diorama.worlds.concepts.tabletop_lists import OnTabletop
from diorama.worlds.tabletop.tabletop import LIGHTS


@dataclass(frozen=True)
class RandomScenes(OnTabletop):
    """Scenes that have nothing in common but the renderer.

    count  number of scenes
    """

    count: Count = 2000

    def __post_init__(self) -> None:
        self.tabletop(1)  # checks what it is given

    def __len__(self) -> int:
        return self.count

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th scene."""
        draw = rng(self.seed, "random scenes", index)
        objects = int(draw.choice([1, 3]))
        params = self.tabletop(objects).sample(draw).params
        things = [self._varied(draw, thing, index, i) for i, thing in enumerate(params["objects"])]
        said = {**params, "objects": things, "light": int(draw.integers(LIGHTS)), "specular": bool(draw.random() < 0.7)}
        said["camera"] = {"elevation": _uniform(draw, 8, 55), "distance": _uniform(draw, 3.6, 8) + objects - 1}
        said |= {name: _uniform(draw, *span) for name, span in _SPANS.items()}
        said["pan"] = [_uniform(draw, -0.15, 0.15), _uniform(draw, -0.15, 0.15)]
        return f"random{index:05d}", Scene("random_scenes", said)

    def _varied(self, draw: np.random.Generator, thing: dict[str, Any], index: int, i: int) -> dict[str, Any]:
        surface = "rgb" if draw.random() < 0.5 else "textured"
        (paint,) = paints(self.seed, f"random {index}", i, surface, 1, self.textures)
        gloss = [_uniform(draw, 0.01, 0.08), _uniform(draw, 0.08, 0.5)]
        return (
            thing
            | {"turn": _uniform(draw, -180, 180), "scale": _uniform(draw, 0.6, 1.1)}
            | {"paint": paint, "gloss": gloss}
        )


#: The range from which each parameter is drawn, evenly.
_SPANS = {
    "temperature": (2000, 12000),
    "power": (250, 1500),
    "radius": (0.1, 1.2),
    "fill": (0.02, 0.2),
    "table": (0.03, 0.9),
}


def _uniform(draw: np.random.Generator, low: float, high: float) -> float:
    return round(float(draw.uniform(low, high)), 4)
