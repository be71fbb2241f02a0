"""Codes (N, M) and factors (N, F) as plain arrays: what every disentanglement score shares.

No data set and no grid is assumed: any sample of rows will do, confounded or incomplete. A factor is a column of class
labels, integers or not; one with non-integer values of which more than 64, or more than N/2, are distinct counts as
continuous and is cut into 20 bins of equal width. A factor with one value carries no information and takes no part; a
latent takes part if it is active by the rule of the score:

    all      every latent
    varies   not constant (IRS in disentanglement_lib)
    spread   standard deviation above 10 % of the largest: no dead latent of a VAE passes; give codes of one scale
    range    range above 1/20 of the largest (InfoMEC; Hsu et al. 2023)
    scale    standard deviation at least 0.05 (FactorVAE score in disentanglement_lib; assumes a unit Gaussian prior)

What does not take part is NaN in the matrices; a score that has no value is NaN.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

Rule = Literal["all", "varies", "spread", "range", "scale"]

_RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all": lambda z: np.ones(z.shape[1], bool),
    "varies": lambda z: np.ptp(z, axis=0) > 0,
    "spread": lambda z: (np.ptp(z, axis=0) > 0) & (z.std(axis=0) > 0.1 * z.std(axis=0).max()),
    "range": lambda z: np.ptp(z, axis=0) > np.ptp(z, axis=0).max() / 20,
    "scale": lambda z: z.std(axis=0, ddof=1) >= 0.05,
}


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The result of a score: named values (the first one ranks), the matrix (M, F) behind it, and one value per factor."""

    values: dict[str, float]
    matrix: np.ndarray
    per_factor: np.ndarray
    active: np.ndarray

    @property
    def value(self) -> float:
        """The first value."""
        return next(iter(self.values.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The active latents (N, m) and the labels (N, f) of the varying factors; `active` and `varying` flag those."""

    codes: np.ndarray
    labels: np.ndarray
    active: np.ndarray
    varying: np.ndarray

    @property
    def empty(self) -> bool:
        """Whether no latent is active or no factor varies."""
        return not (self.codes.shape[1] and self.labels.shape[1])

    def measured(self, values: dict[str, float], matrix: np.ndarray, per_factor: np.ndarray) -> Measured:
        """A result with the latents and factors that took no part put back as NaN."""
        full = np.full((len(self.active), len(self.varying)), np.nan)
        full[np.ix_(self.active, self.varying)] = matrix
        factors = np.full(len(self.varying), np.nan)
        factors[self.varying] = per_factor
        return Measured(values, full, factors, self.active)

    def nothing(self, *names: str) -> Measured:
        """A result without any value."""
        shape = self.codes.shape[1], self.labels.shape[1]
        return self.measured(dict.fromkeys(names, float("nan")), np.full(shape, np.nan), np.full(shape[1], np.nan))


def sample(codes: np.ndarray, factors: np.ndarray, rule: Rule = "varies", bins: int | None = None) -> Sample:
    """The part of codes and factors that a score is computed on; `bins` cuts every factor into bins of equal width.

    >>> found = sample(np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[7, 3], [7, 4]]))
    >>> found.active, found.varying, found.labels.ravel()
    (array([False,  True]), array([False,  True]), array([0, 1]))
    """
    z, g = checked(codes, factors)
    mask = active(z, rule)
    labels = np.stack([_labels(column, bins) for column in g.T], axis=1)
    varying = labels.max(axis=0) > 0
    return Sample(z[:, mask], labels[:, varying], mask, varying)


def checked(codes: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes and factors as finite float arrays (N, M) and (N, F), N > 1; a single factor may be (N,).

    >>> checked(np.zeros((3, 1)), np.zeros(2))
    Traceback (most recent call last):
    ValueError: codes have 3 rows, factors 2: give one row per image in both
    """
    z, g = np.asarray(codes, np.float64), np.asarray(factors, np.float64)
    g = g[:, None] if g.ndim == 1 else g
    for name, array in (("codes", z), ("factors", g)):
        if array.ndim != 2 or not array.shape[1]:
            raise ValueError(f"{name} have shape {array.shape}: give (images, columns)")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} have {int((~np.isfinite(array)).sum())} values that are NaN or infinite")
    if len(z) != len(g):
        raise ValueError(f"codes have {len(z)} rows, factors {len(g)}: give one row per image in both")
    if len(z) < 2:
        raise ValueError("one image is no sample: give at least two rows")
    return z, g


def active(codes: np.ndarray, rule: Rule = "varies") -> np.ndarray:
    """Which latents (M,) take part, by a rule of this module.

    >>> z = np.array([[0.0, 0.0, 1.0], [1.0, 0.01, 1.0]])
    >>> [active(z, rule).tolist() for rule in ("varies", "spread")]
    [[True, True, False], [True, False, False]]
    """
    if rule not in _RULES:
        raise ValueError(f"rule {rule!r} is not one of {', '.join(_RULES)}")
    return _RULES[rule](codes)


def _labels(column: np.ndarray, bins: int | None) -> np.ndarray:
    """Class labels 0, 1, … of a factor: its distinct values, or its bins that are not empty."""
    if bins or continuous(column):
        column = binned(column[:, None], bins or 20)[:, 0]
    return np.unique(column, return_inverse=True)[1]


def continuous(column: np.ndarray) -> bool:
    """Whether a factor has too many non-integer values to be classes, and is cut into 20 bins.

    >>> continuous(np.linspace(0, 1, 100)), continuous(np.arange(100)), continuous(np.arange(100) % 5 / 5)
    (True, False, False)
    """
    values = np.unique(column)
    return bool((values != np.rint(values)).any() and len(values) > min(64, len(column) / 2))


def binned(codes: np.ndarray, bins: int = 20) -> np.ndarray:
    """Every column cut into bins of equal width between its extremes, 0 … bins−1; the edges are those of numpy.histogram.

    >>> binned(np.array([[0.0], [0.4], [1.0]]), 2).ravel()
    array([0, 0, 1])
    """
    edges = [np.histogram_bin_edges(column, bins)[1:-1] for column in codes.T]
    columns = [np.searchsorted(e, column, side="right") for e, column in zip(edges, codes.T, strict=True)]
    return np.stack(columns, axis=1)


def standardised(codes: np.ndarray, by: np.ndarray | None = None) -> np.ndarray:
    """Columns minus their mean, over their standard deviation (both of the rows `by`, if given); a constant one becomes 0.

    >>> standardised(np.array([[0.0, 5.0], [2.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    rows = codes if by is None else by
    deviation = rows.std(axis=0)
    return (codes - rows.mean(axis=0)) / np.where(deviation > 0, deviation, 1)


def entropy(labels: np.ndarray) -> np.ndarray:
    """The entropy of every column of labels, in nats.

    >>> entropy(np.array([[0, 0], [1, 0]])).round(4)
    array([0.6931, 0.    ])
    """
    return np.array([_entropy_of(np.bincount(column)) for column in labels.T])


def _entropy_of(counts: np.ndarray) -> float:
    p = counts[counts > 0] / counts.sum()
    return float(abs((p * np.log(p)).sum()))


def mutual_information(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """I(a_i; b_j) = H(a_i) + H(b_j) − H(a_i, b_j) of all pairs of label columns, (columns of a, columns of b), in nats.

    >>> mutual_information(np.array([[0], [0], [1], [1]]), np.array([[0, 0], [0, 1], [1, 0], [1, 1]])).round(4)
    array([[0.6931, 0.    ]])
    """
    width = b.max(axis=0) + 1
    joint = [[_entropy_of(np.bincount(x * w + y)) for y, w in zip(b.T, width, strict=True)] for x in a.T]
    return np.maximum(entropy(a)[:, None] + entropy(b)[None] - np.array(joint), 0.0)


def gap(matrix: np.ndarray, axis: int) -> np.ndarray:
    """The largest minus the second largest entry along an axis; from a single entry, 0 is subtracted.

    >>> gap(np.array([[3.0, 1.0], [2.0, 5.0]]), axis=0)
    array([1., 4.])
    """
    ordered = np.sort(matrix, axis=axis)
    first = np.take(ordered, -1, axis=axis)
    return first - (np.take(ordered, -2, axis=axis) if matrix.shape[axis] > 1 else 0.0)


def halves(count: int, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and rows to judge on: a random `share` of all, and the rest, at least one each."""
    order = rng.permutation(count)
    cut = min(max(int(share * count), 1), count - 1)
    return order[:cut], order[cut:]
