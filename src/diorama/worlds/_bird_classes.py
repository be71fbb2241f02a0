"""The part catalogue of FunnyBirds and the structure of its class list.

A bird is a neutral body plus five concepts; 4 beaks × 3 eyes × 4 feet × 9 tails × 6 wings = 2,592 birds, of which a
class list names fifty. Everything here is about lists of variants, nothing about pixels (Hesse et al. 2023, §3).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

PARTS = ("beak", "eye", "foot", "tail", "wing")
PAINTS = ("red", "green", "blue")
SUBSETS: tuple[tuple[str, ...], ...] = tuple(s for n in range(len(PARTS) + 1) for s in combinations(PARTS, n))

Variants = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Variant:
    """One look of a part: which model, and its paint (CSS name) where the part is painted."""

    model: str
    color: str | None = None

    def record(self) -> dict[str, str]:
        """As an entry of `parts.json`."""
        return {"model": f"{self.model}.glb"} | ({} if self.color is None else {"color": self.color})


CATALOGUE: dict[str, tuple[Variant, ...]] = {
    "beak": tuple(Variant(f"beak0{i}", "yellow") for i in range(1, 5)),
    "eye": tuple(Variant(f"eye0{i}") for i in range(1, 4)),
    "foot": tuple(Variant(f"foot0{i}") for i in range(1, 5)),
    "tail": tuple(Variant(f"tail0{i}", paint) for paint in PAINTS for i in range(1, 4)),
    "wing": tuple(Variant(f"wing0{i}", paint) for paint in PAINTS for i in range(1, 3)),
}


def draw_classes(stream: random.Random, count: int = 50) -> tuple[dict[str, int], ...]:
    """`count` different birds in the published draw order: one `randint` per part, in catalogue order.

    The released code means to skip duplicates but compares unfinished birds; seed 0 draws none, so both agree there.

    >>> draw_classes(random.Random(0), 1)
    ({'beak': 3, 'eye': 1, 'foot': 0, 'tail': 4, 'wing': 4},)
    """
    birds: list[dict[str, int]] = []
    while len(birds) < count:
        bird = {part: stream.randint(0, len(CATALOGUE[part]) - 1) for part in PARTS}
        if bird not in birds:
            birds.append(bird)
    return tuple(birds)


def shared_parts(a: Variants, b: Variants) -> tuple[str, ...]:
    """The parts in which two birds look the same.

    >>> shared_parts({"beak": 1, "eye": 0}, {"beak": 1, "eye": 2})
    ('beak',)
    """
    return tuple(part for part in a if a[part] == b[part])


def compatible_classes(classes: Sequence[Variants], kept: Variants) -> tuple[int, ...]:
    """The classes that a bird showing only the variants `kept` may belong to: the targets of the multi-target loss.

    >>> compatible_classes([{"beak": 0, "eye": 1}, {"beak": 0, "eye": 2}], {"beak": 0})
    (0, 1)
    """
    return tuple(i for i, bird in enumerate(classes) if all(bird[part] == kept[part] for part in kept))


def minimal_sets(classes: Sequence[Variants], index: int) -> tuple[tuple[str, ...], ...]:
    """The minimal sufficient part sets of a class: no other class shares them, and no smaller sufficient set is inside.

    The released code of FunnyBirds finds none for the last class of a list; this is the corrected set.

    >>> minimal_sets([{"beak": 0, "eye": 1}, {"beak": 0, "eye": 2}], 0)
    (('eye',),)
    """
    minimal: list[tuple[str, ...]] = []
    for subset in SUBSETS:
        kept = {part: classes[index][part] for part in subset if part in classes[index]}
        if len(kept) == len(subset) and _is_new(subset, minimal) and compatible_classes(classes, kept) == (index,):
            minimal.append(subset)
    return tuple(minimal)


def _is_new(subset: Iterable[str], found: Iterable[tuple[str, ...]]) -> bool:
    return not any(set(smaller) <= set(subset) for smaller in found)


@dataclass(frozen=True, slots=True)
class TargetPair:
    """Two other classes, and the parts each shares with the class in question (target sensitivity)."""

    classes: tuple[int, int]
    shared: tuple[tuple[str, ...], tuple[str, ...]]


def target_pair(classes: Sequence[Variants], index: int) -> TargetPair | None:
    """The first pair of classes, in index order, at part distance 3 whose shared part sets are disjoint; None if none.

    >>> birds = draw_classes(random.Random(0))
    >>> target_pair(birds, 0)
    TargetPair(classes=(1, 25), shared=(('beak', 'eye'), ('foot', 'wing')))
    """
    shared = {i: shared_parts(classes[index], bird) for i, bird in enumerate(classes) if i != index}
    near = [i for i, parts in shared.items() if len(parts) == len(PARTS) - 3]
    for first, second in combinations(near, 2):
        if not set(shared[first]) & set(shared[second]):
            return TargetPair((first, second), (shared[first], shared[second]))
    return None
