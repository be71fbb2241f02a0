"""Disentanglement, completeness, informativeness from feature importances (Eastwood & Williams 2018).

A classifier per factor gives importances P (latents, factors). With H_K the entropy to base K,

    D = Σ_l ρ_l (1 − H_F(P_l· / ΣP_l·)),  ρ_l = Σ_i P_li / ΣP        C = Σ_i ρ_i (1 − H_M(P_·i / ΣP_·i)) likewise

and I is the accuracy on rows held out. The value depends on the estimator: codes = factors give D = 1 with extra trees
and less with a random forest, so the estimator must be named with every number. disentanglement_lib uses gradient
boosting, one tree per class and round, which takes minutes where extra trees take seconds.
"""

import importlib.util
from typing import Any, Literal

import numpy as np

from diorama.metrics.codes import Measured, Rule, halves, sample

Estimator = Literal["extra_trees", "random_forest", "gradient_boosting"]
#: Scikit-learn's name and options; where numba is installed extra trees are grown by `extra_trees`, which gives the same.
_CLASSES: dict[str, tuple[str, dict[str, Any]]] = {
    "extra_trees": ("ExtraTreesClassifier", {"n_estimators": 100, "max_features": None, "min_samples_leaf": 5}),
    "random_forest": ("RandomForestClassifier", {"n_estimators": 100}),
    "gradient_boosting": ("GradientBoostingClassifier", {"n_estimators": 100, "max_depth": 3}),
}


def dci(
    codes: np.ndarray,
    factors: np.ndarray,
    rng: np.random.Generator,
    rule: Rule = "varies",
    estimator: Estimator = "extra_trees",
    share: float = 2 / 3,
    jobs: int = 1,
    informative: bool = True,
) -> Measured:
    """D, C and I; the matrix is P, each column with sum 1; per factor: its completeness.

    `jobs` threads grow the trees of a forest; the result does not depend on them. Without `informative` nothing is
    predicted and I is left out; D and C are the same.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)] * 12)
    >>> {name: round(value, 3) for name, value in dci(g, g, np.random.default_rng(0)).values.items()}
    {'dci_d': 1.0, 'dci_c': 1.0, 'dci_i': 1.0}
    """
    part = sample(codes, factors, rule)
    if part.empty:
        return part.nothing("dci_d", "dci_c", "dci_i")
    train, test = halves(len(part.codes), share, rng)
    columns, right = [], []
    for labels in part.labels.T:
        seed, judged = int(rng.integers(2**31)), part.codes[test if informative else test[:0]]
        importances, predicted = _learn(estimator, seed, jobs, part.codes[train], labels[train], judged)
        columns.append(importances)
        right.append(float(np.mean(predicted == labels[test])) if informative else np.nan)
    importance = np.abs(np.stack(columns, axis=1))
    complete = _concentration(importance)
    values = {
        "dci_d": _weighted(_concentration(importance.T), importance.sum(axis=1)),
        "dci_c": _weighted(complete, importance.sum(axis=0)),
    }
    if informative:
        values["dci_i"] = float(np.mean(right))
    return part.measured(values, importance, complete)


def _learn(
    estimator: str, seed: int, jobs: int, codes: np.ndarray, labels: np.ndarray, judged: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Importances of the latents, and the labels predicted for the codes `judged`."""
    if estimator not in _CLASSES:
        raise ValueError(f"estimator {estimator!r} is not one of {', '.join(_CLASSES)}")
    name, options = _CLASSES[estimator]
    if estimator == "extra_trees" and importlib.util.find_spec("numba"):
        from diorama.metrics.extra_trees import extra_trees

        return extra_trees(codes, labels, judged, seed, options["n_estimators"], options["min_samples_leaf"], jobs)
    try:
        from sklearn import ensemble
    except ImportError as error:
        raise ImportError("DCI needs scikit-learn: pip install 'diorama[represent]'") from error
    threads = {} if estimator == "gradient_boosting" else {"n_jobs": jobs}  # boosting goes tree by tree
    forest = getattr(ensemble, name)(random_state=seed, **options, **threads).fit(codes, labels)
    return forest.feature_importances_, forest.predict(judged) if len(judged) else labels[:0]


def _concentration(columns: np.ndarray) -> np.ndarray:
    """1 − entropy of every column, with their length as the base; NaN for a length of 1, 0 for a column of zeros."""
    total = columns.sum(axis=0)
    if len(columns) < 2:
        return np.full(columns.shape[1], np.nan)
    p = columns / np.where(total > 0, total, 1)
    logs = np.log(np.where(p > 0, p, 1)) / np.log(len(columns))
    return np.where(total > 0, 1 + (p * logs).sum(axis=0), 0.0)


def _weighted(values: np.ndarray, weights: np.ndarray) -> float:
    return float(np.average(values, weights=weights)) if weights.sum() > 0 else float("nan")
