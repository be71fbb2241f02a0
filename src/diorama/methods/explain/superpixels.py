"""Superpixels by quickshift (Vedaldi & Soatto 2008): every pixel joins the nearest pixel of higher density.

The segments are those of scikit-image, which searches a window of 3σ around every pixel, but found in less time: the kernel
is symmetric, so every pair is computed once, and neighbours are visited from near to far, so that a pixel is done once no
remaining neighbour can be nearer.
"""

from collections.abc import Iterator
from itertools import groupby

import numpy as np

#: Noise on the density, so that flat areas have a maximum.
NOISE = 1e-5
#: A neighbour of a pixel: steps down and right, the squared distance, and its rank in reading order.
Offset = tuple[int, int, int, int]


def quickshift(image: np.ndarray, ratio: float, kernel_size: float, max_dist: float, seed: int) -> np.ndarray:
    """The segment (h, w) of every pixel of an RGB image (h, w, 3) float64, numbered from 0.

    `ratio` weighs colour (CIE Lab) against place; σ is `kernel_size` pixels; links longer than `max_dist` are cut.
    """
    from skimage.color import rgb2lab

    planes = np.ascontiguousarray(np.moveaxis(rgb2lab(image) * ratio, 2, 0))
    reach = int(np.ceil(3 * kernel_size))
    density = _density(planes, reach, kernel_size)
    density += np.random.default_rng(seed).normal(scale=NOISE, size=density.shape)
    parent, distance = _parents(planes, density, reach)
    own = np.arange(parent.size)
    return _roots(np.where(np.sqrt(distance) > max_dist, own, parent)).reshape(density.shape)


def _density(planes: np.ndarray, reach: int, sigma: float) -> np.ndarray:
    """Σ exp(−d²/2σ²) over the window of every pixel, itself included."""
    _, height, width = planes.shape
    density = np.ones((height, width))
    for down, right, square, rank in _offsets(reach):
        if rank > 0 and down < height and abs(right) < width:  # the other half are the same pairs
            pixel = slice(0, height - down), slice(max(-right, 0), width - max(right, 0))
            neighbour = slice(down, height), slice(max(right, 0), width + min(right, 0))
            weight = _squares(planes[:, *pixel], planes[:, *neighbour]) + square
            weight *= -0.5 / sigma**2
            np.exp(weight, out=weight)
            density[pixel] += weight
            density[neighbour] += weight
    return density


def _parents(planes: np.ndarray, density: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """The index of the nearest denser pixel in every window and its squared distance; if there is none, the pixel's own
    index and infinity. Of several equally near ones the first in reading order is taken.
    """
    height, width = density.shape
    wide = width + 2 * reach
    dense = np.pad(density, reach, constant_values=-np.inf).ravel()  # nothing outside is denser
    colours = np.pad(planes, ((0, 0), (reach, reach), (reach, reach))).reshape(len(planes), -1)
    places = (np.arange(height)[:, None] + reach) * wide + np.arange(width) + reach
    nearest, rank = np.full(len(dense), np.inf), np.zeros(len(dense), int)
    going = places.ravel()
    for square, some in groupby(_offsets(reach), key=lambda offset: offset[2]):
        going = going[nearest[going] >= square]
        for down, right, _, at in some:
            step = down * wide + right
            below = going[dense[going + step] > dense[going]]
            distance = _squares(colours[:, below], colours[:, below + step]) + square
            best = nearest[below]
            nearer = (distance < best) | ((distance == best) & (at < rank[below]))
            nearest[below[nearer]], rank[below[nearer]] = distance[nearer], at
    own, row = np.arange(height * width), 2 * reach + 1
    place = rank[places].ravel() + row * row // 2  # back from the rank in reading order to the offset
    down, right = place // row - reach, place % row - reach
    return own + down * width + right, nearest[places].ravel()


def _offsets(reach: int) -> Iterator[Offset]:
    """Every neighbour in the window, from near to far."""
    row = 2 * reach + 1
    ways = [(down, right) for down in range(-reach, reach + 1) for right in range(-reach, reach + 1)]
    every = [(down, right, down * down + right * right, down * row + right) for down, right in ways]
    yield from sorted((offset for offset in every if offset[2]), key=lambda offset: offset[2])


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ (a − b)² over the first axis."""
    squares = a - b
    squares *= squares
    return squares.sum(axis=0)


def _roots(parent: np.ndarray) -> np.ndarray:
    """The pixel that following parents ends at, numbered from 0 in order."""
    while not np.array_equal(above := parent[parent], parent):
        parent = above
    return np.unique(parent, return_inverse=True)[1]
