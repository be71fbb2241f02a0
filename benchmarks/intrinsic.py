"""Decomposition: the whole MIT table from image files, window sums against a loop, one factorisation against many."""

import os
import sys
import tempfile
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import scipy.sparse.linalg
from tests.reference.lmse_loop import lmse_loop

from benchmarks._print import main, seconds
from diorama.core.plan import Plan
from diorama.core.run import create
from diorama.core.scene import rng
from diorama.launch.local import launch
from diorama.metrics.lmse import lmse
from diorama.report.summary import document, read_results
from diorama.solvers.poisson import Poisson, _difference_matrix
from diorama.worlds.mondrian import Mondrian

METHODS = ["baseline", "retinex_gray", "retinex_color", "weiss", "weiss_retinex"]
DATA = Path(os.environ.get("DIORAMA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "mit_intrinsic"


def table() -> dict[str, float]:
    """The published table, five methods on 16 objects, from image files to means, in two processes."""
    if not DATA.is_dir():
        print(f"the MIT Intrinsic Images are not in {DATA} (set DIORAMA_DATA): the table is left out", file=sys.stderr)
        return {}

    def whole(folder: str) -> None:
        made = create(Path(folder), Plan([f"mit_intrinsic(root={DATA})"], METHODS, ["lmse"]))
        launch(made, 2, lambda done, total: None)
        means.update({c["method"]: c["summary"]["lmse"]["mean"] for c in document(read_results(Path(folder)))["cells"]})

    means: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        taken = seconds(lambda: whole(folder))
    return {"mit_table_seconds": taken, **{f"mit_lmse_{method}": mean for method, mean in means.items()}}


def windows() -> dict[str, float]:
    """LMSE of a 400×434 layer (the size of box): block sums against the window-by-window loop."""
    random = np.random.default_rng(0)
    truth, estimate = random.random((2, 400, 434))
    mask = np.hypot(*np.meshgrid(np.linspace(-1, 1, 434), np.linspace(-1, 1, 400))) < 0.9
    ours, loop = (seconds(lambda f=f: f(truth, estimate, mask), 30) for f in (lmse, lmse_loop))  # type: ignore[misc]
    difference = abs(lmse(truth, estimate, mask) - lmse_loop(truth, estimate, mask))
    return {
        "lmse_block_sums_ms": 1e3 * ours,
        "lmse_window_loop_ms": 1e3 * loop,
        "lmse_speedup": loop / ours,
        "lmse_difference": difference,
    }


def factorisation() -> dict[str, float]:
    """15 right-hand sides on one mask of 40,000 pixels: one factorisation against one solve each."""
    world = Mondrian(size=256)
    mask = world.render([world.sample(rng(0, "bench"))])[0].mask
    system = Poisson(mask)
    gradients = np.random.default_rng(0).normal(size=(len(system.edges.first), 15))

    def one_by_one() -> None:
        difference = _difference_matrix(system.edges, int(mask.sum()))[:, 1:]
        for g in gradients.T:
            scipy.sparse.linalg.spsolve((difference.T @ difference).tocsc(), difference.T @ g)

    ours, each = seconds(lambda: Poisson(mask).solve(gradients), 2), seconds(one_by_one)
    return {"poisson_once_seconds": ours, "poisson_each_seconds": each, "poisson_speedup": each / ours}


if __name__ == "__main__":
    main("intrinsic", lambda: {**table(), **windows(), **factorisation()}, ("numpy", "scipy", "opencv-python-headless"))
