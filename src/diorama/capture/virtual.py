"""The capture on staged scenes: photograph a tabletop scene and its uniformly painted twin, then develop R, S and C."""

from dataclasses import dataclass, replace

import numpy as np

from diorama.capture.align import Shift, estimate_shift, shift
from diorama.capture.pipeline import inner, masked, polarised, reflectance, separate
from diorama.core.frame import Frame, channel_mean
from diorama.core.scene import Scene, rng
from diorama.worlds.tabletop.tabletop import KEY, SECOND, Tabletop


@dataclass(frozen=True, slots=True, eq=False)
class Photographs:
    """One entry for each light: the object through a parallel and a crossed filter, its twin through a crossed one.

    `frame` is the object under the first light with its exact truth; `lit` marks the pixels that any of the lights
    reaches, where the light of all together is over a tenth of its median on the objects; `parts` is the object that
    fills each pixel, or 0.
    """

    parallel: tuple[np.ndarray, ...]
    crossed: tuple[np.ndarray, ...]
    uniform: tuple[np.ndarray, ...]
    frame: Frame
    lit: np.ndarray
    parts: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """The layers that the pipeline gives, 0 outside `mask`: diffuse = R·S and original = R·S + C up to noise.

    R and S are known up to one factor, the reflectance of the twin's paint. `shift` is how far the twin was moved back.
    """

    original: np.ndarray
    diffuse: np.ndarray
    shading: np.ndarray
    reflectance: np.ndarray
    specular: np.ndarray
    mask: np.ndarray
    shift: Shift


def photograph(
    world: Tabletop, scene: Scene, lights: tuple[int, ...] = (KEY, SECOND), moved: Shift = (0.0, 0.0)
) -> Photographs:
    """Render what the cameras would see; `moved` is how many pixels the camera had moved when the twin was taken."""
    objects = world.render([world.do(scene, light=i) for i in lights])
    pairs = [polarised(_diffuse(frame), frame.truth["specular"].astype(float)) for frame in objects]
    parallel, crossed = zip(*pairs, strict=True)
    light = channel_mean(sum(frame.truth["shading"] for frame in objects))
    lit = light > 0.1 * np.median(light[objects[0].mask])
    uniform = twins(world, scene, lights, moved)
    return Photographs(parallel, crossed, uniform, objects[0], lit, whole_parts(world, scene))


def twins(
    world: Tabletop, scene: Scene, lights: tuple[int, ...] = (KEY, SECOND), moved: Shift = (0.0, 0.0)
) -> tuple[np.ndarray, ...]:
    """The uniformly painted twin under each light, the camera off by `moved` pixels."""
    pan = [moved[0] / world.size, moved[1] / world.size]
    return tuple(map(_diffuse, world.render([world.do(scene, light=i, uniform=True, pan=pan) for i in lights])))


def whole_parts(world: Tabletop, scene: Scene, fine: int = 4) -> np.ndarray:
    """The object that fills each pixel, 0 where a pixel shows several, found in a part map of `fine` times the size.

    A slit thinner than a pixel is in no part map of the picture's own size, and mixes two surfaces.
    """
    side = world.size
    ids = replace(world, size=fine * side, samples=1, bounces=0).render([scene])[0].truth["parts"]
    cells = ids.reshape(side, fine, side, fine)
    return np.where((cells == cells[:, :1, :, :1]).all((1, 3)), cells[:, 0, :, 0], 0)


def _diffuse(frame: Frame) -> np.ndarray:
    return frame.truth["reflectance"].astype(float) * frame.truth["shading"]


def noisy(photographs: Photographs, sigma: float, seed: int = 0) -> Photographs:
    """The photographs with independent Gaussian noise of standard deviation `sigma` (1 is white)."""

    def add(name: str) -> tuple[np.ndarray, ...]:
        images = getattr(photographs, name)
        return tuple(x + rng(seed, "noise", name, i).normal(0, sigma, x.shape) for i, x in enumerate(images))

    return replace(photographs, parallel=add("parallel"), crossed=add("crossed"), uniform=add("uniform"))


def develop(photographs: Photographs, aligned: bool = True, lights: int = 2, margin: int = 1) -> Capture:
    """S = I_uni, R = Σ I_lamb/Σ I_uni over the first one or two lights, C = (I_orig − I_lamb)/2, under the first light.

    The mask is that of every object without its `margin` outermost pixels.
    """
    moved = (0.0, 0.0)
    uniform = photographs.uniform[:lights]
    if aligned:
        moved = estimate_shift(photographs.crossed[0], uniform[0])
        uniform = tuple(shift(image, (-moved[0], -moved[1])) for image in uniform)
    parts = separate(photographs.parallel[0], photographs.crossed[0])
    ids = photographs.parts
    mask = np.any([inner(ids == i, margin) for i in range(1, int(ids.max()) + 1)], axis=0)
    layers = (*parts, uniform[0], reflectance(photographs.crossed[:lights], uniform))
    original, diffuse, specular, shading, albedo = (masked(layer, mask) for layer in layers)
    return Capture(original, diffuse, shading, albedo, specular, mask, moved)


def errors(capture: Capture, taken: Photographs) -> dict[str, float]:
    """Errors against the exact truth on the capture's mask where any light falls, as shares.

    R and S: min over k of ‖truth − k·estimate‖/‖truth‖, since both are known up to a factor. C: ‖truth − estimate‖
    over ‖original image‖, since an object without highlights has no C to compare with.
    """
    inside, frame = capture.mask & taken.lit, taken.frame
    c = capture.specular[inside] - frame.truth["specular"][inside]
    return {
        "R": scaled_error(frame.truth["reflectance"][inside], capture.reflectance[inside]),
        "S": scaled_error(frame.truth["shading"][inside], capture.shading[inside]),
        "C": float(np.linalg.norm(c) / np.linalg.norm(frame.image[inside].astype(float))),
    }


def scaled_error(truth: np.ndarray, estimate: np.ndarray) -> float:
    """min over k of ‖truth − k·estimate‖/‖truth‖.

    >>> scaled_error(np.array([1.0, 2.0]), np.array([2.0, 4.0]))
    0.0
    """
    t, e = truth.astype(float).ravel(), estimate.astype(float).ravel()
    k = float(t @ e) / max(float(e @ e), 1e-300)
    return float(np.linalg.norm(t - k * e) / max(float(np.linalg.norm(t)), 1e-300))
