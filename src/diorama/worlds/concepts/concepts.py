"""Concept sets: staged scenes in which only the paint (Δa) or only the lamp's place (Δi) changes, with exact R, S and C.

The sets of Interpreting Intrinsic Image Decomposition using Concept Activations (Gupta, Saini, Narayanan, ICVGIP 2022),
on the `tabletop`. A scene of this world is a whole set, named as the paper's folders are; `members` are its images:

    world = Concepts(change="light", setting="rgb-simple")
    name, concept = world.scene(0)                # duck_mat0temp2500
    frames = world.render(world.members(concept)) # 44 of them

Δa: one of 4 lamps, 100 paints. Δi: one of 3 paints, the lamp at −44° to 44° in steps of 2°, without 0°. The i-th paint
of a base scene is the same in all its sets. Without inter-reflection (`bounces=0`) R is constant over Δi and S over Δa.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np

from diorama.core.bounds import Within
from diorama.core.capabilities import Sets
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.worlds.concepts.scenes import LAMPS, SWEEP, TEMPERATURES, casts, paints
from diorama.worlds.concepts.tabletop_lists import OnTabletop
from diorama.worlds.tabletop.meshes import PLAIN
from diorama.worlds.tabletop.tabletop import Tabletop

SETTINGS = ("textured-simple", "textured-complex", "rgb-simple", "rgb-complex")
#: Base scenes of a setting, or images of a set.
Some = Annotated[int, Within(1, 10_000)]
#: Images of a set: paints of Δa, places of the lamp of Δi; and sets of a base scene at one temperature.
IMAGES = {"albedo": 100, "light": len(SWEEP)}
#: The lamp is 1.35 times as far as on the tabletop: 6.75 m, so that the white table is in range under 2500 K too.
_FURTHER = 1.35
VARIANTS = {"albedo": len(LAMPS), "light": 3}


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """One set: what changes, the setting, the base scene, the temperature, and which lamp (Δa) or paint (Δi)."""

    change: str
    setting: str
    index: int
    temperature: int
    variant: int


@dataclass(frozen=True)
class Concepts(OnTabletop, Sets):
    """Sets of images of one scene; a set changes the paint (Δa) or the place of the lamp (Δi).

    change    which sets: albedo (Δa), light (Δi) or both
    setting   one of the paper's four kinds of scene (flat paint or textures, one object or three), or all
    scenes    number of base scenes of each setting
    images    largest number of images of a set; None for the paper's 100 of Δa and 44 of Δi
    bounces   number of inter-reflections; with any, every image is traced separately and S depends on the paint a little; 0
              for direct light only
    specular  highlights, as a separate layer; False for none
    fill      radiance of a dim even sky of the lamp's tint, 0 for none

    The order cycles through all changes, settings and base scenes asked for, with lamps, paints and temperatures varying
    from set to set. The lamp has 1000 W and a half side of 0.5 m.
    """

    change: Literal["albedo", "light", "both"] = "both"
    setting: Literal["textured-simple", "textured-complex", "rgb-simple", "rgb-complex", "all"] = "all"
    scenes: Some = 10
    images: Some | None = None
    bounces: int = 0
    specular: bool = True
    fill: float = 0.1

    factors: ClassVar[dict[str, str]] = {k: said for k, said in Tabletop.factors.items() if k != "light"}

    def __post_init__(self) -> None:
        self.table("rgb-simple")  # checks what it is given

    def table(self, setting: str) -> Tabletop:
        """The tabletop on which the scenes of a setting stand."""
        surface, kind = setting.split("-")
        looks = {"bounces": self.bounces, "specular": self.specular, "fill": self.fill}
        return self.tabletop(3 if kind == "complex" else 1, surface, **looks)

    @cached_property
    def entries(self) -> tuple[PlannedSet, ...]:
        """All sets in order: by round, base scene, setting and change, so that the first few show every kind."""
        changes = ("albedo", "light") if self.change == "both" else (self.change,)
        settings = SETTINGS if self.setting == "all" else (self.setting,)
        return tuple(
            PlannedSet(change, setting, i, TEMPERATURES[(turn + i) % 3], (turn // 3 + i) % VARIANTS[change])
            for turn in range(3 * max(VARIANTS[change] for change in changes))
            for i in range(self.scenes)
            for setting in settings
            for change in changes
            if turn < 3 * VARIANTS[change]
        )

    def __len__(self) -> int:
        return len(self.entries)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th set and its folder's name in the paper."""
        concept = self._concept(self.entries[index])
        return concept.params["name"], concept

    def opposite(self, concept: Scene) -> Scene:
        """The set of the same base scene and temperature with the other change, for relative CAVs."""
        p = concept.params
        other = "light" if p["change"] == "albedo" else "albedo"
        return self._concept(
            PlannedSet(other, p["setting"], p["index"], p["temperature"], p["variant"] % VARIANTS[other])
        )

    def _concept(self, entry: PlannedSet) -> Scene:
        surface, kind = entry.setting.split("-")
        table = self.table(f"rgb-{kind}")  # rgb and textured sets stand and are lit alike
        base, meshes = self._casts[kind][entry.index]
        drawn = table.sample(rng(self.seed, "concepts", kind, entry.index)).params
        bulky = {
            mesh: 0.8 if kind == "complex" and mesh in PLAIN else 1.0 for mesh in meshes
        }  # hide less of the others
        things = [
            {**thing, "mesh": mesh, "scale": thing["scale"] * bulky[mesh]}
            for thing, mesh in zip(drawn["objects"], meshes, strict=True)
        ]
        tex = "tex_" if surface == "textured" else ""
        ends = {"albedo": f"{tex}light{entry.variant}", "light": f"_{tex}mat{entry.variant}"}
        said = {"name": f"{base}{ends[entry.change]}temp{entry.temperature}", "base": base, **asdict(entry)}
        said["light_angle"] = LAMPS[entry.variant] if entry.change == "albedo" else 0.0
        said["lights"] = [[_FURTHER * x for x in place] for place in drawn["lights"]]
        scene = Scene("concepts", {**drawn, "objects": things, **said})
        return self._repainted(scene, entry.variant if entry.change == "light" else 0)

    @cached_property
    def _casts(self) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
        return {kind: casts(n, self.scenes, self.meshes) for kind, n in (("simple", 1), ("complex", 3))}

    def _repainted(self, scene: Scene, index: int) -> Scene:
        p = scene.params
        jobs = paints(self.seed, p["base"], index, p["setting"].split("-")[0], len(p["objects"]), self.textures)
        things = [{**thing, "paint": paint} for thing, paint in zip(p["objects"], jobs, strict=True)]
        return scene.changed({"objects": things})

    def members(self, concept: Scene) -> list[Scene]:
        """The images of a set in order: paints from the first, the lamp from left to right."""
        change = concept.params["change"]
        count = self.images or IMAGES[change]
        if change == "albedo":
            return [self._repainted(concept, i).changed({"member": i}) for i in range(count)]
        count = min(count, len(SWEEP))
        steps = np.linspace(0, len(SWEEP) - 1, count) if count > 1 else np.array([len(SWEEP) // 2])
        angles = [SWEEP[i] for i in np.rint(steps).astype(int)]
        return [concept.changed({"light_angle": a, "member": i}) for i, a in enumerate(angles)]

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The frames of members; a set itself is rendered with its first paint (Δa), or with the lamp at 0° (Δi)."""
        if self.bounces:
            return [self.table(scene.params["setting"]).render([scene])[0] for scene in scenes]
        return OnTabletop.render(self, scenes)
