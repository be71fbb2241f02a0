"""CAVs: each Gram-space trainer against its scikit-learn twin, draws, quality on held-out images, files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.metrics.cav import draw_sets, fit_cavs, fit_gram, gram, load_cavs, save_cavs, split
from diorama.metrics.cav_trainers import TRAINERS, Options, hinge_sgd

linear_model = pytest.importorskip("sklearn.linear_model")
svm = pytest.importorskip("sklearn.svm")
neighbors = pytest.importorskip("sklearn.neighbors")


class Centroids(neighbors.NearestCentroid):
    """The difference of the centroids as a direction."""

    def fit(self, x, y):
        super().fit(x, y)
        self.coef_ = self.centroids_[1] - self.centroids_[0]
        return self


TWINS = {
    "linear_svm": lambda: svm.SVC(kernel="linear", C=1.0, tol=1e-6),
    "logistic": lambda: linear_model.LogisticRegression(C=1.0, tol=1e-8, max_iter=5000),
    "ridge": lambda: linear_model.RidgeClassifier(alpha=1.0),
    "mean_difference": Centroids,
}
#: Images of the concept, others, dimensions: balanced, unbalanced, more images than dimensions.
SHAPES = [(40, 40, 2000), (40, 15, 800), (100, 60, 5), (12, 30, 30)]


def rows(p, m, d, seed=0):
    """Two clouds that overlap, far from the origin, so that the intercept matters."""
    random = np.random.default_rng(seed)
    apart = 0.2 if d > 100 else 0.8
    return (random.normal(size=(p, d)) + 3 + apart).astype(np.float32), (random.normal(size=(m, d)) + 3).astype(
        np.float32
    )


def cosine(a, b):
    a, b = np.ravel(a).astype(float), np.ravel(b).astype(float)
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("trainer", TWINS)
def test_exact_trainers_are_their_scikit_learn_twins(trainer, shape):
    positives, negatives = rows(*shape)
    everything = [(np.arange(len(positives)), np.arange(len(negatives)))]
    found = fit_cavs(trainer, positives, negatives, everything, np.random.default_rng(0), held_out=0)
    x = np.concatenate([positives, negatives]).astype(np.float64)
    twin = TWINS[trainer]().fit(x, np.repeat([0, 1], [len(positives), len(negatives)]) == 0)
    assert cosine(found.directions[0], twin.coef_) > 0.9999
    scores = found.scores(np.concatenate([positives, negatives]))[0]
    assert np.isnan(found.accuracy).all()
    if trainer != "mean_difference":
        assert np.allclose(scores, twin.decision_function(x), atol=1e-2 * np.abs(scores).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_hinge_sgd_makes_the_steps_of_scikit_learn(shape):
    positives, negatives = (one.astype(np.float64) for one in rows(*shape))
    x, y = np.concatenate([positives, negatives]), np.repeat([1.0, -1.0], [len(positives), len(negatives)])
    for state in (0, 5):
        twin = linear_model.SGDClassifier(alpha=0.01, max_iter=1000, tol=1e-3, random_state=state).fit(x, y)
        draws = np.random.RandomState(state)
        draws.randint(1, np.iinfo(np.int32).max)  # the data set's own seed comes first
        seed = draws.randint(np.iinfo(np.int32).max)
        a, b = hinge_sgd((x @ x.T)[None], y[None], Options(), np.array([seed]))
        assert cosine(a[0] @ x, twin.coef_) > 0.999999
        assert b[0] == pytest.approx(twin.intercept_[0], rel=1e-6)


def test_many_draws_are_each_what_one_alone_would_be():
    positives, negatives = rows(20, 50, 300)
    draws = draw_sets(20, 50, 70, np.random.default_rng(1), 15) + draw_sets(20, 50, 3, np.random.default_rng(2))
    for trainer in ("linear_svm", "logistic", "ridge", "mean_difference"):
        many = fit_cavs(trainer, positives, negatives, draws, np.random.default_rng(0), held_out=0)
        for i in (0, 69, 72):
            one = fit_cavs(trainer, positives, negatives, [draws[i]], np.random.default_rng(0), held_out=0)
            assert cosine(many.directions[i], one.directions[0]) > 0.999999


def test_directions_point_towards_the_concept_and_held_out_images_tell():
    random = np.random.default_rng(3)
    others = random.normal(size=(60, 40)).astype(np.float32)
    concept = random.normal(size=(60, 40)).astype(np.float32)
    same = concept.copy()
    concept[:, 0] += 6
    draws = draw_sets(60, 60, 8, random)
    for trainer in TRAINERS:
        found = fit_cavs(trainer, concept, others, draws, np.random.default_rng(0))
        assert found.directions.dtype == np.float32 and (found.directions.argmax(axis=1) == 0).all()
        assert found.accuracy.mean() > 0.9 and found.auc.mean() > 0.95
        chance = fit_cavs(trainer, same, others, draws, np.random.default_rng(0))
        assert 0.3 < chance.accuracy.mean() < 0.7 and 0.3 < chance.auc.mean() < 0.7


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["linear_svm", "logistic", "ridge", "mean_difference"]))
def test_moving_the_origin_changes_nothing(seed, trainer):
    positives, negatives = rows(10, 12, 30, seed)
    draw = [(np.arange(10), np.arange(12))]
    shift = np.random.default_rng(seed).normal(size=30).astype(np.float32) * 5
    near, far = (
        fit_cavs(trainer, positives + s, negatives + s, draw, np.random.default_rng(0), held_out=0) for s in (0, shift)
    )
    assert cosine(near.directions, far.directions) > 0.9999
    assert np.allclose(near.scores(positives), far.scores(positives + shift), atol=2e-2)


def test_gram_in_chunks_equals_the_product_and_reads_memory_maps(tmp_path, monkeypatch):
    monkeypatch.setattr("diorama.metrics.cav.COLUMNS", 7)
    x, y = rows(6, 9, 50)
    mapped = np.memmap(tmp_path / "x", np.float32, "w+", shape=x.shape)
    mapped[:] = x
    origin = y.mean(axis=0)
    assert np.allclose(gram(mapped, y, origin), (x - origin) @ (y - origin).T, rtol=1e-4, atol=1e-4)
    assert np.allclose(gram(mapped), x @ x.T, rtol=1e-5)


@given(st.integers(2, 60), st.floats(0.01, 0.99))
def test_split_keeps_every_image_once_and_some_on_each_side(count, share):
    kept, held = split(np.arange(count) + 5, share, np.random.default_rng(0))
    assert sorted([*kept, *held]) == list(range(5, count + 5)) and len(kept) and len(held)


def test_saved_cavs_serve_new_images(tmp_path):
    positives, negatives = rows(20, 20, 50)
    found = fit_cavs(
        "ridge", positives, negatives, draw_sets(20, 20, 3, np.random.default_rng(0)), np.random.default_rng(0)
    )
    save_cavs(tmp_path / "cavs.npz", found, {"layer": "block4"})
    again, meta = load_cavs(tmp_path / "cavs.npz")
    assert meta == {"layer": "block4"}
    new = rows(5, 5, 50, seed=9)[0]
    assert np.array_equal(again.scores(new), found.scores(new))
    assert np.allclose(again.directions, found.directions)


def test_what_has_no_direction_is_said():
    flat = np.ones((5, 3), np.float32)
    with pytest.raises(ValueError, match="constant over the images"):
        fit_cavs("ridge", flat, flat, [(np.arange(5), np.arange(5))], np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"no CAV trainer 'svm'; there are: hinge_sgd"):
        fit_gram("svm", np.eye(4), [(np.arange(2), np.arange(2, 4))], np.random.default_rng(0))
    with pytest.raises(ValueError, match="sets of 9 images: there are 5 of the concept"):
        draw_sets(5, 20, 1, np.random.default_rng(0), 9)
    bare = fit_gram("ridge", np.eye(6), [(np.arange(3), np.arange(3, 6))], np.random.default_rng(0))
    with pytest.raises(ValueError, match="have no directions"):
        bare.scores(np.eye(6))
    with pytest.raises(ValueError, match="no directions to save"):
        save_cavs("nowhere.npz", bare, {})
