"""Test scenes: 40 staged complex scenes under 3 lights each, disjoint from the concept sets, with exact R, S and C.

They replace the complex scenes of ARAP (`arap(root=…, exclude=gupta2022)`), on which Gupta, Saini and Narayanan (ICVGIP
2022) measure sensitivities: three objects each, flat and textured in turn, with another viewpoint and other lamps than any
concept set. The first 40 cases are the scenes under their key light, then the further lights follow.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from diorama.core.bounds import Count, Within
from diorama.core.scene import Scene, rng
from diorama.worlds.concepts.tabletop_lists import OnTabletop
from diorama.worlds.tabletop.tabletop import SECOND, Tabletop

#: The tabletop's lights in the order in which they are used: the key light, the second fixed one, the hand-held ones.
_LIGHTS = (0, SECOND, *range(1, SECOND))


@dataclass(frozen=True)
class TestScenes(OnTabletop):
    """Scenes to test on, each under several lights.

    scenes    number of scenes; the paper has 42 of ARAP
    lights    number of lights of each scene, 1 to 12; the paper has 3 or 4
    specular  highlights, as a separate layer; False for none
    fill      radiance of a dim even sky of the lamp's tint, 0 for none
    """

    __test__: ClassVar[bool] = False  # not a test, whatever pytest thinks of the name

    scenes: Count = 40
    lights: Annotated[int, Within(1, 12)] = 3
    specular: bool = True
    fill: float = 0.1

    def __post_init__(self) -> None:
        self.table("rgb")  # checks what it is given

    def table(self, surface: Literal["rgb", "textured"]) -> Tabletop:
        """The tabletop on which the scenes stand."""
        return self.tabletop(3, surface, specular=self.specular, fill=self.fill)

    def __len__(self) -> int:
        return self.scenes * self.lights

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th scene: all scenes under the first light, then all under the second, …"""
        light, i = divmod(index, self.scenes)
        generator = rng(self.seed, "test scenes", i)
        params = self.table("textured" if i % 2 else "rgb").sample(generator).params
        camera = {"elevation": round(float(generator.uniform(24, 36)), 4), "distance": 8.4}
        kelvin = [round(float(k)) for k in generator.uniform(3000, 7500, len(_LIGHTS))]
        further = [[1.35 * x for x in place] for place in params["lights"]]
        said = {"camera": camera, "lights": further, "light": _LIGHTS[light], "temperature": kelvin[light]}
        return f"staged{i:02d}_light{light}", Scene("test_scenes", {**params, **said})
