"""Test scenes: 40 staged complex scenes under 3 lights each, disjoint from the concept sets, with exact R, S and C.

They stand in for the complex scenes of ARAP (`arap(root=…, exclude=gupta2022)`), on which Gupta, Saini and Narayanan
(ICVGIP 2022) measure sensitivities: three objects each, flat and textured in turn, from another viewpoint and under
other lamps than any concept set. The first 40 cases are the scenes under their key light, then the further lights follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.core.capabilities import Listed
from diorama.core.errors import InputError
from diorama.core.scene import Scene, rng
from diorama.worlds.concepts.layers import changed, composed, files_of
from diorama.worlds.tabletop.tabletop import SECOND, Tabletop

#: The tabletop's lights in the order in which they are used: the key light, the second fixed one, the hand-held ones.
_LIGHTS = (0, SECOND, *range(1, SECOND))


@dataclass(frozen=True)
class TestScenes(Listed):
    """`scenes` scenes under `lights` lights (1 to 12); the other parameters are those of `tabletop`."""

    __test__: ClassVar[bool] = False  # not a test, whatever pytest thinks of the name

    scenes: int = 40
    lights: int = 3
    size: int = 64
    samples: int = 16
    specular: bool = True
    fill: float = 0.1
    meshes: str | None = None
    textures: str | None = None
    up: Literal["y", "z"] = "y"
    seed: int = 0

    cite = ("gupta2022",)
    located = ("meshes", "textures")
    staged = True
    factors: ClassVar[dict[str, str]] = Tabletop.factors
    truth: ClassVar[tuple[str, ...]] = ("mask", "parts", "reflectance", "shading", "specular", "lights", "factors")

    do, render, fingerprint = changed, composed, files_of

    def __post_init__(self) -> None:
        if self.scenes < 1 or not 1 <= self.lights <= len(_LIGHTS):
            raise InputError(f"test_scenes: scenes={self.scenes}, lights={self.lights}: give ≥ 1, and 1 to 12 lights")
        self.table("rgb")  # checks what it is given

    def table(self, surface: Literal["rgb", "textured"]) -> Tabletop:
        """The tabletop on which the scenes stand."""
        kept = {"specular": self.specular, "fill": self.fill, "meshes": self.meshes, "textures": self.textures}
        return Tabletop(self.size, self.samples, 0, 3, surface, up=self.up, **kept)  # type: ignore[arg-type]

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
