"""Masked Poisson reconstruction: the image whose forward differences are nearest, in least squares, to given ones.

Minimise Σ_edges (x_j − x_i − g_ij)² over pairs of 4-neighbours that are both in the mask. The normal equations are the
graph Laplacian of the mask, L x = Gᵀ g, singular with one constant per connected component. One pixel per component is
held at zero, which leaves a symmetric positive definite system; its factorisation depends on the mask alone, so it is
computed once and used for every right-hand side. Afterwards each component is shifted to mean zero.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load at first use


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The pairs of 4-neighbours inside a mask, as pixel numbers; vertical pairs first, then horizontal ones."""

    mask: np.ndarray
    first: np.ndarray
    second: np.ndarray
    vertical: int

    @classmethod
    def of(cls, mask: np.ndarray) -> "Edges":
        """The edges of an (h, w) bool mask; pixels are numbered along the rows of the mask."""
        number = np.full(mask.shape, -1, np.int32)
        number[mask] = np.arange(mask.sum(), dtype=np.int32)
        down, right = mask[:-1] & mask[1:], mask[:, :-1] & mask[:, 1:]
        first = np.concatenate([number[:-1][down], number[:, :-1][right]])
        second = np.concatenate([number[1:][down], number[:, 1:][right]])
        return cls(mask, first, second, int(down.sum()))

    def differences(self, image: np.ndarray) -> np.ndarray:
        """Forward differences x_j − x_i of an (h, w, …) image on every edge, as (edges, …)."""
        return self.pixel_differences(image[self.mask])

    def pixel_differences(self, pixels: np.ndarray) -> np.ndarray:
        """G x: the differences of values given per pixel, (pixels, …) to (edges, …)."""
        return pixels[self.second] - pixels[self.first]

    def net_inflow(self, gradient: np.ndarray) -> np.ndarray:
        """Gᵀ g: what arrives at each pixel less what leaves it, (edges,) to (pixels,)."""
        count = int(self.mask.sum())
        arriving, leaving = (np.bincount(pixel, gradient, count) for pixel in (self.second, self.first))
        return (arriving - leaving).astype(np.float64, copy=False)  # counting nothing gives integers


def components(mask: np.ndarray) -> tuple[np.ndarray, int]:
    """The 4-connected component of every pixel inside the mask, and how many there are."""
    labels, count = scipy.ndimage.label(mask)
    return labels[mask] - 1, count


class Poisson:
    """The factorised system of one mask."""

    def __init__(self, mask: np.ndarray) -> None:
        if not mask.any():
            raise ValueError("the mask is empty: there is nothing to reconstruct")
        self.edges = Edges.of(mask)
        self._component, self.components = components(mask)
        first = np.zeros(self.components, np.int64)
        first[self._component[::-1]] = np.arange(len(self._component))[::-1]
        self._free = np.ones(len(self._component), bool)
        self._free[first] = False
        self._difference = _difference_matrix(self.edges, len(self._component))[:, self._free]
        self._factor = factorise((self._difference.T @ self._difference).tocsc())

    def solve(self, gradients: np.ndarray) -> np.ndarray:
        """The reconstructions (pixels, n) of n gradient fields (edges, n), each component with mean zero.

        Equal consecutive fields, as two thresholds above every gradient give, are solved once.
        """
        new = np.append(True, (gradients[:, 1:] != gradients[:, :-1]).any(axis=0))[: gradients.shape[1]]
        x = np.zeros((len(self._free), int(new.sum())))
        if self._factor is not None:
            x[self._free] = self._factor.solve(self._difference.T @ gradients[:, new])
        return centred(x, self._component, self.components)[:, np.cumsum(new) - 1]

    def solve_weighted(self, gradient: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The reconstruction (pixels,) of one field (edges,) with weighted edges, which needs another factorisation."""
        x = np.zeros((len(self._free), 1))
        weighted = self._difference.T * weights
        factor = factorise((weighted @ self._difference).tocsc())
        if factor is not None:
            x[self._free, 0] = factor.solve(weighted @ gradient)
        return centred(x, self._component, self.components)[:, 0]


def centred(x: np.ndarray, component: np.ndarray, components: int) -> np.ndarray:
    """The columns of x (pixels, n), changed in place so that each component has mean zero."""
    size = np.bincount(component, minlength=components)
    for c in range(components):
        inside = slice(None) if components == 1 else component == c
        x[inside] -= x[inside].sum(axis=0) / size[c]
    return x


def _difference_matrix(edges: Edges, pixels: int) -> Any:
    n = len(edges.first)
    row = np.concatenate([np.arange(n), np.arange(n)])
    column = np.concatenate([edges.first, edges.second])
    sign = np.concatenate([-np.ones(n), np.ones(n)])
    return scipy.sparse.csc_array((sign, (row, column)), shape=(n, pixels))


def factorise(laplacian: Any) -> Any:
    """A factorisation of the Laplacian of a mask."""
    if laplacian.shape[0] == 0:  # every component is a single pixel
        return None
    from scipy.sparse.linalg import splu

    options = {"SymmetricMode": True, "DiagPivotThresh": 0.0}
    return splu(laplacian, permc_spec="MMD_AT_PLUS_A", options=options)


_recent: OrderedDict[bytes, Poisson] = OrderedDict()


def poisson(mask: np.ndarray, keep: int = 2) -> Poisson:
    """The factorised system of a mask; those of the last masks are kept, so that methods in turn share them."""
    key = hashlib.blake2b(np.packbits(mask).tobytes() + str(mask.shape).encode(), digest_size=16).digest()
    if key not in _recent:
        _recent[key] = Poisson(mask)
        while len(_recent) > keep:
            _recent.popitem(last=False)
    _recent.move_to_end(key)
    return _recent[key]
