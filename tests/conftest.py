"""Fixtures: real data where it is present, a small stand-in in the same layout made on the spot, the command line."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

# Tests share the machine: threads that wait for each other are slower than one. Read when numpy and torch are imported.
os.environ.update({"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from diorama.core.scene import rng
from diorama.io.images import quantise, write_png
from diorama.worlds.mondrian import Mondrian

# An example may take long on a busy machine: that is no fault of what is tested.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DIORAMA_DATA", REPOSITORY.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def mit_root() -> Path:
    root = DATA / "mit_intrinsic"
    if not root.is_dir():
        pytest.skip(f"the MIT Intrinsic Images are not in {root} (set DIORAMA_DATA)")
    return root


def write_object(folder: Path, seed: int, size: int = 48) -> None:
    """One object in the layout of MIT Intrinsic Images, staged by the mondrian world."""
    world = Mondrian(size=size, patches=5)
    scene = world.sample(rng(seed, "fixture"))
    frame, *lights = world.render([scene, *(world.do(scene, light=i) for i in range(1, 11))])
    write_png(folder / "diffuse.png", quantise(frame.image, 16))
    write_png(folder / "original.png", quantise(frame.image, 16))
    write_png(folder / "specular.png", np.zeros_like(frame.image, np.uint16))
    write_png(folder / "reflectance.png", quantise(frame.truth["reflectance"], 16))
    write_png(folder / "shading.png", quantise(frame.truth["shading"][:, :, 0], 16))
    write_png(folder / "mask.png", frame.mask.astype(np.uint16) * 65535)
    for i, light in enumerate(lights, 1):
        write_png(folder / f"light{i:02d}.png", quantise(light.image, 16))


@pytest.fixture
def mini_mit(tmp_path: Path) -> Path:
    """Three staged objects under the names of real ones."""
    root = tmp_path / "mit"
    for seed, name in enumerate(("box", "deer", "cup1")):
        write_object(root / name, seed)
    return root


@pytest.fixture
def diorama(tmp_path: Path):
    """Call the command line as a user would, in a folder of its own."""

    def call(*words: str, cwd: Path = tmp_path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "diorama", *map(str, words)]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)

    return call


#: Seconds of processor time, of a test and the processes it started, from which on --quick should leave it out.
SLOW_FROM = 1.4
_taken: list[tuple[float, str, bool]] = []


#: Files that take long, the longest first; then come others by the number of their slow tests.
LONG = [
    "test_ray",
    "test_golden_net",
    "test_site",
    "test_lab_page",
    "test_crash_points",
    "test_examples",
    "test_launchers",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, so that no worker is left with one of them when the others have ended."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    slow.update({item.path: 1000 - LONG.index(item.path.stem) for item in items if item.path.stem in LONG})
    items.sort(key=lambda item: -slow[item.path])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Note the processor time of every test: unlike its duration it does not depend on what else the machine does."""
    before = sum(os.times()[:4])
    yield
    item.user_properties += [("cpu", sum(os.times()[:4]) - before), ("slow", bool(item.get_closest_marker("slow")))]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    said = dict(report.user_properties)
    if report.when == "call" and "cpu" in said:
        _taken.append((said["cpu"], report.nodeid, said["slow"]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much processor time the tests took, and which of those that --quick runs should be marked slow."""
    terminalreporter.write_line(f"{sum(cpu for cpu, _, _ in _taken):.0f} s of processor time in {len(_taken)} tests")
    for cpu, name, slow in sorted(_taken, reverse=True):
        if cpu >= SLOW_FROM and not slow and name.startswith(("tests/unit/", "tests/contract/")):
            terminalreporter.write_line(f"  {cpu:.1f} s, not marked slow: {name}")
