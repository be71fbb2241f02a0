"""Folds: what a parameter is chosen on, and what a method is fitted on."""

import numpy as np
import pytest

from diorama.core.folds import leave_one_out, two_fold


@pytest.mark.parametrize("direction", ["lower", "higher"])
def test_leave_one_out_is_the_loop_over_the_other_cases(direction):
    scores = np.random.default_rng(0).random((7, 4))
    best = min if direction == "lower" else max
    for i, chosen in enumerate(leave_one_out(scores, direction)):
        sums = [sum(scores[j, p] for j in range(7) if j != i) for p in range(4)]
        assert sums[chosen] == pytest.approx(best(sums))


def test_ties_go_to_the_first_point_and_one_case_cannot_choose():
    assert leave_one_out(np.ones((3, 2)), "higher").tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="two cases"):
        leave_one_out(np.ones((1, 2)), "lower")


def test_two_fold_never_shows_the_judged_case_and_is_stable():
    for count in (1, 2, 5, 8):
        for index in range(count):
            seen = two_fold(index, count)
            assert index not in seen and seen == [i for i in two_fold(index, 100) if i < count]
    assert two_fold(0, 1) == []
