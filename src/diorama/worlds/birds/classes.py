"""The part catalogue of FunnyBirds and the structure of its class list.

A bird is a neutral body plus five concepts; 4 beaks × 3 eyes × 4 feet × 9 tails × 6 wings = 2,592 birds, of which a
class list names fifty. Everything here is about lists of variants, nothing about pixels (Hesse et al. 2023, §3).
"""

import random
from dataclasses import dataclass
from itertools import combinations

PARTS = ("beak", "eye", "foot", "tail", "wing")
PAINTS = ("red", "green", "blue")
#: The sub-parts of the body and of every part; the first of a pair is the viewer's left.
SUB_PARTS: dict[str, tuple[str, ...]] = {
    "body": ("body",),
    "beak": ("beak",),
    "eye": ("eye01", "eye02"),
    "foot": ("foot01", "foot02"),
    "tail": ("tail",),
    "wing": ("wing01", "wing02"),
}
#: The ids of sub-parts in a part map, where 0 is empty and background object i is BACKGROUND + i.
IDS = {name: i for i, name in enumerate((sub for subs in SUB_PARTS.values() for sub in subs), start=1)}
BACKGROUND = len(IDS) + 1
SUBSETS: tuple[tuple[str, ...], ...] = tuple(s for n in range(len(PARTS) + 1) for s in combinations(PARTS, n))


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a part: its model, and its paint (CSS name) if the part is painted."""

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

    The released code tries to skip duplicates but compares unfinished birds; seed 0 draws none, so both agree there.

    >>> draw_classes(random.Random(0), 1)
    ({'beak': 3, 'eye': 1, 'foot': 0, 'tail': 4, 'wing': 4},)
    """
    birds: list[dict[str, int]] = []
    while len(birds) < count:
        bird = {part: stream.randint(0, len(CATALOGUE[part]) - 1) for part in PARTS}
        if bird not in birds:
            birds.append(bird)
    return tuple(birds)
