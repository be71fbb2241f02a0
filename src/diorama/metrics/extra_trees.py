"""Extremely randomised trees (Geurts et al. 2006) for DCI: importances and predictions, compiled.

The trees are those of scikit-learn's ExtraTreesClassifier with `max_features=None`, draw for draw
(tests/reference/test_extra_trees.py compares them), and grow several times faster: the rows of a node are read twice for all
features together, not three times for each, and the rows to predict walk down while a tree grows, so that none is kept.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit

#: Trees that are summed together, whatever the number of threads: the sums do not depend on it.
TOGETHER = 10
#: A feature whose values differ by no more than SAME is constant; a node whose impurity is not above PURE is pure.
SAME, PURE = np.float32(1e-7), float(np.finfo(np.float64).eps)
#: How many values a draw can have.
DRAWS = 2**31


class Grown(NamedTuple):
    """Importances of the features, whose sum is 1, and the label predicted for every row asked for."""

    importance: np.ndarray
    predicted: np.ndarray


def extra_trees(
    codes: np.ndarray, labels: np.ndarray, asked: np.ndarray, seed: int, trees: int = 100, leaf: int = 5, jobs: int = 1
) -> Grown:
    """Grow `trees` on codes (rows, features) with at least `leaf` rows in a leaf, and predict the rows `asked`.

    At a node every feature gets one random threshold; the one with the smallest Gini impurity of its two sides splits. The
    importance of a feature in a tree is its share of the decrease in impurity by all splits, weighted by rows.

    >>> x = np.arange(40.0)[:, None] * [1, 0]
    >>> grown = extra_trees(x, x[:, 0] > 19, np.array([[3.0, 0], [33.0, 0]]), seed=0)
    >>> grown.importance.tolist(), grown.predicted.tolist()
    ([1.0, 0.0], [False, True])
    """
    values, targets = np.unique(labels, return_inverse=True)
    x, rows = (np.ascontiguousarray(part, np.float32) for part in (codes, asked))
    states = _states(seed, trees)

    def grow(first: int) -> tuple[np.ndarray, np.ndarray]:
        return _grow(x, targets, len(values), rows, states[first : first + TOGETHER], leaf)

    with ThreadPoolExecutor(jobs) as pool:
        importances, votes = zip(*pool.map(grow, range(0, trees, TOGETHER)), strict=True)
    importance = np.sum(importances, axis=0)
    return Grown(importance / (importance.sum() or 1.0), values[np.sum(votes, axis=0).argmax(axis=1)])


def _states(seed: int, trees: int) -> np.ndarray:
    """The state of every tree's generator: a forest seeds its trees, and a tree its splits."""
    random = np.random.RandomState(seed)
    seeds = [random.randint(DRAWS - 1) for _ in range(trees)]
    return np.array([np.random.RandomState(one).randint(DRAWS - 1) for one in seeds], np.int64)


@njit(cache=True, nogil=True)
def _grow(
    x: np.ndarray, y: np.ndarray, classes: int, asked: np.ndarray, states: np.ndarray, leaf: int
) -> tuple[np.ndarray, np.ndarray]:
    """Importances, summed over the trees that begin in these states, and their votes for the rows asked."""
    n, width = x.shape
    importance, votes, count = np.zeros(width), np.zeros((len(asked), classes)), np.empty(classes)
    low, high, cuts = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width)
    left, tried = np.empty((classes, width), np.int32), np.empty(width, np.int64)
    stack = np.empty((n + 1, 5), np.int64)  # rows from, to; rows asked from, to; how many features are constant
    for i in range(len(states)):
        state = states[i : i + 1].copy()
        rows, others, own = np.arange(n), np.arange(len(asked)), np.zeros(width)
        features, constant = np.arange(width), np.empty(width, np.int64)
        stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3], stack[0, 4] = 0, n, 0, len(asked), 0
        depth = 1
        while depth:
            depth -= 1
            first, last, start, end, known = stack[depth]
            here = rows[first:last]
            impurity = _impurity(y, here, count)
            best, decrease = -1, 0.0
            if len(here) >= 2 * leaf and impurity > PURE:
                _ranges(x, here, low, high)
                many, known = _draw(low, high, features, constant, known, state, tried, cuts)
                _sides(x, y, here, cuts, left)
                best, decrease = _best(count, left, tried[:many], leaf, impurity)
            if best < 0:
                for r in others[start:end]:
                    for c in range(classes):
                        votes[r, c] += count[c] / len(here)
                continue
            own[best] += decrease
            middle = first + _part(x, here, best, cuts[best])
            between = start + _part(asked, others[start:end], best, cuts[best])
            for at, ends in enumerate(((middle, last, between, end), (first, middle, start, between))):
                stack[depth + at, 0], stack[depth + at, 1], stack[depth + at, 2], stack[depth + at, 3] = ends
                stack[depth + at, 4] = known
            depth += 2
        total = own.sum()
        if total > 0:
            importance += own / total
    return importance, votes


@njit(cache=True, nogil=True)
def _impurity(y: np.ndarray, rows: np.ndarray, count: np.ndarray) -> float:
    """Gini's 1 − Σ share², and the rows of every class in `count`."""
    count[:] = 0
    for r in rows:
        count[y[r]] += 1
    n, squares = float(len(rows)), 0.0
    for c in range(len(count)):
        squares += count[c] * count[c]  # whole numbers: exact in any order
    return 1.0 - squares / (n * n)


@njit(cache=True, nogil=True)
def _ranges(x: np.ndarray, rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """The smallest and the largest value of every feature."""
    low[:], high[:] = np.inf, -np.inf
    for r in rows:
        for f in range(len(low)):
            value = x[r, f]
            low[f] = value if value < low[f] else low[f]
            high[f] = value if value > high[f] else high[f]


@njit(cache=True, nogil=True)
def _draw(
    low: np.ndarray,
    high: np.ndarray,
    features: np.ndarray,
    constant: np.ndarray,
    known: int,
    state: np.ndarray,
    tried: np.ndarray,
    cuts: np.ndarray,
) -> tuple[int, int]:
    """Features that vary in a random order, each with a threshold; gives how many, and how many are constant.

    `features` is a permutation: first those known to be constant, then those found to be so, then those not drawn yet, then
    the others. The order of the constant ones is restored at the end: nodes that are split later know only some of them.
    """
    many, drawn, found, end = 0, 0, 0, len(features)
    while end > known + found:
        j = drawn + _next(state) % (end - found - drawn)
        if j < known:
            features[drawn], features[j] = features[j], features[drawn]
            drawn += 1
            continue
        j += found
        f = features[j]
        if high[f] <= low[f] + SAME:
            features[j], features[known + found] = features[known + found], f
            found += 1
            continue
        end -= 1
        features[end], features[j] = features[j], features[end]
        a, b = np.float64(low[f]), np.float64(high[f])
        cut = (b - a) * float(_next(state)) / (DRAWS - 1.0) + a
        tried[many], cuts[f] = f, a if cut == b else cut
        many += 1
    features[:known] = constant[:known]
    constant[known : known + found] = features[known : known + found]
    return many, known + found


@njit(cache=True, nogil=True)
def _next(state: np.ndarray) -> int:
    """The next draw of scikit-learn's generator, xorshift in 32 bits (Marsaglia 2003)."""
    s = state[0] if state[0] else 1
    s ^= (s << 13) & 0xFFFFFFFF
    s ^= s >> 17
    s ^= (s << 5) & 0xFFFFFFFF
    state[0] = s
    return s % DRAWS


@njit(cache=True, nogil=True)
def _sides(x: np.ndarray, y: np.ndarray, rows: np.ndarray, cuts: np.ndarray, left: np.ndarray) -> None:
    """How many rows of every class are left of every feature's threshold."""
    left[:] = 0
    for r in rows:
        c = y[r]
        for f in range(len(cuts)):
            left[c, f] += np.int32(x[r, f] <= cuts[f])


@njit(cache=True, nogil=True)
def _best(count: np.ndarray, left: np.ndarray, tried: np.ndarray, leaf: int, impurity: float) -> tuple[int, float]:
    """The feature whose threshold leaves least impurity (−1 if all leave a side too small), and the decrease, by rows."""
    best, least, n = -1, np.inf, count.sum()
    for f in tried:
        n_a, squares_a, squares_b = 0.0, 0.0, 0.0
        for c in range(len(count)):
            a = float(left[c, f])
            n_a += a
            squares_a += a * a
            squares_b += (count[c] - a) * (count[c] - a)
        n_b = n - n_a
        if n_a < leaf or n_b < leaf:
            continue
        rest = n_a * (1.0 - squares_a / (n_a * n_a)) + n_b * (1.0 - squares_b / (n_b * n_b))
        if rest < least:
            best, least = f, rest
    return best, n * impurity - least


@njit(cache=True, nogil=True)
def _part(x: np.ndarray, rows: np.ndarray, feature: int, cut: float) -> int:
    """Move the rows not above the threshold to the front; gives their number."""
    i, j = 0, len(rows)
    while i < j:
        if x[rows[i], feature] <= cut:
            i += 1
        else:
            j -= 1
            rows[i], rows[j] = rows[j], rows[i]
    return i
