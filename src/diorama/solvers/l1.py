"""Masked reconstruction in L1: the image whose differences are nearest to given ones in the sum of absolute residuals.

Minimise Σ_edges |x_j − x_i − g_ij|, the p = 1 reconstruction of Grosse et al. 2009 (§4.1): a few wrong gradients are left
as outliers instead of being spread over the image. Two ways:

- `admm` splits off the residuals z = G x − g. The x-step is the L2 reconstruction of g + z − u, so the one factorisation
  of the constant Laplacian serves all iterations; the z-step is a soft threshold at 1/ρ (Boyd et al. 2011, §6.1).
- `irls` is what the released code does: 20 weighted least-squares solves from the L2 solution, each with a new matrix.
"""

import numpy as np

from diorama.solvers.poisson import Poisson


def objective(system: Poisson, x: np.ndarray, gradients: np.ndarray) -> np.ndarray:
    """Σ |G x − g| of every column.

    >>> system = Poisson(np.ones((1, 3), bool))
    >>> objective(system, np.array([[0.0], [1.0], [1.0]]), np.array([[1.0], [3.0]]))
    array([3.])
    """
    return np.abs(system.edges.pixel_differences(x) - gradients).sum(axis=0)


def admm(
    system: Poisson, gradients: np.ndarray, rho: float = 20.0, iterations: int = 100, tolerance: float = 1e-5
) -> np.ndarray:
    """The L1 reconstructions (pixels, n) of n gradient fields (edges, n), each component with mean zero.

    Stops after `iterations`, or as soon as the objective of every column has changed by less than `tolerance` of itself
    over the last ten iterations.

    >>> system = Poisson(np.ones((2, 2), bool))  # around a square 1 + 0 − 0 − 0 ≠ 0: one edge is left as an outlier
    >>> x = admm(system, np.array([[1.0], [0.0], [0.0], [0.0]]))
    >>> round(float(objective(system, x, np.array([[1.0], [0.0], [0.0], [0.0]]))[0]), 3)
    1.0
    """
    x, z, u = system.solve(gradients), np.zeros_like(gradients), np.zeros_like(gradients)
    before = objective(system, x, gradients)
    for i in range(1, iterations + 1):
        wanted = system.edges.pixel_differences(x) - gradients + u
        z = _shrink(wanted, 1 / rho)
        u = wanted - z
        x = system.solve(gradients + z - u)
        if i % 10 == 0:
            now = objective(system, x, gradients)
            if (np.abs(before - now) <= tolerance * now).all():
                break
            before = now
    return x


def irls(system: Poisson, gradients: np.ndarray, iterations: int = 20, floor: float = 1e-4) -> np.ndarray:
    """L1 reconstructions by iteratively reweighted least squares from the L2 one, weights 1/(2·max(|residual|, floor)).

    A solve that fails or is not finite ends the iteration with the last good iterate, as in the released code.
    """
    return np.stack([_irls(system, g, iterations, floor) for g in gradients.T], axis=1)


def _irls(system: Poisson, gradient: np.ndarray, iterations: int, floor: float) -> np.ndarray:
    x = system.solve(gradient[:, None])
    for _ in range(iterations):
        residual = system.edges.pixel_differences(x)[:, 0] - gradient
        try:
            following = system.solve_weighted(gradient, 1 / (2 * np.maximum(np.abs(residual), floor)))
        except RuntimeError:  # SuperLU: "Factor is exactly singular"
            break
        if not np.isfinite(following).all():
            break
        x = following[:, None]
    return x[:, 0]


def _shrink(values: np.ndarray, by: float) -> np.ndarray:
    """Soft threshold: sign(v)·max(|v| − by, 0)."""
    return values - np.clip(values, -by, by)
