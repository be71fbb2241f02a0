"""Crash points: a run, a report and a fit that vanish before or after any change of the disk, and are started again.

The invariants, for every moment:
1. the same call again ends well, and its rows are those of a run that was never interrupted;
2. no file is damaged and none is set aside: whatever has a final name is whole;
3. what the dead writer left under a temporary name is gone after the next call;
4. between crash and rerun a report is either written or refused in one line.
And in an uninterrupted run every rename or link is preceded by a sync of the file and followed by a sync of its folder.
"""

import copy
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from diorama.api import run
from diorama.core.errors import InputError
from diorama.io.integrity import check_run
from diorama.report.write import write_report
from tests.crash.points import GONE, Moments, vanish_at
from tests.part_files import rows

WORLD = "mondrian(size=20, patches=4)"
FITTED = """
import numpy as np
from diorama import Layers

class Fitted:
    level = None

    def fit(self, examples, objective):
        return {"level": np.array([np.mean([frames[0].image.mean() for frames in examples])])}

    def fitted(self, fit):
        made = Fitted()
        made.level = float(fit["level"][0])
        return made

    def decompose(self, frames):
        shading = np.full((*frames[0].image.shape[:2], 1), self.level)
        return Layers(frames[0].image / shading, shading)
"""
#: What is done, and which of its moments are tried: all, or those that change a fit.
WORK = {"run": ("weiss", ""), "fit": ("./fitted.py:Fitted", "/fits/")}


@pytest.fixture(autouse=True)
def no_source_cache(monkeypatch):
    """The cache of source files is written at a moment that depends on the clock, and in the user's cache folder."""
    monkeypatch.setattr("diorama.core.sources.Cache.write", lambda cache: None)


def compute(folder: Path, methods: list[str]) -> None:
    run([WORLD], methods, ["lmse"], cases=2, out=folder)
    write_report([folder], None, "html")


def report_or_line(folder: Path) -> None:
    try:
        write_report([folder], None, "csv")
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 500


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_a_crash_at_any_moment_changes_nothing(name, tmp_path, monkeypatch):
    (tmp_path / "fitted.py").write_text(FITTED)
    monkeypatch.chdir(tmp_path)
    methods, place = [WORK[name][0]], WORK[name][1]
    compute(tmp_path / "whole", methods)
    with Moments() as moments:
        compute(tmp_path / "counted", methods)
    wanted = rows(tmp_path / "whole")
    tried = [moment for moment, line in enumerate(moments.log) if place in line]
    assert len(tried) > 20 and rows(tmp_path / "counted") == wanted
    for moment in tried:
        folder = tmp_path / "crashed"
        where = f"{moment} ({moments.log[moment]})"
        assert vanish_at(moment, partial(compute, folder, methods)) == GONE, where
        if folder.exists():
            report_or_line(folder)
        compute(folder, methods)
        assert rows(folder) == wanted, where
        assert not list(folder.rglob("*.damaged")) and not list(folder.rglob("*.tmp")), where
        said: list[str] = []
        assert check_run(folder, said.append), (where, said)
        shutil.rmtree(folder)


def test_every_name_is_given_to_synced_data_and_synced_itself(tmp_path):
    with Moments() as moments:
        run([WORLD], ["weiss"], ["lmse"], cases=2, out=tmp_path / "out")
    log = [line for line in moments.log if "unlink" not in line]
    named = [i for i, line in enumerate(log) if line.startswith(("before replace", "before link"))]
    assert len(named) > 8
    assert all(log[i - 1].startswith("after fsync") and log[i + 2].startswith("before fsync") for i in named)


def test_a_training_that_vanishes_leaves_the_old_state_or_the_new_one(tmp_path):
    torch = pytest.importorskip("torch")
    from types import SimpleNamespace

    from diorama.training.loop import State, save_state
    from diorama.training.recipes import RECIPES

    task: Any = SimpleNamespace(how=RECIPES["birds_cnn"].schedule)

    def state(value: float) -> State:
        net = torch.nn.Linear(2, 1)
        torch.nn.init.constant_(net.weight, value)
        return State(net, copy.deepcopy(net), torch.optim.AdamW(net.parameters()), [{"epoch": value}])

    def history() -> str:
        with safe_open(tmp_path / "state.safetensors", "pt") as file:
            return file.metadata()["history"]

    save_state(state(1.0), task, tmp_path)
    with Moments() as moments:
        save_state(state(1.0), task, tmp_path)
    renamed = next(i for i, line in enumerate(moments.log) if "before replace" in line)
    assert any("fsync" in line for line in moments.log[:renamed]) and any("fsync" in x for x in moments.log[renamed:])
    for moment in range(len(moments.log)):
        assert vanish_at(moment, partial(save_state, state(2.0), task, tmp_path)) == GONE
        assert history() in ('[{"epoch": 1.0}]', '[{"epoch": 2.0}]')
        save_state(state(1.0), task, tmp_path)
