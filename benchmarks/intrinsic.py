"""Decomposition: the whole MIT table from image files, window sums against a loop, one factorisation against many;
L1 by ADMM against reweighting; one-off solves by cosine-preconditioned conjugate gradients, directly, and by pyamg."""

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from benchmarks._print import main, seconds
from diorama.core.plan import Plan
from diorama.core.run import create
from diorama.core.scene import rng
from diorama.launch.local import launch
from diorama.methods.decompose.gradients import channels
from diorama.metrics.lmse import lmse
from diorama.report.summary import document, read_results
from diorama.solvers.dct_cg import DctCg
from diorama.solvers.l1 import admm, irls, objective
from diorama.solvers.poisson import Edges, Poisson, _difference_matrix
from diorama.worlds.mondrian import Mondrian
from diorama.worlds.recorded.mit_intrinsic import MitIntrinsic
from tests.reference.lmse_loop import lmse_loop

METHODS = ["baseline", "retinex_gray", "retinex_color", "weiss", "weiss_retinex"]
DATA = Path(os.environ.get("DIORAMA_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "mit_intrinsic"


def table() -> dict[str, float]:
    """The published table, five methods on 16 objects, from image files to means, in two processes."""
    if not DATA.is_dir():
        print(f"the MIT Intrinsic Images are not in {DATA} (set DIORAMA_DATA): the table is left out", file=sys.stderr)
        return {}

    def whole(folder: str) -> None:
        made = create(Path(folder), Plan([f"mit_intrinsic(root={DATA})"], METHODS, ["lmse"]))
        launch(made, 2)
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


def _field() -> tuple[np.ndarray, np.ndarray]:
    """A mask and the gradients that colour Retinex keeps on it: raccoon where it is present, else a staged scene."""
    if DATA.is_dir():
        world = MitIntrinsic(str(DATA), objects=("raccoon",))
        frame = world.render([world.scene(0)[1]])[0]
    else:
        staged = Mondrian(size=300)
        frame = staged.render([staged.sample(rng(0, "bench"))])[0]
    colour, edges = np.log(channels(frame)), Edges.of(frame.mask)
    change = edges.differences(colour)
    mean = change.mean(axis=1, keepdims=True)
    kept = (np.linalg.norm(change - mean, axis=1) > 10**-1.125) | (np.abs(mean[:, 0]) > 1)
    return frame.mask, np.where(kept, edges.differences(np.log(channels(frame).mean(axis=2))), 0)[:, None]


def least_absolute() -> dict[str, float]:
    """L1 on one mask, either way with its factorisations: ADMM with one, reweighting with twenty-one."""
    mask, gradient = _field()
    system = Poisson(mask)
    found: dict[str, np.ndarray] = {}
    ours = seconds(lambda: found.update(admm=admm(Poisson(mask), gradient)), 2)
    theirs = seconds(lambda: found.update(irls=irls(Poisson(mask), gradient)))
    by_admm, by_irls = (float(objective(system, found[name], gradient)[0]) for name in ("admm", "irls"))
    return {
        "l1_admm_seconds": ours,
        "l1_irls_seconds": theirs,
        "l1_speedup": theirs / ours,
        "l1_admm_objective": by_admm,
        "l1_irls_objective": by_irls,
        "l1_objective_excess_percent": 100 * (by_admm / by_irls - 1),
    }


def one_off() -> dict[str, float]:
    """One L2 solve on one mask, set-up included: cosine-preconditioned conjugate gradients, direct, and pyamg's."""
    mask, gradient = _field()
    direct = Poisson(mask).solve(gradient)
    iterated = DctCg(mask)
    difference = float(np.abs(iterated.solve(gradient) - direct).max())
    dct = seconds(lambda: DctCg(mask).solve(gradient), 3)
    factor = seconds(lambda: Poisson(mask).solve(gradient), 2)
    figures = {
        "dct_cg_seconds": dct,
        "direct_seconds": factor,
        "dct_cg_speedup": factor / dct,
        "dct_cg_steps": float(iterated.steps),
        "dct_cg_difference": difference,
    }
    return figures | _multigrid(mask, gradient, direct, dct)


def _multigrid(mask: np.ndarray, gradient: np.ndarray, direct: np.ndarray, ours: float) -> dict[str, float]:
    """pyamg's Ruge–Stüben solver, that of the released code, on the same singular system: as released (tolerance 1e-5,
    relative to the right-hand side) and to 1e-10 like ours."""
    try:
        pyamg = import_module("pyamg")
    except ImportError:
        print("pyamg is not installed: its figures are left out", file=sys.stderr)
        return {}
    difference = _difference_matrix(Edges.of(mask), int(mask.sum()))
    figures: dict[str, float] = {}
    for name, tolerance in (("default", 1e-5), ("exact", 1e-10)):
        found: list[np.ndarray] = []

        def solve(tolerance: float = tolerance, found: list[np.ndarray] = found) -> None:
            laplacian = scipy.sparse.csr_matrix(difference.T @ difference)
            hierarchy = pyamg.ruge_stuben_solver(laplacian)
            found.append(hierarchy.solve(difference.T @ gradient[:, 0], tol=tolerance))

        taken = seconds(solve, 2)
        error = float(np.abs(found[-1] - found[-1].mean() - direct[:, 0]).max())
        figures |= {f"pyamg_{name}_seconds": taken, f"pyamg_{name}_difference": error}
        figures[f"pyamg_{name}_over_ours"] = taken / ours
    return figures


def measure() -> dict[str, float]:
    """All figures."""
    return {**table(), **windows(), **factorisation(), **least_absolute(), **one_off()}


if __name__ == "__main__":
    main("intrinsic", measure, ("numpy", "scipy", "opencv-python-headless"))
