"""Our extra trees against scikit-learn's: the same draws, so the same importances and predictions."""

import importlib.util

import numpy as np
import pytest

from diorama.core.scene import rng
from diorama.metrics.dci import dci
from diorama.metrics.extra_trees import extra_trees

ensemble = pytest.importorskip("sklearn.ensemble")


def planted(rows: int, classes: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    random = rng(rows, kind)
    labels = random.integers(0, classes, rows)
    codes = random.normal(size=(rows, 6)) + 0.5 * labels[:, None] * np.array([1, 0.5, 0, 0, 0, 0])
    if kind == "constant latents":
        codes[:, [0, 3]] = 1.5
    if kind == "coarse latents":  # constant in small nodes only: found there, known to their children
        codes[:, 1:4] = codes[:, 1:4].round()
    if kind == "latents alike":
        codes[:, 1] = codes[:, 0]
    return codes, labels * 7 - 3


@pytest.mark.parametrize("kind", ["plain", "constant latents", "coarse latents", "latents alike"])
@pytest.mark.parametrize(("rows", "classes", "leaf"), [(400, 3, 5), (400, 40, 1), (30, 2, 5), (9, 2, 5), (50, 1, 5)])
def test_trees_are_those_of_scikit_learn(kind: str, rows: int, classes: int, leaf: int) -> None:
    codes, labels = planted(rows, classes, kind)
    asked = planted(100, classes, kind)[0]
    theirs = ensemble.ExtraTreesClassifier(30, max_features=None, min_samples_leaf=leaf, random_state=rows).fit(
        codes, labels
    )
    ours = extra_trees(codes, labels, asked, rows, trees=30, leaf=leaf)
    np.testing.assert_allclose(ours.importance, theirs.feature_importances_, atol=1e-12)
    np.testing.assert_array_equal(ours.predicted, theirs.predict(asked))


def test_threads_change_nothing() -> None:
    codes, labels = planted(300, 5, "plain")
    one, three = (extra_trees(codes, labels, codes, 1, jobs=jobs) for jobs in (1, 3))
    assert one.importance.tolist() == three.importance.tolist()
    np.testing.assert_array_equal(one.predicted, three.predicted)


def test_dci_is_the_same_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    random = rng(4, "dci")
    factors = np.stack([random.integers(0, many, 200) for many in (3, 5)], axis=1)
    codes = factors @ random.normal(size=(2, 4)) + 0.2 * random.normal(size=(200, 4))
    ours = dci(codes, factors, rng(1)).values
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert dci(codes, factors, rng(1)).values == pytest.approx(ours, abs=1e-12)
