"""Growth: seconds and resident memory of a run against its cases, methods, image size and cells; exponents by fit.

For a run through a convolutional network (`cnn`: staged birds, a gradient, single deletion) and a run of decompositions
(`layers`: staged paintings, Retinex, LMSE). Every point is a process of its own, so that its largest memory is its own;
seconds count from when libraries are loaded. An exponent e is the slope of log(time) over log(n): 1 is linear, 0 is flat.
Against image size n is the number of pixels.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks._print import main

CASES, METHODS, SIZES, CELLS = (32, 128, 512, 2048), (1, 2, 4, 8, 16), (64, 128, 256, 512), (1, 10, 100, 400)
#: Cases where something else grows.
FEW = 8
#: A network that takes birds of any size.
NETWORK = """\
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    body = [nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32)]
    return nn.Sequential(*body, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 50))
"""


def birds(cases: int = FEW, methods: int = 1, size: int | None = None, network: str = "birds_cnn") -> dict[str, Any]:
    """A plan of a run through a network."""
    world = f"birds(size={size})" if size else "birds"
    asked = [f"smoothgrad(samples=1, seed={seed})" for seed in range(methods)]
    return {"worlds": [world], "models": [network], "methods": asked, "protocols": ["single_deletion"], "cases": cases}


def paintings(cases: int = FEW, methods: int = 1, size: int = 64) -> dict[str, Any]:
    """A plan of a run of decompositions."""
    asked = [f"retinex_gray(threshold={0.1 + 0.01 * i:.2f})" for i in range(methods)]
    return {"worlds": [f"mondrian(size={size})"], "methods": asked, "protocols": ["lmse"], "cases": cases}


def cells(count: int) -> dict[str, Any]:
    """A plan of so many cells."""
    worlds, methods = max(1, count // 20), min(count, 20)
    plan = paintings(FEW, methods)
    return plan | {"worlds": [f"mondrian(size={32 + 2 * i})" for i in range(worlds)]}


def point(plan: dict[str, Any], what: str = "run") -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, str(Path(__file__).parent / "_growth_run.py"), json.dumps(plan), what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{plan} failed: {done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def exponent(sizes: tuple[float, ...], values: list[float]) -> float:
    """The slope of log(values) over log(sizes) by least squares.

    >>> round(exponent((1, 10, 100), [3.0, 30.0, 300.0]), 6)
    1.0
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def series(
    name: str, sizes: tuple[int, ...], plan: Callable[[int], dict[str, Any]], power: int = 1
) -> dict[str, float]:
    """A run of every size: seconds, megabytes, and their exponents against size**power."""
    found = [point(plan(size)) for size in sizes]
    worked, memory = [f["worked"] for f in found], [f["megabytes"] for f in found]
    figures = {f"{name}_{size}_s": seconds for size, seconds in zip(sizes, worked, strict=True)}
    figures |= {f"{name}_{size}_mb": megabytes for size, megabytes in zip(sizes, memory, strict=True)}
    grown = tuple(float(size) ** power for size in sizes)
    return figures | {
        f"{name}_time_exponent": exponent(grown, worked),
        f"{name}_memory_exponent": exponent(grown, memory),
    }


def planning() -> dict[str, float]:
    """Seconds to lay out plans of growing numbers of cells."""
    found = [point(cells(count), "plan") for count in CELLS]
    counts, planned = tuple(f["cells"] for f in found), [f["planned"] for f in found]
    assert counts == CELLS, counts
    figures = {f"cells_{count}_s": seconds for count, seconds in zip(CELLS, planned, strict=True)}
    figures |= {f"cells_{count}_mb": f["megabytes"] for count, f in zip(CELLS, found, strict=True)}
    return figures | {"cells_time_exponent": exponent(CELLS[1:], planned[1:])}  # one cell is all overhead


def measure() -> dict[str, float]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "net.py").write_text(NETWORK)
        network = f"{folder}/net.py:build"
        return {
            **planning(),
            **series("layers_cases", CASES, lambda n: paintings(cases=n)),
            **series("layers_methods", METHODS, lambda n: paintings(methods=n)),
            **series("layers_size", SIZES, lambda n: paintings(size=n), 2),
            **series("cnn_cases", CASES, lambda n: birds(cases=n)),
            **series("cnn_methods", METHODS, lambda n: birds(methods=n)),
            **series("cnn_size", SIZES, lambda n: birds(size=n, network=network), 2),
        }


if __name__ == "__main__":
    main("growth", measure, ("numpy", "scipy", "torch"))
