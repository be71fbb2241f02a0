"""Masked Poisson reconstruction against dense least squares, with holes, several components and single pixels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from diorama.solvers import poisson as solver
from diorama.solvers.poisson import Edges, Poisson, poisson
from tests.reference.retinex_loop import pairs, reconstruct

masks = arrays.arrays(bool, st.tuples(st.integers(1, 9), st.integers(1, 9))).filter(lambda m: m.any())


@settings(max_examples=60, deadline=None)
@given(masks, st.integers(0, 2**32 - 1))
def test_equals_dense_least_squares(mask, seed):
    system = Poisson(mask)
    gradient = np.random.default_rng(seed).normal(size=(len(system.edges.first), 2))
    fast = system.solve(gradient)
    index = {at: i for i, at in enumerate(map(tuple, np.argwhere(mask).tolist()))}
    edges = {(a, b): i for i, (a, b) in enumerate(zip(system.edges.first, system.edges.second, strict=True))}
    for column in range(2):
        field = {(a, b): gradient[edges[index[a], index[b]], column] for a, b in pairs(mask)}
        slow = reconstruct(mask, field) if field else np.zeros(mask.shape)
        assert np.allclose(fast[:, column], slow[mask], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(masks, st.integers(0, 2**32 - 1))
def test_recovers_an_image_from_its_own_differences(mask, seed):
    image = np.random.default_rng(seed).normal(size=mask.shape)
    system = Poisson(mask)
    found = system.solve(Edges.of(mask).differences(image)[:, None])
    again = np.zeros(mask.shape)
    again[mask] = found[:, 0]
    assert np.allclose(system.edges.differences(again), system.edges.differences(image), atol=1e-9)


def test_a_hole_and_two_components_each_have_mean_zero():
    mask = np.ones((9, 9), bool)
    mask[2:4, 2:4] = False  # a hole
    mask[6] = False  # cuts it in two
    system = Poisson(mask)
    assert system.components == 2
    x = np.zeros(mask.shape)
    x[mask] = system.solve(np.random.default_rng(0).normal(size=(len(system.edges.first), 1)))[:, 0]
    assert x[:6][mask[:6]].mean() == pytest.approx(0, abs=1e-12)
    assert x[7:].mean() == pytest.approx(0, abs=1e-12)


def test_an_empty_mask_is_refused():
    with pytest.raises(ValueError, match="empty"):
        poisson(np.zeros((3, 3), bool))


def test_one_factorisation_serves_a_mask_until_others_push_it_out(monkeypatch):
    made = []
    real = solver.factorise
    monkeypatch.setattr(solver, "factorise", lambda matrix: made.append(1) or real(matrix))
    masks = [np.ones((4, n), bool) for n in (31, 32, 33)]
    for _ in range(3):
        poisson(masks[0])
    assert len(made) == 1
    for mask in masks:
        poisson(mask)
    assert len(made) == 3
