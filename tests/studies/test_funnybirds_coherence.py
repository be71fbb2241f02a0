"""Coherence on planted parts: swaps against a slow search, boxes against pixels, the released slip of the part map."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from diorama.core.frame import Frame  # noqa: E402
from diorama.core.scene import Scene  # noqa: E402
from diorama.worlds.birds.birds import Birds  # noqa: E402
from studies.funnybirds import coherence  # noqa: E402


def head_of(weights):
    """Logits from every place of a map by weights of its own."""
    return lambda maps: torch.einsum("nchw,kchw->nk", maps, weights)


def slow_swaps(head, query, distractor, target):
    """Goyal et al.'s search, pair by pair."""
    edited, found = query.clone(), []
    h, w = query.shape[1:]
    places = [(y, x) for y in range(h) for x in range(w)]
    for _ in range(h * w - 1):
        best, pair = float(head(edited[None]).softmax(1)[0, target]), None
        for q in places:
            for d in places:
                if q in [f[0] for f in found] or d in [f[1] for f in found]:
                    continue
                tried = edited.clone()
                tried[:, q[0], q[1]] = distractor[:, d[0], d[1]]
                value = float(head(tried[None]).softmax(1)[0, target])
                if value > best:
                    best, pair = value, (q, d)
        if pair is None:
            return None
        edited[:, pair[0][0], pair[0][1]] = distractor[:, pair[1][0], pair[1][1]]
        found.append(pair)
        if int(head(edited[None]).argmax()) == target:
            return [(q[0] * w + q[1], d[0] * w + d[1]) for q, d in found]
    return None


@pytest.mark.parametrize("seed", range(6))
def test_swaps_are_those_of_the_slow_search(seed):
    torch.manual_seed(seed)
    head, (query, distractor) = head_of(torch.randn(3, 2, 3, 3)), torch.randn(2, 2, 3, 3)
    assert coherence.swaps(head, query, distractor, 1) == slow_swaps(head, query, distractor, 1)


def test_no_swap_that_helps_is_said():
    head, (query, distractor) = (
        head_of(torch.ones(2, 1, 2, 2) * torch.tensor([1.0, -1.0]).view(2, 1, 1, 1)),
        torch.ones(2, 1, 2, 2),
    )
    assert coherence.swaps(head, query, distractor, 1) is None


def frame_with(places):
    parts = np.zeros((8, 8), np.uint8)
    for (y, x), name in places.items():
        parts[y, x] = Birds.part_ids[name][-1]
    return Frame(Scene("birds", {}), np.zeros((8, 8, 3), np.float32), "srgb", {"parts": parts, "label": 0})


def test_cells_are_coherent_that_show_the_same_part():
    here, there = frame_with({(0, 0): "beak", (5, 5): "wing"}), frame_with({(7, 7): "beak", (0, 0): "wing"})
    assert coherence.incoherent([(0, 3)], here, there, 2) == 0  # both have the beak, in other cells
    assert coherence.incoherent([(0, 0)], here, there, 2) == 1
    assert coherence.incoherent([(3, 0), (1, 0)], here, there, 2) == 1  # an empty cell shares nothing
    assert coherence.parts_within(here.truth["parts"], (0, 0, 8, 8)) == {"beak", "wing"}


def test_pairs_are_as_their_setting_says():
    pytest.importorskip("embreex", reason="the renderer is not installed (pip install 'diorama[render]')")
    world = Birds(size=32, antialias=False, objects=2)
    for same_view, one_part, _ in coherence.SETTINGS.values():
        pair = next(coherence.drawn_pairs(world, same_view, one_part))
        a, b = (world.classes[f.truth["label"]] for f in (pair.query, pair.distractor))
        assert a != b and (not one_part or sum(a[p] != b[p] for p in a) == 1)
        views = [
            {k: v for k, v in f.truth["factors"].items() if k.split("_")[0] in ("camera", "light")}
            for f in (pair.query, pair.distractor)
        ]
        assert views[0] and (views[0] == views[1]) == same_view


def test_a_moved_box_keeps_its_size_and_stays_inside():
    for seed in range(20):
        x0, y0, x1, y1 = coherence.moved((3, 4, 13, 9), 20, np.random.default_rng(seed))
        assert (x1 - x0, y1 - y0) == (10, 5) and 0 <= x0 <= x1 <= 20 and 0 <= y0 <= y1 <= 20
