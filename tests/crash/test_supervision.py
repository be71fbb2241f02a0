"""Supervised runs: components that exit, abort, hang or are killed cost their case; workers never outlive their run."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.held import WORDS as HELD
from tests.held import held_run, release
from tests.part_files import rows

WORLD = "mondrian(size=24, patches=5)"
BAD = """
import os, signal, sys, time
from dataclasses import dataclass
import numpy as np
from diorama import Layers

@dataclass
class Bad:
    how: str = "good"
    below: float = 0.088

    def decompose(self, frames):
        if frames[0].image.mean() < self.below:
            getattr(self, self.how)()
        ones = np.ones((*frames[0].image.shape[:2], 1))
        return Layers(ones, ones)

    def exit(self): sys.exit(0)
    def leave(self): os._exit(0)
    def abort(self): os.abort()
    def kill(self): os.kill(os.getpid(), signal.SIGKILL)
    def hang(self): time.sleep(600)
    def talk(self): print("{not json", sys.stdin.read())
    def once(self):
        if not os.path.exists("happened"):
            open("happened", "w").close()
            os._exit(0)
"""


@pytest.fixture
def bad(diorama, tmp_path):
    """Run the method above on six cases, two of them good ones, beside a method that is always good."""
    (tmp_path / "bad.py").write_text(BAD)

    def call(how: str, *more: str):
        methods = "-m", f"./bad.py:Bad(how={how})", "-m", "weiss"
        return diorama("run", "-w", WORLD, "-p", "lmse", *methods, "-n", "6", "-o", "out", "--json", *more, timeout=600)

    return call


@pytest.mark.parametrize(
    ("how", "reason", "more"),
    [
        ("exit", "SystemExit: 0", ()),
        ("leave", "in 2 attempts the process that computed this ended with exit code 0", ()),
        ("abort", "was killed by signal 6 (SIGABRT)", ("--on", "local:2")),
        ("kill", "was killed by signal 9 (SIGKILL)", ()),
        ("hang, below=0.03", "took longer than the 5 s of --timeout", ("--timeout", "5", "--on", "local:2")),
    ],
)
def test_a_component_that_ends_its_process_costs_its_cases_only(bad, tmp_path, how, reason, more):
    result = bad(how, *more)
    failed = 1 if "below" in how else 4
    assert result.returncode == 3 and "Traceback" not in result.stderr
    assert f"{failed} cases failed" in result.stderr
    mine, weiss = (cell["summary"]["lmse"] for cell in json.loads(result.stdout)["cells"])
    assert (mine["n_ok"], mine["n_error"], weiss["n_ok"]) == (6 - failed, failed, 6)
    found = [json.loads(line) for lines in rows(tmp_path / "out").values() for line in lines]
    assert {reason in row["reason"] for row in found if row["status"] == "error"} == {True}


def test_one_accident_is_no_error(bad):
    result = bad("once")
    assert result.returncode == 0, result.stderr
    assert all(cell["summary"]["lmse"]["n_ok"] == 6 for cell in json.loads(result.stdout)["cells"])


def test_what_components_print_or_read_does_not_come_between(bad):
    result = bad("talk")
    assert result.returncode == 0 and len(json.loads(result.stdout)["cells"]) == 2


def children(process: "subprocess.Popen[str]") -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def gone(pids: list[int]) -> bool:
    deadline = time.monotonic() + 60
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(_runs, pids))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_run_ends_its_workers_and_the_next_run_goes_on_at_once(diorama, tmp_path, number):
    with held_run(tmp_path, "--on", "local:2") as process:
        workers = children(process)
        assert len(workers) == 2
        os.kill(process.pid, number)
        _, said = process.communicate(timeout=600)
    release(tmp_path)
    again = diorama("run", *HELD, "--json")
    assert gone(workers)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["known"] > 0
    if number == signal.SIGTERM:
        assert process.returncode == 130 and "run the same command again to continue" in said


def test_a_refused_second_run_changes_nothing_and_the_gate_of_the_first_still_fails(diorama, tmp_path):
    with held_run(tmp_path, "--require", "lmse<=0.0001") as process:
        before = {path: path.read_bytes() for path in (tmp_path / "out").glob("*.*")}
        second = diorama("run", "-w", WORLD, "-p", "lmse", "-m", "baseline", "-n", "1", "-o", "out")
        assert second.returncode == 2 and "is being written by process" in second.stderr
        assert before and {path: path.read_bytes() for path in before} == before
        release(tmp_path)
        process.communicate(timeout=600)
    assert process.returncode == 4


def test_workers_are_started_anew_where_forking_is_not_safe(tmp_path, monkeypatch):
    """A process that has threads of other makers starts new interpreters: the same rows as in one process."""
    from diorama.api import run
    from diorama.launch import children as started_by

    made = {}
    for forks in (True, False):
        monkeypatch.setattr(started_by, "may_fork", lambda forks=forks: forks)
        run([WORLD], ["weiss"], ["lmse"], cases=4, out=tmp_path / str(forks), processes=2)
        made[forks] = rows(tmp_path / str(forks))
    run([WORLD], ["weiss"], ["lmse"], cases=4, out=tmp_path / "one")
    assert made[True] == made[False] == rows(tmp_path / "one")


def test_a_fit_that_hangs_is_given_up_after_the_time_of_all_its_cases(diorama, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import time\nimport numpy as np\nfrom diorama import Layers\n\n\nclass Learner:\n    track = 'decompose'\n\n"
        "    def fit(self, examples, objective):\n        time.sleep(1000)\n\n"
        "    def fitted(self, fit):\n        return self\n\n"
        "    def decompose(self, frames):\n        image = frames[0].linear()\n        return Layers(image, image)\n"
    )
    words = ("run", "-w", WORLD, "-p", "lmse", "-m", "./mine.py:Learner", "-m", "baseline", "-n", "2", "-o", "out")
    ended = diorama(*words, "--timeout", "0.5", "--on", "local:1", timeout=600)
    assert ended.returncode == 3, ended.stderr
    found = [json.loads(line) for lines in rows(tmp_path / "out").values() for line in lines]
    reasons = [row["reason"] for row in found if row["status"] == "error"]
    assert reasons and all("took longer than the 0.5 s of --timeout" in reason for reason in reasons)


def test_a_run_that_is_told_to_end_prints_no_traceback_of_its_workers(tmp_path, monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "2")  # a thread that does not survive a fork: the worker is a new interpreter
    process = held_run(tmp_path, "--on", "local:1")
    os.killpg(process.pid, signal.SIGTERM)  # as `timeout` and batch systems do: the workers hear it too
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said and "run the same command again" in said, said
