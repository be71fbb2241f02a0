"""The class list of seed 0 and its structure, against golden facts."""

import random
from collections import Counter
from itertools import combinations

import pytest

from diorama.core.examples import compatible_classes
from diorama.worlds.birds.classes import CATALOGUE, PARTS, draw_classes

# Seed 0 and the published parts.json: variants of beak, eye, foot, tail, wing, one word per class.
GOLDEN = """
31044 31272 12141 02285 11015 21053 22183 32204 00304 31155
00131 30054 30282 02281 21062 11131 02270 02120 02382 10343
32212 01231 02215 11153 00130 00034 01050 02031 01105 02312
00042 30083 02061 21325 10122 20320 32382 21224 01055 02221
31254 12265 32004 12221 12365 30365 00312 11384 00352 30334
"""

classes = draw_classes(random.Random(0))


def test_seed_0_gives_the_published_classes() -> None:
    assert ["".join(str(bird[part]) for part in PARTS) for bird in classes] == GOLDEN.split()


def test_the_catalogue_has_2592_birds() -> None:
    counts = [len(CATALOGUE[part]) for part in PARTS]
    assert counts == [4, 3, 4, 9, 6]
    assert [v.color for v in CATALOGUE["tail"]] == ["red"] * 3 + ["green"] * 3 + ["blue"] * 3


def test_part_distances_of_seed_0() -> None:
    distances = Counter(sum(a[part] != b[part] for part in PARTS) for a, b in combinations(classes, 2))
    assert distances == {1: 13, 2: 80, 3: 294, 4: 488, 5: 350}


@pytest.mark.parametrize("seed", range(20))
def test_other_seeds_draw_fifty_different_birds(seed: int) -> None:
    drawn = draw_classes(random.Random(seed))
    assert len({tuple(bird.values()) for bird in drawn}) == 50


def test_a_bird_without_parts_may_be_any_class() -> None:
    assert compatible_classes(classes, {}) == tuple(range(50))
    assert all(compatible_classes(classes, bird) == (i,) for i, bird in enumerate(classes))
