"""Crash points: a run, a report and a fit that vanish before or after any change of the disk, and are started again.

The invariants, for every moment:
1. the same call again ends well, and its rows are those of a run that was never interrupted;
2. no file is damaged and none is set aside: whatever has a final name is whole;
3. what the dead writer left under a temporary name is gone after the next call;
4. between crash and rerun a report is either written or refused in one line.
And in an uninterrupted run every rename or link is preceded by a sync of the file and followed by a sync of its folder.
"""

import shutil
from functools import partial
from pathlib import Path

import pytest

from diorama.api import run
from diorama.core.errors import InputError
from diorama.core.integrity import check_run
from diorama.report import write_report
from tests.conftest import REPOSITORY
from tests.crash.points import GONE, Moments, vanish_at
from tests.part_files import rows

WORLD = "mondrian(size=20, patches=4)"
LEARNED = f"{REPOSITORY}/examples/learned_gradient.py:LearnedGradient"
WORK = {"run": ["weiss"], "fit": [LEARNED]}


def compute(folder: Path, methods: list[str]) -> None:
    run([WORLD], methods, ["lmse"], cases=2, out=folder)
    write_report([folder], None, "html")


def report_or_line(folder: Path) -> None:
    try:
        write_report([folder], None, "csv")
    except InputError as error:
        assert "\n" not in str(error) and len(str(error)) < 500


@pytest.mark.parametrize("name", WORK)
def test_a_crash_at_any_moment_changes_nothing(name, tmp_path):
    methods = WORK[name]
    compute(tmp_path / "whole", methods)
    with Moments() as moments:
        compute(tmp_path / "counted", methods)
    wanted = rows(tmp_path / "whole")
    assert moments.count > 60 and rows(tmp_path / "counted") == wanted
    for moment in range(moments.count):
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
    named = [i for i, line in enumerate(log) if line in ("before replace", "before link")]
    assert len(named) > 8
    assert all(log[i - 1] == "after fsync" and log[i + 2] == "before fsync" for i in named)
