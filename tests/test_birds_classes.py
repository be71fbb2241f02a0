"""The class list of seed 0 and its structure, against golden facts and a slow re-implementation of the definition."""

import random
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.core.scene import digest
from diorama.worlds._bird_classes import (
    CATALOGUE,
    PARTS,
    SUBSETS,
    compatible_classes,
    draw_classes,
    minimal_sets,
    shared_parts,
    target_pair,
)

# Seed 0 and the published parts.json: variants of beak, eye, foot, tail, wing, one word per class.
GOLDEN = """
31044 31272 12141 02285 11015 21053 22183 32204 00304 31155
00131 30054 30282 02281 21062 11131 02270 02120 02382 10343
32212 01231 02215 11153 00130 00034 01050 02031 01105 02312
00042 30083 02061 21325 10122 20320 32382 21224 01055 02221
31254 12265 32004 12221 12365 30365 00312 11384 00352 30334
"""
MINIMAL = "d294aae8514497858a3aed67f4aacd86"  # digest of the list of minimal sufficient sets of the fifty classes
PAIRS = "bf7236792a1d587bc88c6a521b8bac92"  # digest of the list of [pair, shared parts]

classes = draw_classes(random.Random(0))
birds = st.fixed_dictionaries({part: st.integers(0, 2) for part in PARTS})


def test_seed_0_gives_the_published_classes() -> None:
    assert ["".join(str(bird[part]) for part in PARTS) for bird in classes] == GOLDEN.split()


def test_the_catalogue_has_2592_birds() -> None:
    counts = [len(CATALOGUE[part]) for part in PARTS]
    assert counts == [4, 3, 4, 9, 6]
    assert [v.color for v in CATALOGUE["tail"]] == ["red"] * 3 + ["green"] * 3 + ["blue"] * 3


def test_golden_minimal_sets_and_target_pairs() -> None:
    minimal = [[list(s) for s in minimal_sets(classes, i)] for i in range(50)]
    assert digest(minimal) == MINIMAL
    assert Counter(len(s) for sets in minimal for s in sets) == {2: 82, 3: 110, 4: 3}
    assert len(minimal[49]) == 3  # the released code finds none for the last class
    pairs = [target_pair(classes, i) for i in range(50)]
    assert digest([[p and list(p.classes), p and [list(s) for s in p.shared]] for p in pairs]) == PAIRS


def test_part_distances_of_seed_0() -> None:
    distances = Counter(5 - len(shared_parts(a, b)) for a, b in combinations(classes, 2))
    assert distances == {1: 13, 2: 80, 3: 294, 4: 488, 5: 350}


def minimal_ref(birds: list[dict[str, int]], index: int) -> set[frozenset[str]]:
    """A subset is sufficient if no other class agrees on all of it; minimal if no proper subset is sufficient."""

    def sufficient(subset: frozenset[str]) -> bool:
        others = [bird for i, bird in enumerate(birds) if i != index]
        return not any(all(bird[p] == birds[index][p] for p in subset) for bird in others)

    subsets = [frozenset(s) for s in SUBSETS]
    good = [s for s in subsets if sufficient(s)]
    return {s for s in good if not any(smaller < s for smaller in good)}


@settings(max_examples=60, deadline=None)
@given(st.lists(birds, min_size=2, max_size=8))
def test_minimal_sets_agree_with_their_definition(some: list[dict[str, int]]) -> None:
    for index in range(len(some)):
        assert {frozenset(s) for s in minimal_sets(some, index)} == minimal_ref(some, index)


@pytest.mark.parametrize("seed", range(20))
def test_other_seeds_draw_fifty_different_birds(seed: int) -> None:
    drawn = draw_classes(random.Random(seed))
    assert len({tuple(bird.values()) for bird in drawn}) == 50


def test_a_bird_without_parts_may_be_any_class() -> None:
    assert compatible_classes(classes, {}) == tuple(range(50))
    assert all(compatible_classes(classes, bird) == (i,) for i, bird in enumerate(classes))
