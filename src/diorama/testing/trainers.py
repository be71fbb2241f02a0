"""Contract checks for trainers of concept activation vectors. Each returns a problem in one line, or an empty string."""

from functools import lru_cache

import numpy as np

from diorama.core.catalogue import Component
from diorama.core.scene import rng


@lru_cache(maxsize=1)
def _rows() -> tuple[np.ndarray, np.ndarray]:
    """Two draws of 24 rows with two separated classes, and their labels."""
    labels = np.where(np.arange(24) < 10, 1.0, -1.0)
    rows = rng(0, "check", "trainer").standard_normal((2, 24, 40))
    rows[:, labels > 0] += 1.5
    return rows, np.broadcast_to(labels, (2, 24))


def _solved(component: Component) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = _rows()
    return component.object.solve(rows @ rows.transpose(0, 2, 1), labels, np.array([1, 2]))


def gives_one_vector_per_draw(component: Component) -> str:
    """Finite coefficients (k, n) and intercepts (k,)."""
    a, b = _solved(component)
    if np.shape(a) != (2, 24) or np.shape(b) != (2,):
        return f"solve gave {np.shape(a)} and {np.shape(b)} for 2 draws of 24 images: give (2, 24) and (2,)"
    return "" if np.isfinite(a).all() and np.isfinite(b).all() else "solve gave NaN or infinite values"


def gives_the_same_twice(component: Component) -> str:
    """A direction is a function of the images, their labels and the seed."""
    same = all(np.array_equal(x, y) for x, y in zip(_solved(component), _solved(component), strict=True))
    return "" if same else "the same images gave two different directions: use the seeds"


def points_towards_the_concept(component: Component) -> str:
    """Images of label +1 are further along the direction than those of −1; not required of the random trainer."""
    if component.name.endswith("/random"):
        return ""
    (a, _), (rows, labels) = _solved(component), _rows()
    along = np.einsum("kij,kj->ki", rows @ rows.transpose(0, 2, 1), a)
    apart = along[:, labels[0] > 0].mean(axis=1) > along[:, labels[0] < 0].mean(axis=1)
    return "" if apart.all() else "the direction does not point from the label −1 to the label +1"


CHECKS = (gives_one_vector_per_draw, gives_the_same_twice, points_towards_the_concept)
