"""Mondrian: a blob of flat coloured patches under smooth random shading, with exact truth, in numpy alone (staged)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diorama.core.bounds import Count
from diorama.core.contracts import World
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene

#: Lights of a scene: number 0 lights the frame itself, 1 to 10 are the further ones, as in MIT Intrinsic Images.
LIGHTS = 11
_WAVES = 6


@dataclass(frozen=True, slots=True)
class Mondrian(World):
    """Patches are the Voronoi cells of random sites; shading is the exponential of a few long random waves.

    size      side of the square images in pixels
    patches   number of patches of flat paint
    contrast  strength of the shading: about √2 times the standard deviation of its logarithm; 0 for flat light

    `do(scene, light=i)` chooses one of eleven lights, `do(scene, colours=[[r, g, b], …])` repaints, `do(scene,
    sites=[[x, y], …])` moves the patches. Reflectance and shading are exact: image = reflectance · shading.
    """

    factors: ClassVar[dict[str, str]] = {
        "light": "0 for the frame itself, 1 to 10 for the further lights",
        "colours": "one linear RGB reflectance per patch",
        "sites": "one (x, y) in [0, 1]² per patch",
    }
    truth: ClassVar[tuple[str, ...]] = ("mask", "reflectance", "shading")

    size: int = 128
    patches: Count = 24
    contrast: float = 1.2

    def __post_init__(self) -> None:
        if self.size < 20:
            raise InputError(f"mondrian: size={self.size} is too small; one window of the LMSE needs 20 pixels")

    def sample(self, rng: np.random.Generator) -> Scene:
        """A new painting under new lights."""
        waves = np.concatenate(
            [
                rng.normal(0, self.contrast / np.sqrt(_WAVES), (LIGHTS, _WAVES, 1)),  # amplitude in log shading
                rng.uniform(-14, 14, (LIGHTS, _WAVES, 2)),  # wave vector, radians across the image
                rng.uniform(0, 2 * np.pi, (LIGHTS, _WAVES, 1)),  # phase
            ],
            axis=2,
        )
        params = {
            "size": self.size,
            "sites": _plain(rng.random((self.patches, 2))),
            "colours": _plain(rng.uniform(0.15, 0.75, (self.patches, 3))),
            "outline": _plain(np.append(rng.uniform(0.38, 0.44), rng.normal(0, [0.03, 0.03, 0.02, 0.02]))),
            "waves": _plain(waves),
            "light": 0,
        }
        return Scene("mondrian", params)

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The same painting with another light, other colours or other sites."""
        for name, value in changes.items():
            if name not in self.factors:
                raise InputError(f"mondrian cannot change {name!r}; {did_you_mean(name, list(self.factors))}")
            if name == "light" and value not in range(LIGHTS):
                raise InputError(f"mondrian: light={value!r} does not exist; there are 0 to {LIGHTS - 1}")
            if name != "light" and np.shape(value) != np.shape(scene.params[name]):
                raise InputError(
                    f"mondrian: {name} has shape {np.shape(value)}, expected {np.shape(scene.params[name])}"
                )
        return scene.changed(
            {name: value if name == "light" else _plain(np.asarray(value)) for name, value in changes.items()}
        )

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """Paint and light."""
        return [_render(scene) for scene in scenes]


def _plain(array: np.ndarray) -> list[Any]:
    return np.round(array, 6).tolist()


def _render(scene: Scene) -> Frame:
    p = scene.params
    centres = (np.arange(p["size"]) + 0.5) / p["size"]
    x, y = np.meshgrid(centres, centres)
    reflectance = _patches(x, y, np.array(p["sites"]), np.array(p["colours"], np.float32))
    shading = _shading(x, y, np.array(p["waves"][p["light"]]))[:, :, None].astype(np.float32)
    mask = _blob(x, y, p["outline"])
    image = reflectance * shading * mask[:, :, None]
    return Frame(scene, image, "linear", {"mask": mask, "reflectance": reflectance, "shading": shading})


def _patches(x: np.ndarray, y: np.ndarray, sites: np.ndarray, colours: np.ndarray) -> np.ndarray:
    distance = (x[..., None] - sites[:, 0]) ** 2 + (y[..., None] - sites[:, 1]) ** 2
    return colours[distance.argmin(axis=2)]


def _shading(x: np.ndarray, y: np.ndarray, waves: np.ndarray) -> np.ndarray:
    """exp of a sum of long waves, scaled so that its maximum is 1."""
    amplitude, kx, ky, phase = waves.T
    log_shading = (amplitude * np.cos(x[..., None] * kx + y[..., None] * ky + phase)).sum(axis=2)
    return np.exp(log_shading - log_shading.max())


def _blob(x: np.ndarray, y: np.ndarray, outline: list[float]) -> np.ndarray:
    """A wavy disc: one connected region without holes."""
    radius, a2, b2, a3, b3 = outline
    angle = np.arctan2(y - 0.5, x - 0.5)
    edge = radius + a2 * np.cos(2 * angle) + b2 * np.sin(2 * angle) + a3 * np.cos(3 * angle) + b3 * np.sin(3 * angle)
    return np.hypot(x - 0.5, y - 0.5) < np.clip(edge, 0.2, 0.49)
