"""LMSE: block sums against the window loop of the paper, and its exact properties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from diorama.metrics.lmse import Windows, lmse
from tests.reference.lmse_loop import lmse_loop

values = st.floats(0, 100, allow_nan=False, width=32)


@st.composite
def layer_pairs(draw):
    shape = draw(st.tuples(st.integers(20, 57), st.integers(20, 57)))
    truth, estimate = (draw(arrays.arrays(np.float64, shape, elements=values)) for _ in range(2))
    return truth, estimate, draw(arrays.arrays(bool, shape))


@settings(max_examples=60, deadline=None)
@given(layer_pairs(), st.sampled_from([(20, 10), (12, 8), (10, 10), (7, 3)]))
def test_equals_the_loop_over_windows(case, window):
    truth, estimate, mask = case
    expected = lmse_loop(truth, estimate, mask, *window)
    assert lmse(truth, estimate, mask, *window) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@settings(max_examples=50, deadline=None)
@given(layer_pairs(), st.floats(1e-9, 1e9))
def test_is_zero_up_to_a_scale_of_any_size(case, scale):
    truth, _, mask = case
    mask[:20, :20] = True
    assert lmse(truth + 1, scale * (truth + 1), mask) == pytest.approx(0, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(layer_pairs())
def test_lies_between_zero_and_one_and_zeros_score_one(case):
    truth, estimate, mask = case
    mask[:20, :20] = True
    assert 0 <= lmse(truth + 1, estimate, mask) <= 1 + 1e-12
    assert lmse(truth + 1, np.zeros_like(truth), mask) == 1


def test_remainders_at_the_right_and_bottom_are_never_visited():
    truth, mask = np.ones((25, 39)), np.ones((25, 39), bool)
    estimate = truth.copy()
    estimate[20:], estimate[:, 30:] = 7.0, 3.0
    assert lmse(truth, estimate, mask) == pytest.approx(0, abs=1e-15)
    assert Windows(25, 39).sums(truth, truth, mask).shape == (1, 2)


def test_an_image_smaller_than_a_window_has_no_score():
    assert np.isnan(lmse(np.ones((19, 40)), np.ones((19, 40)), np.ones((19, 40), bool)))


def test_the_denominator_counts_every_window_not_the_last_of_each_row():
    """The outdented copy of the released code divides by the last window's energy of each row only."""
    truth = np.ones((20, 60))
    truth[:, 50:] = 0.01
    estimate = np.ones_like(truth)
    estimate[:, ::2] = 0
    assert lmse(truth, estimate, np.ones((20, 60), bool)) < 1
