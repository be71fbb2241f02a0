"""CAVs of concept sets in one Gram space: products of a branch's activations of sets and negatives, and of gradients."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from diorama.core.errors import Undefined
from diorama.core.scene import rng
from diorama.metrics.cav import Draw, draw_sets, fit_gram, gram
from diorama.metrics.cav_trainers import Options

#: Number of CAVs of another set that cosines are taken with, for the diagnostics only.
FEW = 5


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What every case of a cell shares, for one branch: gradients (t, d) of the test images, activations (m, d) of the
    negatives, and the products of negatives with each other (m, m) and with the gradients (t, m).
    """

    gradients: np.ndarray
    negatives: np.ndarray
    products: np.ndarray
    cross: np.ndarray


#: Functions that give the activations (n, d) of a set, by its name; called only for products that are not kept yet.
Sets = Mapping[str, Callable[[], np.ndarray]]
#: Keeps the product of two sets, named in order, or of a set with "negatives" or "gradients".
Keep = Callable[[tuple[str, str], Callable[[], np.ndarray]], np.ndarray]


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """x·y of all rows (n, n), g·x of the test gradients (t, n), and where the rows of each set are."""

    table: Table
    products: np.ndarray
    cross: np.ndarray
    places: dict[str, np.ndarray]

    @classmethod
    def of(cls, table: Table, sets: Sets, keep: Keep) -> "Space":
        """The space of some sets' activations and of the negatives, from products of two at a time."""
        names = list(sets)
        own = {pair: _product(pair, sets, keep) for pair in combinations_with_replacement(names, 2)}
        own |= {(b, a): product.T for (a, b), product in own.items()}
        with_negatives = {a: keep((a, "negatives"), lambda a=a: gram(sets[a](), table.negatives)) for a in names}  # type: ignore[misc]
        along = [keep((a, "gradients"), lambda a=a: gram(table.gradients, sets[a]())) for a in names]  # type: ignore[misc]
        rows = [[*(own[a, b] for b in names), with_negatives[a]] for a in names]
        products = np.block([*rows, [*(with_negatives[a].T for a in names), table.products]])
        ends = np.cumsum([len(with_negatives[a]) for a in names])
        places = {a: np.arange(end - len(with_negatives[a]), end) for a, end in zip(names, ends, strict=True)}
        cross = np.concatenate([*along, table.cross], axis=1)
        return cls(table, products, cross, {**places, "negatives": np.arange(ends[-1], len(products))})

    def fit(self, trainer: str, names: tuple[str, str], runs: int, random: np.random.Generator) -> "Fitted":
        """CAVs of one set against another (or the negatives), each with its own draw and held-out images."""
        some, others = (self.places[name] for name in names)
        draws = draw_sets(len(some), len(others), runs, random)
        return self._fit(trainer, [(some[a], others[b]) for a, b in draws], random)

    def fit_chance(self, trainer: str, names: tuple[str, str], runs: int, random: np.random.Generator) -> "Fitted":
        """CAVs of shuffled labels: every image of the two sets is put on either side at random."""
        sides = [self.places[name] for name in names]
        return self._fit(trainer, random_splits(np.concatenate(sides), min(map(len, sides)), runs, random), random)

    def _fit(self, trainer: str, draws: Sequence[Draw], random: np.random.Generator) -> "Fitted":
        try:
            cavs = fit_gram(trainer, self.products, draws, random, Options())
        except ValueError as error:  # activations that do not vary have no direction
            raise Undefined(str(error)) from error
        return Fitted(self, cavs.coefficients, cavs.accuracy)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """CAVs as coefficients (k, n) over the rows of a space, and their accuracy on held-out images."""

    space: Space
    coefficients: np.ndarray
    accuracy: np.ndarray

    @property
    def scores(self) -> np.ndarray:
        """The share of test images whose loss falls, for every CAV (k,)."""
        return self.negative.mean(axis=0)

    @property
    def negative(self) -> np.ndarray:
        """Whether the loss of a test image falls along a CAV, (t, k): the gradient's product with it is below 0."""
        return self.space.cross @ self.coefficients.T < 0

    def only(self, chosen: np.ndarray) -> "Fitted":
        """Some of the CAVs."""
        return Fitted(self.space, self.coefficients[chosen], self.accuracy[chosen])

    def cosines(self, other: "Fitted") -> np.ndarray:
        """Cosines (k, m) between these CAVs and others of the same space."""
        norms = [
            np.sqrt(np.einsum("kn,kn->k", c.coefficients @ c.space.products, c.coefficients)) for c in (self, other)
        ]
        dots = self.coefficients @ self.space.products @ other.coefficients.T
        return dots / np.maximum(np.outer(*norms), 1e-300)

    def stability(self) -> float:
        """The mean cosine between two of the CAVs."""
        k = len(self.coefficients)
        return float((self.cosines(self).sum() - k) / (k * (k - 1))) if k > 1 else float("nan")


def _product(pair: tuple[str, str], sets: Sets, keep: Keep) -> np.ndarray:
    one, other = pair
    return keep(pair, lambda: gram(sets[one](), None if one == other else sets[other]()))


def random_splits(pool: np.ndarray, size: int, runs: int, random: np.random.Generator) -> list[Draw]:
    """Two disjoint random sets of `size` rows for each run, at most half the pool each."""
    size = min(size, len(pool) // 2)
    mixed = [random.permutation(pool)[: 2 * size] for _ in range(runs)]
    return [(np.sort(m[:size]), np.sort(m[size:])) for m in mixed]


def chance_scores(table: Table, trainer: str, size: int, runs: int) -> np.ndarray:
    """The scores (runs,) of CAVs of negatives against negatives, the same for all sets of one size."""
    random = rng("csm", "chance", size, runs)
    cavs = fit_gram(
        trainer, table.products, random_splits(np.arange(len(table.negatives)), size, runs, random), random, Options()
    )
    return (table.cross @ cavs.coefficients.T < 0).mean(axis=0)
