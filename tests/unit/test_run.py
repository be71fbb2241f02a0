"""Runs: resumed after any kill, the same in any number of shards, computing exactly what is missing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from diorama.api import run
from diorama.core.plan import Plan
from diorama.core.run import create, open_run, score_case, units, work
from tests.conftest import REPOSITORY
from tests.part_files import rows

WORLD = "mondrian(size=48, patches=5)"
METHODS = ["baseline", "retinex_gray", "weiss"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    run([WORLD], METHODS, ["lmse"], cases=7, controls=True, out=folder)
    return folder


@pytest.mark.parametrize("shards", [2, 3, 11])
def test_any_number_of_shards_in_any_order_gives_the_same_rows(uninterrupted, tmp_path, shards):
    made = create(tmp_path, Plan([WORLD], METHODS, ["lmse"], cases=7, controls=True))
    for shard in reversed(range(shards)):
        work(made, shard, shards)
    assert rows(tmp_path) == rows(uninterrupted)


@pytest.mark.slow
def test_processes_give_the_same_rows(uninterrupted, tmp_path):
    run([WORLD], METHODS, ["lmse"], cases=7, controls=True, out=tmp_path, processes=2)
    assert rows(tmp_path) == rows(uninterrupted)


@pytest.mark.slow
def test_twenty_kills_at_random_moments_lose_and_change_nothing(uninterrupted, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(Plan([WORLD], METHODS, ["lmse"], cases=7, controls=True).to_toml())
    command = [sys.executable, "-m", "diorama", "run", str(plan), "-o", str(tmp_path / "out"), "--json"]
    chance = random.Random(0)
    start = time.monotonic()
    subprocess.run([*command[:-1], "-n", "1"], capture_output=True, check=True)
    life = (time.monotonic() - start) * 1.5  # moments from before the start of work to after its end
    killed = 0
    for _ in range(20):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(chance.uniform(0.2, life))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        else:
            life *= 0.7  # it ended first: the machine has become faster, or less was left to do
    final = subprocess.run(command, capture_output=True, text=True, check=True)
    assert killed >= 3
    whole = json.loads((uninterrupted / "summary.json").read_text())
    again = json.loads(final.stdout)
    assert [c["summary"] for c in again["cells"]] == [c["summary"] for c in whole["cells"]]
    assert rows(tmp_path / "out") == rows(uninterrupted)


def test_only_what_is_new_is_computed(tmp_path):
    def counts(methods, **options):
        document = run([WORLD], methods, ["lmse"], out=tmp_path, **options)
        return document["computed"], document["known"]

    assert counts(["baseline"], cases=3) == (3, 0)
    assert counts(["baseline"], cases=3) == (0, 3)
    assert counts(["baseline", "weiss"], cases=3) == (3, 3)  # a method more
    assert counts(["baseline", "weiss"], cases=5) == (4, 6)  # cases more
    assert counts(["retinex_gray(threshold=0.1)", "weiss"], cases=5) == (5, 5)
    assert counts(["retinex_gray(threshold=0.2)", "weiss"], cases=5) == (5, 5)  # a parameter
    assert counts(["weiss"], cases=5, seed=1) == (5, 0)  # another seed


def test_reformatting_a_method_computes_nothing_and_changing_it_computes_its_cells(tmp_path):
    mine = tmp_path / "mine.py"
    source = (REPOSITORY / "examples" / "twelve_lines.py").read_text()
    mine.write_text(source)

    def computed():
        return run([WORLD], [f"{mine}:Flat", "baseline"], ["lmse"], cases=2, out=tmp_path / "out")["computed"]

    assert computed() == 4
    mine.write_text("# moved about\n" + source.replace('"""The smallest', '"""A small').replace("(1e-6)", "(\n1e-6\n)"))
    assert computed() == 0
    mine.write_text(source.replace("gray)", "gray * 2)"))
    assert computed() == 2


BROKEN = """
import numpy as np
from diorama import Layers
from dataclasses import dataclass

@dataclass
class Broken:
    how: str = "raise"

    def decompose(self, frames):
        h, w = frames[0].image.shape[:2]
        good = np.ones((h, w, 1))
        if int(frames[0].scene.key, 16) % 2:
            return Layers(good, good)
        if self.how == "raise":
            raise RuntimeError("the sensor\\nis on fire")
        if self.how == "nan":
            return Layers(good * np.nan, good)
        if self.how == "shape":
            return Layers(good[:-1], good)
        return {"reflectance": good}
"""


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raise", "RuntimeError: the sensor is on fire"),
        ("nan", "reflectance has 2304 of 2304 values that are NaN or infinite"),
        ("shape", "reflectance has shape (47, 48, 1), expected (48, 48, 1) or (48, 48, 3)"),
        ("type", "the method returned dict, not an answer"),
    ],
)
def test_a_failing_case_is_a_row_with_a_reason_and_the_others_stand(tmp_path, how, reason):
    (tmp_path / "broken.py").write_text(BROKEN)
    document = run([WORLD], [f"{tmp_path}/broken.py:Broken(how={how})"], ["lmse"], cases=6, out=tmp_path / "out")
    (cell,) = document["cells"]
    summary = cell["summary"]["lmse"]
    assert summary["n_error"] > 0 and summary["n_ok"] > 0 and summary["n_error"] + summary["n_ok"] == 6
    made = open_run(tmp_path / "out")
    failed = [row for row in made.rows(made.cells[0]) if row.status == "error"]
    assert all(reason in row.reason and "\n" not in row.reason and row.value is None for row in failed)
    traces = list((tmp_path / "out").glob("cells/*/*/errors/*.txt"))
    assert len(traces) == summary["n_error"] and "Traceback" in traces[0].read_text()


def test_failed_cases_are_tried_again_and_succeed_when_the_cause_has_gone(tmp_path):
    (tmp_path / "flaky.py").write_text(
        "import os\nimport numpy as np\nfrom diorama import Layers\n"
        "class Flaky:\n    def decompose(self, frames):\n"
        f"        if not os.path.exists({str(tmp_path / 'mounted')!r}):\n"
        "            raise OSError('the disk is not mounted')\n"
        "        g = np.ones((*frames[0].image.shape[:2], 1))\n        return Layers(g, g)\n"
    )
    spec = f"{tmp_path}/flaky.py:Flaky"
    assert run([WORLD], [spec], ["lmse"], cases=2, out=tmp_path / "out")["cells"][0]["summary"]["lmse"]["n_error"] == 2
    (tmp_path / "mounted").touch()
    again = run([WORLD], [spec], ["lmse"], cases=2, out=tmp_path / "out")
    assert again["computed"] == 2 and again["cells"][0]["summary"]["lmse"]["n_ok"] == 2


def test_a_fitted_method_is_fitted_once_per_fold_on_the_other_cases(tmp_path):
    spec = f"{REPOSITORY}/examples/learned_gradient.py:LearnedGradient"
    document = run([WORLD], [spec, "baseline"], ["lmse"], cases=6, out=tmp_path)
    learned, baseline = (cell["summary"]["lmse"]["mean"] for cell in document["cells"])
    assert learned < baseline / 2
    assert len(list(tmp_path.glob("fits/*/fit.safetensors"))) == 2
    assert run([WORLD], [spec], ["lmse"], cases=6, out=tmp_path)["computed"] == 0
    assert run([WORLD], [spec], ["lmse"], cases=8, out=tmp_path)["computed"] == 8  # it learns from more, so all change


def test_the_fit_of_a_fold_does_not_see_the_case_it_is_judged_on(tmp_path):
    (tmp_path / "spy.py").write_text(
        "import numpy as np\nfrom diorama import Layers\n"
        "class Spy:\n    def fit(self, examples, objective):\n"
        "        return {'keys': np.array([list(bytes.fromhex(f[0].scene.key)) for f in examples], np.uint8)}\n"
        "    def fitted(self, fit):\n        new = Spy()\n        new.fit_ = fit\n        return new\n"
        "    def decompose(self, frames):\n"
        "        seen = [bytes(key).hex() for key in self.fit_['keys']]\n"
        "        assert frames[0].scene.key not in seen and len(seen) == 2\n"
        "        g = np.ones((*frames[0].image.shape[:2], 1))\n        return Layers(g, g)\n"
    )
    document = run([WORLD], [f"{tmp_path}/spy.py:Spy"], ["lmse"], cases=4, out=tmp_path / "out")
    assert document["cells"][0]["summary"]["lmse"]["n_ok"] == 4


def test_frames_and_answers_are_shared_between_cells(tmp_path, monkeypatch):
    from diorama.worlds.mondrian import Mondrian

    rendered = []
    real = Mondrian.render
    monkeypatch.setattr(Mondrian, "render", lambda self, scenes: rendered.extend(scenes) or real(self, scenes))
    made = create(tmp_path, Plan([WORLD], [*METHODS, "weiss_retinex"], ["lmse"], cases=2, controls=True))
    work(made, 0, 1)
    assert len(rendered) == len({scene.key for scene in rendered}) == 2 * 11


def test_one_case_has_nothing_to_choose_a_parameter_on(tmp_path):
    document = run([WORLD], ["retinex_gray", "weiss"], ["lmse"], cases=1, out=tmp_path)
    tuned, free = (cell["summary"]["lmse"] for cell in document["cells"])
    assert (tuned["n_undefined"], tuned["mean"]) == (1, None)
    assert free["n_ok"] == 1 and free["lo"] is None


def test_units_cover_every_case_once(tmp_path):
    made = create(tmp_path, Plan([WORLD, "mondrian(size=40)"], METHODS, ["lmse"], cases=5))
    seen = [(cell.key, i) for unit in units(made) for cell in unit.cells for i in unit.indices]
    assert len(seen) == len(set(seen)) == 2 * 3 * 5


def test_a_score_that_is_not_finite_is_an_error_row(tmp_path):
    (tmp_path / "p.py").write_text(
        "from diorama.protocols.layers.lmse import Lmse\nfrom diorama import Score\n"
        "class Bad(Lmse):\n    metrics = ('x',)\n    def score(self, bench, case):\n        yield Score('x', float('nan'))\n"
    )
    made = create(tmp_path / "out", Plan([WORLD], ["weiss"], [f"{tmp_path}/p.py:Bad"], cases=1))
    (row,) = score_case(made, made.cells[0], 0)
    assert row.status == "error" and "not finite" in row.reason
