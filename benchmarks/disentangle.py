"""Disentanglement scores on 10,000 codes of 10 latents and 5 factors: how long, and how much faster than plain loops.

References are shaped like disentanglement_lib: IRS by masks and percentiles for every latent, factor and value; the farthest
value by search; DCI by gradient boosting, measured on fewer rows and one factor and scaled up by rows and classes, because
it would take minutes. Deterministic results are compared with the fast ones in the same run. The trees of DCI and the nulls
and intervals are shared between as many threads as there are cores; `*_cpu_s` are the seconds of all of them.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy is imported

import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._print import main
from diorama.core.scene import rng
from diorama.metrics import chance
from diorama.metrics.beta_vae import beta_vae_score
from diorama.metrics.cg import cg, farthest
from diorama.metrics.codes import Measured
from diorama.metrics.dci import dci
from diorama.metrics.factor_vae import factor_vae_score
from diorama.metrics.infomec import infomec
from diorama.metrics.irs import irs
from diorama.metrics.mig import mig
from diorama.metrics.modularity import explicitness, modularity
from diorama.metrics.sap import sap
from diorama.metrics.uc import top, uc, uc_published

N, VALUES, LATENTS = 10_000, (3, 6, 40, 32, 32), 10
#: Permutations and bootstrap samples: many of cheap scores, few of those that train something.
MANY, FEW = 20, 5

#: Threads for the trees of DCI, and for nulls and intervals.
THREADS = os.cpu_count() or 1

Score = Callable[[np.ndarray, np.ndarray], Measured]
Suite = dict[str, tuple[int, Score]]


def data() -> tuple[np.ndarray, np.ndarray]:
    """Codes that mix five factors of dSprites' sizes with noise."""
    random = rng(0, "bench disentangle")
    g = np.stack([random.integers(0, v, N) for v in VALUES], axis=1)
    unit = g / (np.array(VALUES) - 1)
    return unit @ random.normal(size=(5, LATENTS)) + 0.3 * random.normal(size=(N, LATENTS)), g


def suite(jobs: int = 1) -> Suite:
    """Every score, and how many permutations it gets."""
    return {
        "irs": (MANY, irs),
        "uc": (MANY, uc),
        "uc_published": (MANY, lambda z, g: uc_published(z, g, 2)),
        "mig": (MANY, mig),
        "modularity": (MANY, modularity),
        "explicitness": (FEW, lambda z, g: explicitness(z, g, rng(1))),
        "sap": (FEW, lambda z, g: sap(z, g, rng(1))),
        "beta_vae": (FEW, lambda z, g: beta_vae_score(z, g, rng(1))),
        "factor_vae": (FEW, lambda z, g: factor_vae_score(z, g, rng(1))),
        "infomec": (FEW, infomec),
        "dci": (FEW, lambda z, g: dci(z, g, rng(1), jobs=jobs)),
    }


def timed(call: Callable[[], object]) -> tuple[float, float, object]:
    """Seconds of wall clock and of CPU, and what the call gave."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = call()
    return time.perf_counter() - wall, time.process_time() - cpu, found


def loop_irs(codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """R by loops over latents, factors and values."""
    matrix = np.zeros((codes.shape[1], labels.shape[1]))
    for latent, z in enumerate(codes.T):
        reach = np.max(np.abs(z - np.mean(z)))
        for i, column in enumerate(labels.T):
            found = []
            for v in np.unique(column):
                group = z[column == v]
                found.append(np.percentile(np.abs(group - np.mean(group)), 99))
            matrix[latent, i] = 1 - np.mean(found) / reach
    return matrix


def library_irs(codes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """R as disentanglement_lib has it: loops over factors and values, all latents at once."""
    reach = np.max(np.abs(codes - codes.mean(axis=0)), axis=0)
    columns = []
    for column in labels.T:
        groups = [codes[column == v] for v in np.unique(column)]
        columns.append(np.mean([np.percentile(np.abs(g - g.mean(axis=0)), 99, axis=0) for g in groups], axis=0) / reach)
    return 1 - np.stack(columns, axis=1)


def search_farthest(codes: np.ndarray) -> np.ndarray:
    """The released search, entry by entry."""
    found = np.empty_like(codes)
    for m, z in enumerate(codes.T):
        for n in range(len(z)):
            found[n, m] = z[np.argmax(np.abs(z - z[n]))]
    return found


def boosted(codes: np.ndarray, labels: np.ndarray) -> float:
    """CPU seconds of gradient boosting on one factor."""
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(n_estimators=100, max_depth=3, random_state=0)
    return timed(lambda: model.fit(codes, labels))[1]


def decodes() -> float:
    """How many codes CG decodes per code and factor arrangement, over the allowed (1 + 2F)."""
    random, count = rng(2, "cg"), [0]
    z, g = random.normal(size=(200, LATENTS)), np.stack([random.integers(0, v, 200) for v in VALUES], axis=1)

    def judge(codes: np.ndarray) -> list[np.ndarray]:
        count[0] += len(codes)
        return [np.full((len(codes), v), 1 / v) for v in VALUES]

    cg(judge, z, g, top(random.random((LATENTS, 5)), 2))
    return count[0] / (200 * (1 + 2 * len(VALUES)))


def measure() -> dict[str, float]:
    """Every figure."""
    codes, factors = data()
    irs(codes, factors), mig(codes, factors)  # imports and caches
    figures: dict[str, float] = {}
    values: dict[str, float] = {}
    for name, (_, score) in suite(THREADS).items():
        wall, cpu, found = timed(lambda score=score: score(codes, factors))  # type: ignore[misc]
        figures |= {f"{name}_s": wall, f"{name}_cpu_s": cpu}
        values[name] = found.value  # type: ignore[attr-defined]
    figures["suite_s"] = sum(v for k, v in figures.items() if k.endswith("_s") and not k.endswith("_cpu_s"))
    figures["suite_cpu_s"] = sum(v for k, v in figures.items() if k.endswith("_cpu_s"))
    wall, cpu, _ = timed(lambda: nulls_and_intervals(codes, factors, values))
    figures |= {"nulls_and_intervals_s": wall, "nulls_and_intervals_cpu_s": cpu}
    return figures | against_loops(codes, factors) | against_boosting(codes, factors, figures["dci_cpu_s"])


def nulls_and_intervals(codes: np.ndarray, factors: np.ndarray, values: dict[str, float]) -> None:
    """Both of every score, whose value on all rows is known; of InfoMEC and DCI the first value, as in their protocols.

    Threads take a null or an interval each, the longest first, so that they end together.
    """
    asked = suite() | {"infomec": (FEW, lambda z, g: infomec(z, g, explicit=False))}
    asked |= {"dci": (FEW, lambda z, g: dci(z, g, rng(1), informative=False))}
    with ThreadPoolExecutor(THREADS) as pool:
        waiting: list[Future[Any]] = []
        for name, (draws, score) in reversed(asked.items()):

            def value(z: np.ndarray, g: np.ndarray, score: Score = score) -> float:
                return score(z, g).value

            waiting.append(pool.submit(chance.null, value, codes, factors, rng(3), draws))
            waiting.append(pool.submit(chance.interval, value, codes, factors, rng(4), draws, 1, values[name]))
        for one in waiting:
            one.result()


def against_loops(codes: np.ndarray, factors: np.ndarray) -> dict[str, float]:
    """IRS and the farthest value; results are compared."""
    fast = min(timed(lambda: irs(codes, factors, bins=None))[1] for _ in range(5))
    _, slow, matrix = timed(lambda: loop_irs(codes, factors))
    _, library, other = timed(lambda: library_irs(codes, factors))
    ours = irs(codes, factors, bins=None).matrix
    quick = min(timed(lambda: farthest(codes))[1] for _ in range(20))
    part = codes[:2000]  # the search is quadratic: a fifth of the rows costs a twenty-fifth
    _, search, found = timed(lambda: search_farthest(part))
    return {
        "irs_loop_ratio": slow / fast,
        "irs_library_ratio": library / fast,
        "irs_largest_difference": float(max(np.abs(ours - matrix).max(), np.abs(ours - other).max())),
        "max_dev_ratio": search * (len(codes) / len(part)) ** 2 / quick,
        "max_dev_equal": float(np.array_equal(found, farthest(part))),  # type: ignore[arg-type]
        "cg_decodes_over_allowed": decodes(),
    }


def against_boosting(codes: np.ndarray, factors: np.ndarray, ours: float) -> dict[str, float]:
    """DCI: boosting on 1,000 rows of the six-valued factor, scaled to all rows and classes (it is linear in both)."""
    rows = 1000
    seconds = boosted(codes[:rows], factors[:rows, 1])
    whole = seconds * (N * 2 / 3 / rows) * sum(VALUES) / VALUES[1]
    return {
        "dci_boosting_1000_rows_6_classes_cpu_s": seconds,
        "dci_boosting_scaled_cpu_s": whole,
        "dci_ratio": whole / ours,
    }


if __name__ == "__main__":
    main("disentangle", measure, ("numpy", "scipy", "scikit-learn"))
