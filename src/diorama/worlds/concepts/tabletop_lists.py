"""What the three worlds that are staged on the tabletop share: their parameters, truth, pictures and `do`."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from diorama.core.bounds import Within
from diorama.core.capabilities import Listed
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.worlds.concepts.layers import Studio, compose
from diorama.worlds.tabletop.tabletop import Tabletop


@dataclass(frozen=True, kw_only=True)
class OnTabletop(Listed):
    """A list of scenes on the tabletop.

    size      side of the images in pixels; the paper has 256
    samples   light paths per pixel
    meshes    folder of OBJ, PLY or GLB files; None for Diorama's own solids
    textures  folder of images; None for Diorama's own patterns
    up        the axis that points up in the files of `meshes`
    seed      seed of the scenes
    """

    size: Annotated[int, Within(8, 4096)] = 64
    samples: Annotated[int, Within(1, 65536)] = 16
    meshes: str | None = None
    textures: str | None = None
    up: Literal["y", "z"] = "y"
    seed: int = 0

    cite = ("gupta2022",)
    located = ("meshes", "textures")
    staged = True
    factors: ClassVar[dict[str, str]] = Tabletop.factors
    truth: ClassVar[tuple[str, ...]] = ("mask", "parts", "reflectance", "shading", "specular", "lights", "factors")

    def tabletop(self, objects: int, surface: str = "rgb", **further: Any) -> Tabletop:
        """The tabletop world that stages scenes with this number of objects."""
        files = {"meshes": self.meshes, "textures": self.textures, "up": self.up}
        return Tabletop(size=self.size, samples=self.samples, objects=objects, surface=surface, **files, **further)  # type: ignore[arg-type]

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The scene with some factors changed; see `diorama show tabletop`."""
        return Tabletop().do(scene, **changes)

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The frames of some scenes without inter-reflection."""
        studio = Studio(self.size, self.samples, self.meshes, self.textures, self.up, self._content)
        return [compose(studio, scene) for scene in scenes]

    def fingerprint(self) -> str:
        """The digest of the mesh and texture files."""
        return Tabletop(meshes=self.meshes, textures=self.textures).fingerprint()

    @cached_property
    def _content(self) -> str:
        return self.fingerprint()
