"""Your own world, with a capability of its own: a checkerboard under a light that falls off along one direction.
==============================================================================================================

diorama check examples/own_world.py:Ramps
diorama run -w examples/own_world.py:Ramps -m retinex_gray -m weiss_retinex -p lmse --controls
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from diorama import Frame, Scene, World
from diorama.core.errors import InputError


class Tilted(World):
    """A world whose light falls off along a known direction: `tilts` are the possible directions, in degrees."""

    in_words = "a world with a tilted light"
    tilts: tuple[int, ...]


class Ramps(Tilted):
    """Squares of random gray, lit from the side. `do(scene, tilt=90)` turns the light; image = R · S exactly."""

    factors: ClassVar[dict[str, str]] = {"tilt": "degrees", "light": "number of a tilt"}
    truth: ClassVar[tuple[str, ...]] = ("reflectance", "shading", "mask")
    tilts = (0, 45, 90, 135, 180, 225, 270, 315)

    def __init__(self, side: int = 48):
        self.side = side

    def sample(self, rng: np.random.Generator) -> Scene:
        """Six by six squares, and one of the tilts."""
        return Scene(
            "ramps", {"grays": rng.uniform(0.2, 0.9, 36).round(3).tolist(), "tilt": int(rng.choice(self.tilts))}
        )

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The scene with another tilt."""
        unknown = sorted(set(changes) - {"tilt", "light"})
        if unknown:
            raise InputError(f"Ramps cannot change {unknown[0]!r}: it is tilt or light")
        return scene.changed({"tilt": int(changes.get("tilt", self.tilts[changes.get("light", 0) % len(self.tilts)]))})

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """Reflectance times shading."""
        return [self._frame(scene) for scene in scenes]

    def _frame(self, scene: Scene) -> Frame:
        y, x = np.indices((self.side, self.side), np.float32) / (self.side - 1) - 0.5
        squares = np.array(scene.params["grays"], np.float32).reshape(6, 6)
        reflectance = squares[np.minimum((y + 0.5) * 6, 5).astype(int), np.minimum((x + 0.5) * 6, 5).astype(int)]
        angle = np.deg2rad(np.float32(scene.params["tilt"]))
        shading = 0.6 + 0.5 * (x * np.cos(angle) + y * np.sin(angle))
        layers = [layer[:, :, None].astype(np.float32) for layer in (reflectance, shading)]
        image = np.repeat(layers[0] * layers[1], 3, axis=2)
        truth = {"reflectance": layers[0], "shading": layers[1], "mask": image[:, :, 0] > 0}
        return Frame(scene, image, "linear", truth)
