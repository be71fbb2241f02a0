"""The confusion matrix of evidence: a slow reference, Quantus' Focus, analytic cases, and properties of the rates."""

import importlib
import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from diorama.metrics.confusion import RATES, cell_masses, evidence, rates
from tests.reference.confusion_loop import confusion_loop, rates_loop

# the module has the name of the function that the package shows
confusion = importlib.import_module("diorama.metrics.confusion")

HALF = np.array([True, False, False, True])


def all_rates(heat, target, grid):
    return rates(evidence(heat, target, grid))


def maps(n, side, seed=0):
    """Signed float64 maps with a positive mass of well over 100."""
    return np.random.default_rng(seed).standard_normal((n, side, side)) * 3


@pytest.mark.parametrize(("side", "grid", "own"), [(32, 2, 2), (32, 2, 1), (33, 2, 3), (30, 3, 4), (31, 4, 5)])
def test_against_the_slow_reference(side, grid, own):
    labels = np.random.default_rng(grid).permutation([0] * own + [1] * (grid**2 - own))
    for heat in maps(4, side, own):
        slow = confusion_loop(heat, labels, 0, grid)
        fast = evidence(heat, labels == 0, grid)
        np.testing.assert_allclose(fast, slow, rtol=1e-12)
        for name, value in rates_loop(*slow).items():
            assert rates(fast)[name] == pytest.approx(value, abs=1e-9), name


def test_the_compiled_loop_and_numpy_agree(monkeypatch):
    pytest.importorskip("numba", reason="numba is not installed: there is no compiled loop to compare")
    stack = maps(confusion.MANY, 45).astype(np.float32)
    compiled = np.stack(cell_masses(stack, 3))
    monkeypatch.setattr(confusion, "compiled", lambda: None)
    np.testing.assert_allclose(compiled, np.stack(cell_masses(stack, 3)), rtol=1e-12)
    single = np.stack([np.stack(cell_masses(one, 3)) for one in stack], axis=1)
    np.testing.assert_allclose(compiled, single, rtol=1e-12)


def test_sums_are_in_double_precision():
    heat = np.full((2048, 2048), 1e-4, np.float32)  # a running float32 sum of so many is off in the fourth digit
    positive, negative = cell_masses(heat, 2)
    np.testing.assert_allclose(positive, 1024**2 * float(np.float32(1e-4)), rtol=1e-12)
    assert not negative.any()


def test_evidence_of_many_maps_with_their_own_targets():
    stack, own = maps(6, 16), np.random.default_rng(1).permuted(np.tile(HALF, (6, 1)), axis=1)
    together = evidence(stack, own, 2)
    assert together.shape == (6, 4)
    np.testing.assert_allclose(together, [evidence(m, o, 2) for m, o in zip(stack, own, strict=True)], rtol=1e-12)


def oracle(side=16, own=HALF, grid=2):
    return np.kron(np.where(own, 1.0, -1.0).reshape(grid, grid), np.ones((side // grid, side // grid)))


def test_the_oracle_is_right_and_its_negative_wrong_in_everything():
    for own in (HALF, np.array([True, False, False, False])):
        right, wrong = all_rates(oracle(own=own), own, 2), all_rates(-oracle(own=own), own, 2)
        assert {name: float(v) for name, v in right.items()} == dict.fromkeys(RATES, 1.0)
        assert {name: float(v) for name, v in wrong.items()} == {**dict.fromkeys(RATES, 0.0), "mcc": -1.0}


def test_a_constant_positive_map_has_the_share_of_target_cells_as_precision():
    heat = np.ones((24, 24))
    assert all_rates(heat, HALF, 2)["precision"] == 0.5
    assert all_rates(heat, np.arange(9) < 4, 3)["precision"] == pytest.approx(4 / 9)
    assert all_rates(heat, HALF, 2)["accuracy"] == all_rates(heat, HALF, 2)["precision"]


def test_random_signed_maps_are_at_one_half():
    found = all_rates(maps(400, 24), HALF, 2)
    for name in ("precision", "accuracy", "recall", "f1"):
        low, high = np.quantile(found[name].mean() + np.array([-1, 1]) * 1.96 * found[name].std() / 20, [0, 1])
        assert low < 0.5 < high, name


@pytest.mark.parametrize(
    ("heat", "missing"),
    [
        (np.zeros((8, 8)), set(RATES)),
        (-np.ones((8, 8)), {"precision", "mcc"}),
        (np.ones((8, 8)), {"npv", "mcc"}),
        (-np.maximum(-oracle(8), 0), {"precision", "f1", "recall", "balanced_accuracy", "mcc"}),
    ],
)
def test_what_does_not_exist_is_nan(heat, missing):
    assert {name for name, value in all_rates(heat, HALF, 2).items() if np.isnan(value)} == missing


@settings(max_examples=150, deadline=None)
@given(
    arrays(np.float64, (8, 8), elements=st.floats(-1e3, 1e3, allow_subnormal=False)),
    st.integers(1, 15),
    st.floats(1e-3, 1e3),
)
def test_properties_of_the_rates(heat, chosen, scale):
    heat = np.where(np.abs(heat) < 1e-6, 0, heat)
    own = np.array([bool(chosen >> i & 1) for i in range(4)])
    found, scaled = all_rates(heat, own, 2), all_rates(heat * scale, own, 2)
    turned = all_rates(-heat, own, 2)
    for name in RATES:
        value = float(found[name])
        assert np.isnan(value) or (-1 if name == "mcc" else 0) - 1e-12 <= value <= 1 + 1e-12
        assert float(scaled[name]) == pytest.approx(value, abs=1e-9, nan_ok=True)
    if heat.any():
        assert float(found["accuracy"] + turned["accuracy"]) == pytest.approx(1)
    parts = evidence(heat, own, 2)
    assert parts.sum() == pytest.approx(np.abs(heat).sum()) and (parts >= 0).all()
    # other cells as targets: for becomes against, and the sides change places
    swapped = evidence(heat, ~own, 2)
    np.testing.assert_allclose(swapped, parts[[1, 0, 3, 2]], rtol=1e-12)
    means = [float(found[name]) for name in ("precision", "recall")]
    if not np.isnan([*means, found["f1"]]).any() and all(means):
        assert float(found["f1"]) == pytest.approx(2 / (1 / means[0] + 1 / means[1]), rel=1e-6)


def quantus_focus():
    """Quantus' Focus, or a skip that says why not."""
    folder = os.environ.get("DIORAMA_QUANTUS")
    if folder and folder not in sys.path:
        sys.path.append(folder)
    if importlib.util.find_spec("quantus") is None or importlib.util.find_spec("pandas") is None:
        pytest.skip("quantus is not installed (pip install --target DIR --no-deps quantus pandas; DIORAMA_QUANTUS=DIR)")
    from diorama.adapt.torchvision_ops import make_importable

    make_importable()
    return importlib.import_module("quantus.metrics.localisation.focus").Focus


@pytest.mark.filterwarnings("ignore")
def test_precision_is_the_focus_of_quantus():
    focus = quantus_focus()(disable_warnings=True)
    own = np.random.default_rng(2).permuted(np.tile([1, 1, 0, 0], (12, 1)), axis=1)
    stack = maps(12, 64)
    positive, _ = cell_masses(stack, 2)
    assert positive.sum(axis=1).min() >= 100  # Quantus adds 1e-9 to the denominator
    theirs = focus.evaluate_batch(a_batch=stack[:, None], c_batch=own)
    np.testing.assert_allclose(all_rates(stack, own, 2)["precision"], theirs, atol=1e-9, rtol=0)
