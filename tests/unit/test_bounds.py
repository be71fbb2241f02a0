"""What a parameter may be is said beside its type: refused in one line, and printed by `diorama show`."""

import math

import pytest

from diorama.core.bounds import Within
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.describe import describe

REFUSED = [
    ("method", "rise(masks=1)", "masks=1: give a number at least 2"),
    ("method", "rise(keep=0.0)", "keep=0.0: give a number above 0, at most 1"),
    ("method", "rise(stop=0)", "stop=0: give a number above 0"),
    ("method", "tappen05(beta=1.0)", "beta=1.0: give a number at least 0.5, below 1"),
    ("method", "retinex_gray(threshold=-1)", "threshold=-1: give a number at least 0"),
    ("method", "ridge(alpha=0)", "alpha=0: give a number above 0"),
    ("method", "baseline(everything=noise)", "'noise' is not one of 'shading', 'reflectance', None"),
    ("protocol", "continuity(size=4)", "size=4: give a number above 0, at most 3.14"),
    ("protocol", "single_deletion(dilation=0)", "dilation=0: give a number at least 1"),
    ("protocol", "csm(runs=1)", "runs=1: give a number at least 2"),
    ("protocol", "csm(encoding=log)", "no parameter 'encoding'; it is called 'transform' now"),
]


@pytest.mark.parametrize(("kind", "spec", "says"), REFUSED, ids=[spec for _, spec, _ in REFUSED])
def test_a_value_out_of_bounds_is_one_line(kind, spec, says):
    with pytest.raises(InputError) as error:
        build(kind, spec)
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("spec", ["retinex_gray(threshold=0)", "retinex_gray(threshold=None)", "tappen05(beta=0.5)"])
def test_the_ends_that_belong_to_it_and_none_are_allowed(spec):
    assert build("method", spec).object


def test_nothing_is_within_bounds_that_is_not_a_number():
    assert not Within(0).allows(math.nan) and not Within(-math.inf, 1, above=True).allows(math.nan)


def test_show_prints_the_bounds():
    lines = list(describe("tappen05"))
    assert any("beta: float, at least 0.5, below 1 = 0.9" in line for line in lines)
