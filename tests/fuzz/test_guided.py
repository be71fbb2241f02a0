"""The readers that atheris is let loose on, with good inputs and a few thousand changed ones, without atheris."""

import pytest
from hypothesis import given, settings

from tests.fuzz import guided
from tests.fuzz.inputs import damaged


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(guided, "PLACE", tmp_path)


@pytest.mark.parametrize("seed", guided.SEEDS)
def test_a_good_input_is_read_to_its_end(seed):
    guided.READERS[seed[0]](seed[1:])


@pytest.mark.parametrize("seed", guided.SEEDS)
def test_a_damaged_input_is_one_of_the_errors_that_become_a_line(seed):
    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(damaged(seed[1:]))
    def each(data):
        guided.one(seed[:1] + data)

    each()
