"""L1 reconstruction as a linear programme, solved exactly; slow on purpose."""

import numpy as np
import scipy.optimize


def least_absolute(edges, pixels, gradient):
    """min Σ t_e subject to −t ≤ x_j − x_i − g ≤ t: the smallest sum of absolute residuals."""
    n = len(gradient)
    difference = np.zeros((n, pixels))
    for e, (i, j) in enumerate(edges):
        difference[e, i], difference[e, j] = -1, 1
    left = np.block([[difference, -np.eye(n)], [-difference, -np.eye(n)]])
    cost = np.concatenate([np.zeros(pixels), np.ones(n)])
    bounds = [(None, None)] * pixels + [(0, None)] * n
    found = scipy.optimize.linprog(cost, left, np.concatenate([gradient, -gradient]), bounds=bounds)
    return found.fun
