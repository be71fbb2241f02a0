"""Specs: what is read, what is refused, and that nothing is ever evaluated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diorama.core.errors import InputError
from diorama.core.spec import Spec, parse

literals = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=5,
)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True), literals, max_size=4))
def test_any_literals_survive_the_round_trip(params):
    assert parse(str(Spec("thing", params))) == Spec("thing", params)


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("a", {}),
        ("a()", {}),
        ("a(k=1,)", {"k": 1}),
        ("a(root=../shared/data)", {"root": "../shared/data"}),
        ("a(root=~/x.y, n=-2e-3)", {"root": "~/x.y", "n": -2e-3}),
        ("a(source=birds(n=3, k='x,y'), grid=2)", {"source": "birds(n=3, k='x,y')", "grid": 2}),
        (r"a(k='it\'s, \"so\"', n=1)", {"k": 'it\'s, "so"', "n": 1}),
        ("a(k=__import__)", {"k": "__import__"}),
    ],
)
def test_values(text, params):
    assert parse(text).params == params


@pytest.mark.parametrize(
    "text", ["./mine.py:Mine", "pkg.mod:Name", "decompose/random", "/abs/dir-1/f.py:X", "timm:resnet18.a1"]
)
def test_names(text):
    assert parse(text + "(k=2)") == Spec(text, {"k": 2})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot read component"),
        ("a b", "cannot read component"),
        ("a(k=1", "closing parenthesis"),
        ("a(1)", "name=value"),
        ("a(k=1, k=2)", "given twice"),
        ("a(k='x)", "never closed"),
        ("a(k=[1)", "never closed"),
        ("a(k=1])", "unbalanced"),
        ("a(k=)", "cannot read the value"),
    ],
)
def test_bad_specs_say_why(text, says):
    with pytest.raises(InputError, match=says):
        parse(text)


def test_code_is_a_string_never_a_call():
    assert parse("a(k=open('x').read())").params == {"k": "open('x').read()"}
