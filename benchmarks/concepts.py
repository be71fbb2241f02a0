"""CAVs and TCAV: 100 CAVs of 200 images at 65,536 dimensions against scikit-learn's SGD, TCAV end to end against captum.

Both peers are measured on PEER of the 100 CAVs and scaled, since all 100 take them many minutes; ours on all of them. Also
how often random concepts are called significant, by the permutation test and by the published t-test.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy.stats import false_discovery_control

from benchmarks._print import main, seconds
from diorama.adapt.classifying import adapt
from diorama.metrics.cav import draw_sets, fit_cavs, fit_gram, gram
from diorama.metrics.cav_trainers import TRAINERS
from diorama.metrics.tcav import permutation_test, scores_of, share, t_test
from diorama.protocols.concepts.tcav.activations import activations, layer_gradients

#: Images of the concept and of the others, test images, CAVs, CAVs that the peers are measured on.
IMAGES, TESTS, CAVS, PEER = 100, 32, 100, 4


def network() -> Any:
    """A convolution with 16×64×64 outputs, pooled, and a head of ten classes."""
    import torch

    torch.manual_seed(0)
    parts = [torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.AvgPool2d(8), torch.nn.Flatten()]
    net = torch.nn.Sequential(*parts, torch.nn.Linear(1024, 10))
    net.size = 64  # type: ignore[assignment]
    return net.eval()


def pictures() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise; the concept is a bright square somewhere in it."""
    random = np.random.default_rng(0)
    concept, others, tests = (random.random((n, 64, 64, 3), np.float32) for n in (IMAGES, IMAGES, TESTS))
    for image in concept:
        y, x = random.integers(0, 44, 2)
        image[y : y + 20, x : x + 20] *= 0.5
    return concept, others, tests


def cavs(rows: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    """Every trainer of ours with its Gram matrix and its directions, and scikit-learn's SGD on the same activations."""
    from sklearn.linear_model import SGDClassifier

    draws = draw_sets(IMAGES, IMAGES, CAVS, np.random.default_rng(1))
    figures = {}
    for trainer in TRAINERS:
        fit_cavs(trainer, rows[0][:, :64], rows[1][:, :64], draws[:2], np.random.default_rng(0))  # compiled before
        took = seconds(lambda t=trainer: fit_cavs(t, *rows, draws, np.random.default_rng(0)))  # type: ignore[misc]
        figures[f"{trainer}_seconds"] = took
    x, y = np.concatenate(rows), np.repeat([0, 1], IMAGES)
    train = [np.random.default_rng(i).permutation(len(y))[: round(0.67 * len(y))] for i in range(PEER)]

    def peer() -> None:
        for seed, index in enumerate(train):
            SGDClassifier(alpha=0.01, max_iter=1000, tol=1e-3, random_state=seed).fit(x[index], y[index])

    figures["sklearn_sgd_seconds"] = seconds(peer) * CAVS / PEER
    for trainer in TRAINERS:
        figures[f"{trainer}_speedup"] = figures["sklearn_sgd_seconds"] / figures[f"{trainer}_seconds"]
    return figures


def ours(net: Any, images: tuple[np.ndarray, np.ndarray, np.ndarray], trainer: str) -> np.ndarray:
    """TCAV of 100 CAVs from images to scores."""
    model = adapt(net, "network")
    concept, others = (activations(model, one, "0") for one in images[:2])
    draws = draw_sets(IMAGES, IMAGES, CAVS, np.random.default_rng(1))
    found = fit_cavs(trainer, concept, others, draws, np.random.default_rng(0))
    gradients = layer_gradients(model, images[2], np.zeros(TESTS), "0", lambda out, _: out[:, 0])
    assert found.directions is not None
    return share(found.directions @ gradients.T, 1)


def captum(net: Any, images: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """The same by captum, for PEER CAVs."""
    import torch
    from captum.concept import TCAV, Concept

    x = [torch.from_numpy(one.transpose(0, 3, 1, 2).copy()) for one in images]
    order = [torch.randperm(IMAGES, generator=torch.Generator().manual_seed(i)) for i in range(PEER)]
    sets = [Concept(0, "concept", list(x[0].split(32)))]
    sets += [Concept(i + 1, f"random{i}", list(x[1][o].split(32))) for i, o in enumerate(order)]
    with tempfile.TemporaryDirectory() as folder:
        tcav = TCAV(net, "0", save_path=folder)
        tcav.interpret(x[2], [[sets[0], one] for one in sets[1:]], target=0)


def false_positives(trainer: str, concepts: int = 600, runs: int = 5, permutations: int = 99) -> dict[str, float]:
    """How often random concepts are called significant: at p < 0.05, and with Benjamini–Hochberg over all of them.

    The permutation test is exact: of 100 random concepts 4 ± 2 have p < 0.05 with 99 relabellings, so more are tried.
    """
    found = np.array([_random_concept(trainer, seed, runs, permutations) for seed in range(concepts)])
    rates = {}
    for name, p in zip(("permutation", "t_test"), found.T, strict=True):
        rates[f"{name}_false_positives"] = float((p < 0.05).mean())
        rates[f"{name}_false_positives_bh"] = float((false_discovery_control(p) <= 0.05).mean())
    return rates


def _random_concept(trainer: str, seed: int, runs: int, permutations: int) -> tuple[float, float]:
    """p of both tests, for a concept of 30 images that are like the 90 others."""
    random = np.random.default_rng([seed, 8])
    mixing = random.normal(size=(24, 24))
    rows = (random.normal(size=(120, 24)) @ mixing).astype(np.float32)
    gradients = (random.normal(size=(40, 24)) + random.normal(size=24)).astype(np.float32)
    square, cross = gram(rows), gram(gradients, rows)
    draws = [(a, 30 + b) for a, b in draw_sets(30, 90, runs, random)]
    halves = [random.permutation(90) + 30 for _ in range(runs)]
    null = [(one[:30], one[30:60]) for one in halves]
    scores = [share(scores_of(fit_gram(trainer, square, d, random).coefficients, cross), 1) for d in (draws, null)]
    return permutation_test(trainer, square, cross, draws, 1, random, permutations).p, t_test(*scores)


def measure() -> dict[str, float]:
    """All figures."""
    net, images = network(), pictures()
    model = adapt(net, "network")
    figures = cavs((activations(model, images[0], "0"), activations(model, images[1], "0")))
    peer = seconds(lambda: captum(net, images)) * CAVS / PEER
    figures["captum_tcav_seconds"] = peer
    for trainer in ("hinge_sgd", "linear_svm"):
        figures[f"tcav_{trainer}_seconds"] = took = seconds(lambda t=trainer: ours(net, images, t))  # type: ignore[misc]
        figures[f"tcav_{trainer}_speedup"] = peer / took
    return {**figures, **false_positives("mean_difference")}


if __name__ == "__main__":
    main("concepts", measure, ("numpy", "scikit-learn", "captum", "torch"))
