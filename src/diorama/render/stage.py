"""The input of the renderer as plain data: meshes placed on a stage, camera, lights. Only the environment has z as up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diorama.render.mesh import Mesh, cross

Vector = tuple[float, float, float]
Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Camera:
    """A pinhole at `eye` looking at `at`; `fov_degrees` is the full vertical angle."""

    eye: Vector
    at: Vector = (0.0, 0.0, 0.0)
    up: Vector = (0.0, 0.0, 1.0)
    fov_degrees: float = 40.0

    def basis(self) -> NDArray[np.float64]:
        """Rows: right, up, forward; orthonormal."""
        forward = np.subtract(self.at, self.eye, dtype=float)
        right = cross(forward, np.asarray(self.up, float))
        if not np.isfinite([self.eye, self.at, self.up]).all() or not 0 < self.fov_degrees < 180:
            raise ValueError("camera: eye, at and up must be finite and 0 < fov_degrees < 180")
        if np.linalg.norm(right) <= 1e-9 * np.linalg.norm(forward) * np.linalg.norm(self.up):
            raise ValueError("camera: eye and at coincide, or up is along the view; move one of them")
        right = right / np.linalg.norm(right)
        forward = forward / np.linalg.norm(forward)
        return np.stack([right, cross(right, forward), forward])


@dataclass(frozen=True, slots=True)
class PointLight:
    """Radiant intensity at a point: irradiance I·cos θ/d² (toon shading has another fall-off)."""

    position: Vector
    intensity: Colour = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class RectLight:
    """A parallelogram that emits `radiance` on the side of edge_u × edge_v; seen in reflections, not by the camera."""

    corner: Vector
    edge_u: Vector
    edge_v: Vector
    radiance: Colour = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """Light from far away, lat-long (h, w, 3) linear: row 0 is +z, columns go from azimuth −π to π (atan2(y, x))."""

    image: NDArray[np.float32]
    seen: bool = True  # by the camera where it hits nothing


@dataclass(frozen=True, slots=True)
class Instance:
    """One mesh of the library on the stage. Ids are ≥ 0; instances with one `layer` are removed together in composites."""

    mesh: str
    transform: ArrayLike = field(default_factory=lambda: np.eye(4))
    colour: Colour = (0.8, 0.8, 0.8)  # linear reflectance, multiplies the texture
    texture: str | None = None
    specular: tuple[float, float] | None = None  # GGX (F0, alpha)
    object: int = 0
    part: int = 0
    layer: str = ""
    seen: bool = True  # by the camera of `render`; an unseen instance still casts shadows and reflects light


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything an image depends on, besides its size and the number of samples."""

    library: Mapping[str, Mesh]
    instances: Sequence[Instance]
    camera: Camera
    lights: Sequence[PointLight | RectLight] = ()
    textures: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # linear (h, w, 3)
    environment: Environment | None = None
