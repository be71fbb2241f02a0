"""Reconstruction: how far reflectance times shading is from the image; a sanity check that needs no truth.

asks            {Do} {methods} multiply back to the image?
reconstruction  ↓ distance of reflectance times shading from the image at the best scale, as a share of the image: 0
                explains it, with right or wrong layers
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.bounds import Positive
from diorama.core.cases import Case, Score
from diorama.core.contracts import World
from diorama.core.errors import Undefined
from diorama.core.frame import Frame, residual
from diorama.core.scene import Scene
from diorama.protocols.layers.judging import OnLayers, mask_of, usual
from diorama.protocols.layers.lmse import explained


@dataclass(frozen=True, slots=True)
class Reconstruction(OnLayers):
    """min over k of ‖I − C − k·R·S‖/‖I‖ on the mask in linear light.

    saturated  pixels with a channel at or above this are left out; the sensor's maximum is 1

    Zero says that the layers explain the image, not that they are right: an image split at random scores 0.
    """

    cite = ("luo2024",)
    metrics: ClassVar[tuple[str, ...]] = ("reconstruction",)
    dose_name = "power of the true shading that reflectance gains and shading keeps"

    saturated: Positive = 0.99

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        mask = f"{mask_of(world)}, without pixels from {self.saturated:g} on"
        return usual(world) | {"scale": "one for the product", "mask": mask}

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The residual of one image."""
        scene = case.scene
        frame = bench.frame(scene)
        mask = frame.mask & (frame.image.max(axis=2) < self.saturated)
        if not mask.any():
            raise Undefined("every pixel is saturated")
        unsaturated = Frame(scene, frame.image, frame.encoding, {"mask": mask})
        yield Score("reconstruction", residual(explained(unsaturated, bench.layers(scene))))

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Layers:
        """Reflectance with a leak that shading keeps."""
        true = self.oracle(bench, scene, target)
        return Layers(true.reflectance * true.shading.clip(1e-6) ** dose, true.shading, true.specular)
