"""Conjugate gradients with a cosine preconditioner against the direct solve; when which is chosen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from diorama.solvers import dct_cg
from diorama.solvers.dct_cg import DctCg, reconstruction
from diorama.solvers.poisson import Poisson

masks = arrays.arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12))).filter(lambda m: m.any())


def blob(height=90, width=110):
    """An irregular mask with a hole and an island."""
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    radius, angle = np.hypot(y, x), np.arctan2(y, x)
    mask = (radius < 0.7 + 0.15 * np.sin(5 * angle)) & (np.hypot(y - 0.2, x) > 0.15)
    mask[:4, :4] = True
    return mask


@settings(max_examples=60, deadline=None)
@given(masks, st.integers(0, 2**32 - 1))
def test_equals_the_direct_solve_on_any_mask(mask, seed):
    direct, iterated = Poisson(mask), DctCg(mask)
    gradient = np.random.default_rng(seed).normal(size=(len(direct.edges.first), 2))
    assert np.abs(iterated.solve(gradient) - direct.solve(gradient)).max() < 1e-6
    assert iterated.components == direct.components


def test_equals_the_direct_solve_on_an_irregular_mask_in_few_steps():
    mask = blob()
    direct, iterated = Poisson(mask), DctCg(mask)
    gradient = np.random.default_rng(0).normal(size=(len(direct.edges.first), 3))
    assert np.abs(iterated.solve(gradient) - direct.solve(gradient)).max() < 1e-6
    assert iterated.steps < 60


def test_a_full_rectangle_takes_one_step():
    mask = np.zeros((40, 50), bool)
    mask[3:34, 5:42] = True
    iterated = DctCg(mask)
    iterated.solve(np.random.default_rng(0).normal(size=(len(iterated.edges.first), 1)))
    assert iterated.steps == 1


def test_no_gradient_gives_a_constant_and_an_empty_mask_is_refused():
    assert not DctCg(np.ones((3, 4), bool)).solve(np.zeros((17, 1))).any()
    with pytest.raises(ValueError, match="empty"):
        DctCg(np.zeros((3, 3), bool))


def test_the_choice_depends_on_sizes_and_either_way_gives_the_same(monkeypatch):
    mask = blob()
    gradient = np.random.default_rng(0).normal(size=(len(Poisson(mask).edges.first), 1))
    factorised = reconstruction(mask, gradient)
    used = []
    monkeypatch.setattr(dct_cg, "SMALL", 100)
    monkeypatch.setattr(dct_cg.DctCg, "iterate", lambda self, g, real=DctCg.iterate: used.append(1) or real(self, g))
    assert np.abs(reconstruction(mask, gradient) - factorised).max() < 1e-6
    assert used == [1]


def test_slow_convergence_falls_back_to_the_factorisation(monkeypatch):
    mask = blob()
    gradient = np.random.default_rng(0).normal(size=(len(Poisson(mask).edges.first), 1))
    with pytest.raises(RuntimeError, match="3 steps"):
        DctCg(mask, limit=3).solve(gradient)
    monkeypatch.setattr(dct_cg, "SMALL", 100)
    monkeypatch.setattr(dct_cg, "DctCg", lambda mask: DctCg(mask, limit=3))
    assert np.array_equal(reconstruction(mask, gradient), Poisson(mask).solve(gradient))


def test_equals_the_direct_solve_on_a_real_mask(mit_root):
    from diorama.worlds.recorded.mit_intrinsic import MitIntrinsic

    world = MitIntrinsic(str(mit_root), objects=("frog2",))
    frame = world.render([world.scene(0)[1]])[0]
    direct, iterated = Poisson(frame.mask), DctCg(frame.mask)
    gradient = direct.edges.differences(np.log(frame.image.mean(axis=2) + 0.01))[:, None]
    gradient = np.where(np.abs(gradient) > 0.1, gradient, 0)
    assert np.abs(iterated.solve(gradient) - direct.solve(gradient)).max() < 1e-6


def test_equal_fields_are_solved_once_and_all_are_given():
    from diorama.solvers.poisson import Poisson

    random = np.random.default_rng(4)
    system = Poisson(random.random((12, 9)) < 0.8)
    a, b = random.normal(size=(2, len(system.edges.first)))
    fields = np.stack([a, a, b, a, 0 * b, 0 * b], axis=1)
    each = np.concatenate([system.solve(field[:, None]) for field in fields.T], axis=1)
    assert np.allclose(system.solve(fields), each, atol=1e-12) and np.abs(each[:, 0] - each[:, 2]).max() > 0.1
