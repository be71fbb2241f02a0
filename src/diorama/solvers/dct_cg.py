"""Masked Poisson reconstruction without a factorisation: conjugate gradients, preconditioned by a cosine transform.

The same least squares as `poisson`, L x = Gᵀ g. The preconditioner is the pseudo-inverse of the Neumann Laplacian on the
mask's bounding rectangle, restricted to the mask: DCT-II, division by λ_uv = 4 − 2 cos(πu/h) − 2 cos(πv/w), inverse DCT.
On a full rectangle it is the exact inverse (one step); on irregular masks about a dozen steps suffice at any size, and
memory stays proportional to the image, where that of a factorisation grows as n log n.
"""

import numpy as np
import scipy  # its parts load at first use

from diorama.solvers.poisson import Edges, centred, components, poisson

#: Iterating is preferred to factorising for at most so many fields …
FEW = 4
#: … on more unknowns than this …
SMALL = 20_000
#: … and for any number of fields above this one, because of the memory of the factors.
LARGE = 2_000_000


def better_iterated(unknowns: int, fields: int) -> bool:
    """Whether a solve is one-off or large. A function of the sizes only, so that results repeat.

    One field takes about a sixth of the time of a factorisation; a sweep over thresholds pays for the factorisation.

    >>> better_iterated(10_000, 1), better_iterated(60_000, 1), better_iterated(60_000, 15)
    (False, True, False)
    """
    return unknowns > (SMALL if fields <= FEW else LARGE)


def reconstruction(mask: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """The L2 reconstructions (pixels, n) of (edges, n), iterated or factorised as suits; each component has mean zero."""
    if better_iterated(int(mask.sum()), gradients.shape[1]):
        try:
            return DctCg(mask).solve(gradients)
        except RuntimeError:  # masks like dust, with hundreds of components, may converge too slowly
            pass
    return poisson(mask).solve(gradients)


class DctCg:
    """The system of one mask; nothing is factorised. `steps` is what the last solve needed, at most over its fields."""

    def __init__(self, mask: np.ndarray, tolerance: float = 1e-10, limit: int = 500) -> None:
        if not mask.any():
            raise ValueError("the mask is empty: there is nothing to reconstruct")
        rows, columns = (np.flatnonzero(mask.any(axis=axis)) for axis in (1, 0))
        self._inside = mask[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        self.edges = Edges.of(mask)
        self._component, self.components = components(mask)
        self._scale = _inverse_eigenvalues(*_rectangle(self._inside))
        self._tolerance, self._limit, self.steps = tolerance, limit, 0

    def solve(self, gradients: np.ndarray) -> np.ndarray:
        """The reconstructions (pixels, n) of n gradient fields (edges, n), each component with mean zero.

        Raises RuntimeError where the residual has not come down to `tolerance` of the right-hand side in `limit` steps.
        """
        self.steps = 0
        return centred(np.stack([self.iterate(g) for g in gradients.T], axis=1), self._component, self.components)

    def iterate(self, gradient: np.ndarray) -> np.ndarray:
        """Preconditioned conjugate gradients (Hestenes and Stiefel); the constants in the null space do no harm."""
        r = self.edges.net_inflow(gradient)
        x, goal = np.zeros_like(r), self._tolerance * np.linalg.norm(r)
        z = p = self._precondition(r)
        rz = r @ z
        for step in range(1, self._limit + 1):
            if np.linalg.norm(r) <= goal:
                return x
            self.steps = max(self.steps, step)
            ap = self.edges.net_inflow(self.edges.pixel_differences(p))
            alpha = rz / (p @ ap)
            x, r = x + alpha * p, r - alpha * ap
            z = self._precondition(r)
            rz, last = r @ z, rz
            p = z + rz / last * p
        raise RuntimeError(f"conjugate gradients did not reach {self._tolerance:g} in {self._limit} steps")

    def _precondition(self, r: np.ndarray) -> np.ndarray:
        grid = np.zeros(self._scale.shape)
        view = grid[: self._inside.shape[0], : self._inside.shape[1]]
        view[self._inside] = r
        spectrum = scipy.fft.dctn(grid, norm="ortho", overwrite_x=True)
        solved = scipy.fft.idctn(spectrum * self._scale, norm="ortho", overwrite_x=True)
        return solved[: self._inside.shape[0], : self._inside.shape[1]][self._inside]


def _rectangle(inside: np.ndarray) -> tuple[int, int]:
    """The size to transform: a full rectangle as it is, else the next sizes for which a Fourier transform is fast."""
    if inside.all():
        return inside.shape[0], inside.shape[1]
    h, w = (scipy.fft.next_fast_len(n, real=True) for n in inside.shape)
    return h, w


def _inverse_eigenvalues(height: int, width: int) -> np.ndarray:
    down, across = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in (height, width))
    eigenvalues = down[:, None] + across[None]
    eigenvalues[0, 0] = np.inf  # the constant image has no gradient: the pseudo-inverse leaves it at zero
    return 1 / eigenvalues
