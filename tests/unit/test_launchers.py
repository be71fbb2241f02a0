"""Launchers: workers by cores and memory, lists of units, SLURM by a fake `sbatch`, an outsider's, parcels that travel."""

import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from diorama.core.errors import InputError
from diorama.core.gallery import WORST, pending
from diorama.core.plan import Plan
from diorama.core.run import create
from diorama.launch import local, machine, parcel, place, slurm, supervise, units
from diorama.launch.contract import Need, Tracker, read_size
from diorama.launch.find import find
from tests.conftest import REPOSITORY
from tests.part_files import rows

pytestmark = pytest.mark.slow  # it starts workers

WORLD = "mondrian(size=24, patches=5)"
ASKED = ["-w", WORLD, "-p", "lmse", "-m", "weiss", "-n", "6"]
METHOD = """
import numpy as np
from diorama import Layers
import beside

class Mine:
    def decompose(self, frames):
        ones = np.full((*frames[0].image.shape[:2], 1), beside.VALUE)
        return Layers(ones, ones)
"""
#: Runs an array as SLURM does, one job after the other, and says its number first; a file `hold` keeps it in the queue.
SBATCH = """#!/bin/bash
script="${@: -1}"
echo 4711
(
    touch "$FAKE/queued"
    last=$(sed -n 's/^#SBATCH --array=0-//p' "$script")
    log=$(sed -n 's/^#SBATCH --output=//p' "$script")
    while [ -e "$FAKE/hold" ]; do sleep 0.05; done
    for i in $(seq 0 "$last"); do
        SLURM_ARRAY_TASK_ID=$i bash "$script" >> "${log//%A_%a/4711_$i}" 2>&1
    done
    rm "$FAKE/queued"
) < /dev/null > /dev/null 2>&1 &
while [ ! -e "$FAKE/queued" ]; do sleep 0.05; done
"""
SQUEUE = '#!/bin/bash\n[ -e "$FAKE/queued" ] && echo "4711 R" || true\n'
SCANCEL = '#!/bin/bash\necho "$@" >> "$FAKE/cancelled"\n'


def test_workers_are_as_many_as_cores_memory_and_gpus_allow(monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 16)
    monkeypatch.setattr(machine, "memory", lambda: 20 * 2**30)
    monkeypatch.setattr(machine, "gpus", lambda: ["0", "1", "2", "3"])
    assert [local.fitting(Need(*n)) for n in ((), (4,), (1, 1), (1, 0, 2**31), (1, 0, 2**40))] == [10, 4, 4, 10, 1]
    assert local.Launcher("3", Need(gpus=1)).own == [{"CUDA_VISIBLE_DEVICES": str(i)} for i in range(3)]
    with pytest.raises(InputError, match="5 workers need 5, and this machine has 4"):
        local.Launcher("5", Need(gpus=1))


def test_the_cores_are_those_of_this_machine():
    listed = subprocess.run(["lscpu", "-p=Core,Socket"], capture_output=True, text=True, check=False)
    if listed.returncode or len(os.sched_getaffinity(0)) != os.cpu_count():
        pytest.skip("lscpu does not say, or this process may not use all cores")
    assert machine.cores() <= len({line for line in listed.stdout.splitlines() if line[0] != "#"})
    assert 0 < machine.memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("on", "says"),
    [
        ("lokal", "did you mean 'local'"),
        ("local:0", "write local"),
        ("slurm", "write slurm:16"),
        ("ray://host:10001", "pickles"),
        ("./none.py:Launcher", "there is no file"),
    ],
)
def test_a_wrong_place_is_one_line(diorama, on, says):
    result = diorama("run", *ASKED, "--on", on)
    assert result.returncode == 2 and says in result.stderr and len(result.stderr.splitlines()) == 1


def test_options_that_mean_nothing_are_refused(diorama):
    assert "--no-wait is for --on slurm" in diorama("run", *ASKED, "--no-wait").stderr
    assert "write a size such as" in diorama("run", *ASKED, "--memory", "lots").stderr
    with pytest.raises(InputError):
        read_size("-1G")


@pytest.mark.parametrize("text", ["8", "3-1", "x", "1-", "-1", "0,9"])
def test_a_list_of_units_that_is_none_is_refused(text):
    with pytest.raises(InputError):
        units.read(text, 8)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch) -> Path:
    """SLURM's commands, as far as we use them."""
    folder = tmp_path / "fake"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        (folder / name).write_text(text)
        (folder / name).chmod((folder / name).stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("FAKE", str(folder))
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_slurm_gives_the_rows_of_one_process(diorama, tmp_path, cluster):
    assert diorama("run", *ASKED, "-o", "one", "--on", "local:1").returncode == 0
    result = diorama("run", *ASKED, "-o", "out dir", "--on", "slurm:2", "--json", "--timeout", "60")
    assert result.returncode == 0, result.stderr
    assert "an array of 2 jobs" in result.stderr and json.loads(result.stdout)["missing"] == 0
    assert rows(tmp_path / "out dir") == rows(tmp_path / "one")
    logs = [path.read_text() for path in sorted((tmp_path / "out dir" / "slurm").glob("4711_*.log"))]
    assert ["units 0,2,4: 3 cases computed, 0 failed" in logs[0], "units 1,3,5: 3" in logs[1]] == [True, True]


def test_slurm_without_waiting_refuses_a_second_array(diorama, tmp_path, cluster):
    (cluster / "hold").touch()  # the jobs wait in the queue
    result = diorama("run", *ASKED, "-o", "out", "--on", "slurm:1", "--no-wait")
    assert result.returncode == 0 and result.stdout.startswith("submitted as job 4711")
    again = diorama("run", *ASKED, "-o", "out", "--on", "slurm:1")
    assert again.returncode == 2 and "job 4711 is computing" in again.stderr
    told = diorama("report", "out", "--format", "text")
    assert told.returncode == 0
    (cluster / "hold").unlink()
    deadline = time.monotonic() + 120
    while (cluster / "queued").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert diorama("report", "out", "--format", "text").stderr == ""


def test_the_script_is_plain_bash_that_says_what_a_worker_needs(diorama, tmp_path, cluster):
    asked = "--cpus", "3", "--gpus", "1", "--memory", "4G", "--timeout", "9", "--dry-run"
    result = diorama("run", *ASKED, "-o", "it's a run", "--on", "slurm:4", *asked)
    assert result.returncode == 0, result.stderr
    assert subprocess.run(["bash", "-n"], input=result.stdout, text=True, check=False).returncode == 0
    lines = result.stdout.splitlines()
    for line in ("array=0-3", "cpus-per-task=3", "gpus-per-task=1", "mem=4096M", "requeue"):
        assert f"#SBATCH --{line}" in lines
    assert "NUMBA_NUM_THREADS=1" in result.stdout and lines[-1].endswith("--timeout 9")
    assert not list(tmp_path.glob("*/slurm/job"))


def test_an_array_that_left_work_undone_is_said(diorama, cluster):
    (cluster / "sbatch").write_text("#!/bin/bash\necho 4711\n")  # all its jobs are lost
    result = diorama("run", *ASKED, "-o", "out", "--on", "slurm:2")
    assert result.returncode == 3 and "6 cases have no result; run the same command again" in result.stderr
    told = diorama("report", "out")
    assert "is unfinished: 6 of 6 cases have no row" in told.stderr and "6 in 1 cells" in told.stderr


def test_work_computes_the_units_it_is_given(diorama, tmp_path):
    assert diorama("run", *ASKED, "-o", "out", "--prepare").returncode == 0
    first = diorama("work", "out", "--units", "0-1,4")
    assert first.stdout == "units 0-1,4: 3 cases computed, 0 failed; 3 of 6 cases are left\n"
    told = diorama("report", "out")
    assert "3 of 6 cases have no row" in told.stderr and f"{3:5d} × {WORLD} × weiss × lmse" in told.stderr
    assert diorama("work", "out", "--units", "6").returncode == 2
    assert diorama("work", "out", "--units", "1", "--shard", "0/2").returncode == 2
    assert "0 of 6 cases are left" in diorama("work", "out").stdout
    assert diorama("run", *ASKED, "-o", "one", "--on", "local:1").returncode == 0
    assert rows(tmp_path / "out") == rows(tmp_path / "one")


def test_an_outsiders_launcher(diorama, tmp_path):
    example = REPOSITORY / "examples" / "own_launcher.py"
    result = diorama("run", *ASKED, "-o", "out", "--on", f"{example}:Processes:2")
    assert result.returncode == 0, result.stderr
    assert diorama("run", *ASKED, "-o", "one", "--on", "local:1").returncode == 0
    assert rows(tmp_path / "out") == rows(tmp_path / "one")
    wrong = diorama("run", *ASKED, "-o", "out", "--on", f"{example}:Nothing")
    assert wrong.returncode == 2 and "has no class 'Nothing'" in wrong.stderr


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A run of a user's method that imports its neighbour."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(METHOD)
    (tmp_path / "beside.py").write_text("VALUE = 1.0\n")
    return create(tmp_path / "out", Plan([WORLD], ["./mine.py:Mine", "weiss"], ["lmse"], cases=3))


def carried(opening: dict, orders: list[str], cwd: Path) -> list[dict]:
    """What a place in a process of its own answers."""
    given = "\n".join([json.dumps(opening), *orders]) + "\n"
    command = [sys.executable, "-m", "diorama.launch.place"]
    done = subprocess.run(command, input=given, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_parcels_bring_the_same_rows_home_and_know_what_is_known(mine, tmp_path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    opening = json.loads(parcel.opening(mine, None, 0)) | {"cwd": "/nowhere"}
    first, *_ = carried(opening, [parcel.order(mine, 0, [])], elsewhere)
    assert first["end"] == {} and first["place"] == os.uname().nodename
    text = json.dumps(first)
    assert parcel.write_answer(mine, parcel.Answer.read(text)) == (2, [])
    assert parcel.write_answer(mine, parcel.Answer.read(text)) == (0, [])  # a second time nothing is new
    order = json.loads(parcel.order(mine, 0, []))
    assert sum(len(cases) for cases in order["known"].values()) == 2
    known, fresh = carried(opening, [json.dumps(order), parcel.order(mine, 1, [])], elsewhere)
    assert parcel.write_answer(mine, parcel.Answer.read(json.dumps(known))) == (0, [])
    assert parcel.write_answer(mine, parcel.Answer.read(json.dumps(fresh)))[0] == 2
    here = create(tmp_path / "here", mine.plan)
    local.launch(here, 1)
    wanted, found = rows(here.folder), rows(mine.folder)
    assert all(
        set(found[cell]) < set(lines) and len(found[cell]) == len(lines) / 3 * 2 for cell, lines in wanted.items()
    )


def test_pictures_that_were_drawn_while_scoring_come_home(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    run = create(tmp_path / "out", Plan(["birds"], ["input_x_gradient"], ["single_deletion"], ["birds_cnn"], cases=8))
    (answer,) = carried(json.loads(parcel.opening(run, None, 0)), [parcel.order(run, 0, [])], tmp_path)
    assert parcel.write_answer(run, parcel.Answer.read(json.dumps(answer))) == (8, [])
    assert not pending(run) and len(list(run.folder.rglob("keep/*.webp"))) == WORST  # none is to be drawn here


def test_what_comes_home_cannot_choose_where_it_is_written(mine):
    answer = {"unit": 0, "place": "x", "end": {}, "cells": {}}
    for cell in mine.cells:
        names = {"../../../../escaped.npz": "", "escaped.npz": ""}
        answer["cells"][cell.key] = {"rows": [], "keep": names, "errors": {"../escaped.txt": "x"}}
    before = set(mine.folder.parent.rglob("*"))
    assert parcel.write_answer(mine, parcel.Answer.read(json.dumps(answer))) == (0, [])
    assert set(mine.folder.parent.rglob("*")) == before
    with pytest.raises(ValueError, match="no answer"):
        parcel.Answer.read("{}")


def test_a_place_that_lacks_data_or_has_other_source_says_so_in_one_line(mine, tmp_path_factory):
    elsewhere, opening = tmp_path_factory.mktemp("elsewhere"), json.loads(parcel.opening(mine, None, 0))
    lacks = opening | {"plan": opening["plan"] | {"worlds": ["mit_intrinsic(root=data/mit)"]}, "cwd": "/nowhere"}
    (answer,) = carried(lacks, [parcel.order(mine, 0, [])], elsewhere)
    assert "data/mit" in answer["end"]["refused"] and "\n" not in answer["end"]["refused"]
    changed = opening["expected"] | {"cells": ["other"]}
    (answer,) = carried(opening | {"expected": changed}, [parcel.order(mine, 0, [])], elsewhere)
    assert "diorama itself differs there" in answer["end"]["refused"]


def test_a_folder_that_is_too_large_to_send_is_refused(mine, monkeypatch):
    monkeypatch.setattr(parcel, "MOST", 10)
    with pytest.raises(InputError, match="holds more than"):
        parcel.opening(mine, None, 0)


def test_progress_is_one_line_for_all(monkeypatch):
    said = []
    seen = Tracker(lambda *words: said.append(words), cases=12, units=3, workers=2)
    monkeypatch.setattr("time.monotonic", lambda: seen.since + 30)
    seen.finished(4, ["ValueError: no", "ValueError: no", "KeyError: 1"])
    seen.unit_finished()
    done, total, line = said[-1]
    assert (done, total) == (4, 12)
    assert line == "1 of 3 units, 2 workers with 4 cases a minute each; 3 failed, most often: ValueError: no"


def test_slurm_spreads_units_evenly(mine):
    text = slurm.script(mine, [0, 1, 2], 2, Need())
    assert '  "0,2"\n  "1"\n' in text


def test_find_names_all_launchers():
    files = {path.stem for path in Path(place.__file__).parent.glob("*.py") if "class Launcher(" in path.read_text()}
    assert files - {"contract"} == {"local", "ray", "slurm"} and isinstance(find("local:2", Need()), local.Launcher)


class Noting:
    """A worker process that notes its orders; nothing is computed."""

    variables = ()

    def __init__(self):
        self.orders = []

    def order(self, value):
        self.orders.append(value["unit"])


def supervised(tmp_path, worlds):
    """Two such workers, and what has handed each a first unit; a world has six."""
    from diorama.launch.supervise import Supervisor, Worker

    run = create(tmp_path / "run", Plan(worlds, ["constant"], ["lmse"], cases=6))
    all_ = Supervisor(run, 2)
    all_.workers = [Worker(Noting()), Worker(Noting())]
    all_.todo.extend(range(len(run.units)))
    all_.hand_out()
    return all_


def test_workers_take_units_from_one_list(tmp_path):
    """While one worker has a long unit, the other does all the rest: they end together."""
    all_ = supervised(tmp_path, ["mondrian(size=20, patches=3)"])
    slow, quick = (worker.child for worker in all_.workers)
    while quick.orders[-1] != 5:
        all_.workers[1].unit = None  # it is done, the other is not
        all_.hand_out()
    assert slow.orders == [0] and quick.orders == [1, 2, 3, 4, 5]


def test_a_worker_stays_with_its_world_and_then_helps_the_others(tmp_path):
    all_ = supervised(tmp_path, ["mondrian(size=20, patches=3)", "mondrian(size=24, patches=3)"])
    one, other = all_.workers
    for worker in [one, other] * 2 + [other] * 6:
        worker.unit = None
        all_.hand_out()
    assert one.child.orders == [0, 1, 2]
    assert other.child.orders == [6, 7, 8, 9, 10, 11, 3, 4, 5]


def test_a_worker_stays_with_its_world_when_others_are_at_it_too():
    from diorama.launch.supervise import choose

    here, there = ("birds", "birds_cnn"), ("sprites", "")
    assert choose([there, here], here, {here}) == 1


def test_two_places_may_sweep_up_after_a_killed_one_at_once(tmp_path, monkeypatch):
    """Found by scripts/chaos: the folder that one place looked at had just been removed by another, and the run ended."""
    from diorama.launch import place

    gone, left = (tmp_path / f"diorama-place-{number}-abc" for number in (999_999_998, 999_999_999))
    gone.mkdir(), left.mkdir()

    def removed_meanwhile(process):
        if process == 999_999_998:
            gone.rmdir()
        return False

    monkeypatch.setattr(place, "alive", removed_meanwhile)
    place.sweep(tmp_path)
    assert not gone.exists() and not left.exists()


def test_the_workers_that_scored_draw_the_pictures(tmp_path, monkeypatch):
    started = []

    class Counted(supervise.Child):
        def __init__(self, *given):
            started.append(self)
            super().__init__(*given)

    monkeypatch.setattr(supervise, "Child", Counted)
    run = create(tmp_path / "run", Plan([WORLD], ["weiss"], ["lmse"], cases=6))
    assert local.on(local.Launcher("2", Need()), run, lambda *_: None)
    assert len(list(run.folder.rglob("keep/*.webp"))) == WORST
    local.draw(run, 2)
    assert len(started) == 2


def test_a_share_of_a_run_draws_nothing(tmp_path):
    run = create(tmp_path / "run", Plan([WORLD], ["weiss"], ["lmse"], cases=6))
    local.on(local.Launcher("1", Need(), "units-0-2"), run, lambda *_: None, range(3))
    assert not list(run.folder.rglob("keep/*.webp"))
