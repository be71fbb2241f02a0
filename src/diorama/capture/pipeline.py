"""From photographs to layers: polarisation, R, S and C, and the mask (Grosse et al. 2009, section 3).

With polarised light, half of the diffuse light passes a filter on the camera whichever way it is turned; the mirror-like
part passes whole when the filter is parallel and not at all when it is crossed. In exposures that show diffuse light at
full strength the two photographs are D + 2·C and D. The published `original.png` is their mean, D + C.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from diorama.core.errors import InputError


class Separated(NamedTuple):
    """One view without filters, its diffuse part and its specular part; original = diffuse + specular."""

    original: np.ndarray
    diffuse: np.ndarray
    specular: np.ndarray


def polarised(diffuse: np.ndarray, specular: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The parallel and the crossed photograph of a scene: D + 2·C and D; the inverse of `separate`."""
    return diffuse + 2 * specular, diffuse


def separate(parallel: np.ndarray, crossed: np.ndarray) -> Separated:
    """Diffuse/specular separation: I_lamb = crossed, C = (I_orig − I_lamb)/2 with I_orig the parallel photograph.

    >>> [float(layer) for layer in separate(np.array(0.9), np.array(0.5))]
    [0.7, 0.5, 0.2]
    """
    _one_size([parallel, crossed])
    specular = (parallel - crossed) / 2
    return Separated(crossed + specular, crossed, specular)


def reflectance(
    diffuse: Sequence[np.ndarray], uniform: Sequence[np.ndarray], floor: float = 1e-6, ceiling: float = 2.0
) -> np.ndarray:
    """R = Σ I_lamb / Σ I_uni over the lights: from one light, or from two, so that one lights the pixels that the
    other leaves in shadow.

    R is relative to the twin's paint, as S = I_uni is: R·S is the diffuse image whatever the paint. It is 0 where the
    twin is not brighter than `floor`, where nothing can be known, and stays within 0 and `ceiling`: nothing is much whiter
    than white paint, so a larger ratio is noise in a shadow.

    >>> reflectance([np.array([0.2, 0.0]), np.array([0.2, 0.3])], [np.array([0.4, 0.0]), np.array([0.4, 0.6])]).tolist()
    [0.5, 0.5]
    """
    if not diffuse or len(diffuse) != len(uniform):
        count = f"{len(diffuse)} photographs and {len(uniform)} of the twin"
        raise InputError(f"reflectance: {count}; give one of each for every light")
    _one_size([*diffuse, *uniform])
    top, bottom = sum(diffuse), sum(uniform)
    known = np.asarray(bottom > floor)
    return np.clip(np.where(known, top / np.where(known, bottom, 1), 0), 0, ceiling)


def masked(image: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The image with 0 outside the mask."""
    return np.where(mask.reshape(*mask.shape, *(1,) * (image.ndim - 2)), image, 0).astype(image.dtype)


def inner(mask: np.ndarray, pixels: int) -> np.ndarray:
    """The mask without its outermost pixels, which show a little of what is behind the object.

    >>> int(inner(np.ones((5, 7), bool), 1).sum())
    15
    """
    from scipy.ndimage import binary_erosion

    return binary_erosion(mask, np.ones((3, 3), bool), iterations=pixels) if pixels else mask


def _one_size(images: Sequence[np.ndarray]) -> None:
    shapes = {np.shape(image) for image in images}
    if len(shapes) > 1:
        raise InputError(f"capture: photographs of {sorted(shapes)} pixels do not belong together; crop them alike")
