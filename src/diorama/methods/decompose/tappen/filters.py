"""The features of the learned algorithms: derivatives of Gaussians of the log gray image, at every edge of the mask.

Off the mask the log image is continued by its nearest pixel inside, so that the silhouette is no gradient. Features of
vertical edges are those of the transposed image: the first axis of a filter always lies along the difference of the edge.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import scipy  # its parts load at first use

from diorama.core.frame import Frame, channel_mean
from diorama.core.scene import rng
from diorama.methods.decompose.gradients import FLOOR, clipped_gray
from diorama.solvers.poisson import Edges

#: Standard deviations of the Gaussians, in pixels.
SCALES = (1.0, 2.0, 4.0, 8.0)
#: Directions of the derivatives, in degrees from that of the edge's own difference.
ANGLES = (0, 45, 90, 135)


def log_gray(frame: Frame) -> np.ndarray:
    """The log of the clipped gray image (h, w), continued off the mask by the nearest pixel."""
    log = np.log(clipped_gray(frame))
    nearest = scipy.ndimage.distance_transform_edt(~frame.mask, return_distances=False, return_indices=True)
    return log[tuple(nearest)]


def responses(frame: Frame) -> np.ndarray:
    """Signed responses (edges, COUNT), float32: the difference itself, then per scale first and second derivatives.

    Derivatives are central differences of the smoothed image, times σ and σ²; at an edge the mean of its two pixels.
    """
    log, edges = log_gray(frame), Edges.of(frame.mask)
    down = _at_edges(bank(log), frame.mask, edges, slice(0, edges.vertical))
    right = _at_edges(bank(log.T).transpose(0, 2, 1), frame.mask, edges, slice(edges.vertical, None))
    filtered = np.concatenate([down, right], axis=1).T
    return np.concatenate([edges.differences(log)[:, None].astype(np.float32), filtered], axis=1)


def truth_gradients(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of the true log reflectance and log shading (edges,), both layers gray and clipped like the image."""
    edges = Edges.of(frame.mask)
    r, s = (
        edges.differences(np.log(np.maximum(channel_mean(frame.truth[name]), FLOOR)))
        for name in ("reflectance", "shading")
    )
    return r, s


def training(
    examples: Iterable[Sequence[Frame]], samples: int, directions: tuple[bool, ...] = (True, False)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Responses, true ∇ log R and true ∇ log S of about `samples` gradients, drawn with a fixed seed.

    Every example gives the same number. `directions` are those of the edges: vertical (True), horizontal (False).
    """
    frames = [example[0] for example in examples]
    parts = [_drawn(frame, number, max(1, samples // len(frames)), directions) for number, frame in enumerate(frames)]
    x, r, s = (np.concatenate(column) for column in zip(*parts, strict=True))
    return x, r, s


def _drawn(frame: Frame, number: int, count: int, directions: tuple[bool, ...]) -> tuple[np.ndarray, ...]:
    edges = Edges.of(frame.mask)
    vertical = np.arange(len(edges.first)) < edges.vertical
    eligible = np.flatnonzero(np.isin(vertical, directions))
    chosen = np.sort(rng(0, "tappen", number, directions).permutation(eligible)[:count])
    r, s = truth_gradients(frame)
    return responses(frame)[chosen], r[chosen], s[chosen]


def bank(log: np.ndarray) -> np.ndarray:
    """All responses (COUNT − 1, h, w) at the pixels, steered from the derivatives along the axes."""
    filtered = []
    for sigma in SCALES:
        smooth = scipy.ndimage.gaussian_filter(log, sigma, mode="nearest", truncate=3)
        y, x = (sigma * d for d in np.gradient(smooth))  # not by filters: a truncated G″ does not sum to zero
        (yy, xy), xx = ((sigma * d for d in np.gradient(y)), sigma * np.gradient(x, axis=1))
        for c, s in _directions():
            filtered += [c * y + s * x, c * c * yy + 2 * c * s * xy + s * s * xx]
    return np.array(filtered, np.float32)


@lru_cache(maxsize=1)
def _directions() -> list[tuple[float, float]]:
    return [(float(np.cos(a)), float(np.sin(a))) for a in np.deg2rad(ANGLES)]


def _at_edges(bank: np.ndarray, mask: np.ndarray, edges: Edges, part: slice) -> np.ndarray:
    pixels = bank[:, mask]
    return (pixels[:, edges.first[part]] + pixels[:, edges.second[part]]) / 2
