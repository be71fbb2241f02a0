"""MCC and R² against scipy and scikit-learn, and where the answer is known."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from diorama.metrics.codes import halves
from diorama.metrics.mcc import mcc, r2


def drawn(count=300, latents=5):
    random = np.random.default_rng(4)
    factors = np.stack([random.integers(0, v, count) for v in (3, 6, 9)], axis=1)
    mixed = factors @ random.standard_normal((3, latents)) + random.standard_normal((count, latents))
    return np.sign(mixed) * np.abs(mixed) ** 1.7, factors


@pytest.mark.parametrize(("kind", "of"), [("linear", pearsonr), ("spearman", spearmanr)])
def test_mcc_is_the_best_of_all_assignments(kind, of):
    codes, factors = drawn()
    table = np.array([[abs(of(z, g)[0]) for g in factors.T] for z in codes.T])
    best = max(np.mean([table[latent, k] for k, latent in enumerate(order)]) for order in permutations(range(5), 3))
    found = mcc(codes, factors, kind)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert np.allclose(found.matrix, table)


def test_r2_is_that_of_linear_regression_on_the_other_half():
    linear_model = pytest.importorskip("sklearn.linear_model")
    codes, factors = drawn()
    fitted, judged = halves(len(codes), 0.5, np.random.default_rng(8))
    scores = [
        linear_model.LinearRegression().fit(codes[fitted], g[fitted]).score(codes[judged], g[judged]) for g in factors.T
    ]
    found = r2(codes, factors, np.random.default_rng(8))
    assert found.value == pytest.approx(np.mean(scores), abs=1e-9) and np.allclose(found.per_factor, scores)


def test_known_answers():
    g = np.array([[i, j] for i in range(6) for j in range(6)])
    turned = g @ (np.array([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5)
    assert mcc(turned, g).value == pytest.approx(2**-0.5)  # 45°: every latent has half of each factor
    assert r2(turned, g, np.random.default_rng(0)).value == pytest.approx(1.0)  # and yet nothing is lost
    assert mcc(g[:, :1], g).value == pytest.approx(0.5)  # one latent for two factors
    noise = np.random.default_rng(1).standard_normal((36, 2))
    assert r2(noise, g, np.random.default_rng(0)).value < 0.1
