"""Damaged run directories: found by checksums, said in one line, set aside and computed again; never a traceback."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from diorama.api import run
from diorama.core.errors import InputError
from diorama.core.plan import Plan
from diorama.core.run import create
from diorama.io.integrity import check_run
from diorama.report.write import write_report
from tests.part_files import rows

WORLD = "mondrian(size=24, patches=5)"


def make(folder: Path) -> dict:
    return run([WORLD], ["weiss"], ["lmse"], cases=3, out=folder)


def one(folder: Path, pattern: str) -> Path:
    return next(iter(sorted(folder.glob(pattern))))


def flip(path: Path) -> None:
    """Another digit in the middle of a value."""
    text = path.read_text()
    place = text.index('"value": 0.') + len('"value": 0.') + 3
    path.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])


PART, MANIFEST = "cells/*/*/rows/*.jsonl", "cells/*/*/manifest.json"
DAMAGES = {
    "flipped digit": (PART, flip),
    "empty part": (PART, lambda path: path.write_bytes(b"")),
    "torn part": (PART, lambda path: path.write_bytes(path.read_bytes()[:-9])),
    "not UTF-8": (PART, lambda path: path.write_bytes(b"\xff\xfe\n")),
    "another name": (PART, lambda path: path.rename(path.with_name("0-of-1.jsonl"))),
    "empty manifest": (MANIFEST, lambda path: path.write_bytes(b"")),
    "list as manifest": (MANIFEST, lambda path: path.write_text("[]")),
    "manifest without fields": (MANIFEST, lambda path: path.write_text("{}")),
    "torn captions": ("cells/*/*/keep/*.json", lambda path: path.write_bytes(path.read_bytes()[:20])),
    "torn picture": ("cells/*/*/keep/*.webp", lambda path: path.write_bytes(path.read_bytes()[:50])),
    "empty run.json": ("run.json", lambda path: path.write_bytes(b"")),
    "deep cells.json": ("cells.json", lambda path: path.write_text("[" * 100_000)),
    "empty plan": ("plan.toml", lambda path: path.write_bytes(b"")),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "run"
    make(folder)
    return folder


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_a_rerun_heals_it(good, tmp_path, name, capsys):
    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(good), str(folder)], check=True)
    pattern, spoil = DAMAGES[name]
    spoil(one(folder, pattern))
    said: list[str] = []
    if name not in ("manifest without fields", "empty plan"):  # objects all the same; both are written again
        try:
            assert not check_run(folder, said.append)
        except InputError as error:
            said.append(str(error))
        assert any("damaged" in line for line in said) and all(len(line) < 500 and "\n" not in line for line in said)
    try:
        write_report([folder], None, "csv")
    except InputError as error:
        assert len(str(error)) < 500 and "\n" not in str(error)
    make(folder)
    assert capsys.readouterr().err.count("\n") <= 1
    assert rows(folder) == rows(good)
    said.clear()
    assert check_run(folder, said.append), said
    assert sorted(p.name for p in folder.rglob("*.webp")) == sorted(p.name for p in good.rglob("*.webp"))


def test_two_parts_that_contradict_each_other_are_reported(good, tmp_path):
    from diorama.io.store import checksum

    folder = tmp_path / "run"
    subprocess.run(["cp", "-r", str(good), str(folder)], check=True)
    path = one(folder, PART)
    flip(path)
    path.rename(path.with_name(f"000000-000000-1-{checksum(path.read_bytes())}.jsonl"))
    subprocess.run(["cp", str(one(good, PART)), str(path)], check=True)
    said: list[str] = []
    assert not check_run(folder, said.append) and "has another value in an earlier part" in said[0]


def test_check_of_a_run_on_the_command_line(good, diorama, tmp_path):
    assert "1 cells, " in diorama("check", str(good)).stdout
    result = diorama("check", str(good), str(good))
    assert result.returncode == 0 and result.stdout.count("0 damaged") == 2


def test_a_directory_of_the_old_layout_is_refused_by_all(diorama, tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    (old / "run.json").write_text('{"schema": 1}')
    (old / "cells.json").write_text("{}")
    (old / "plan.toml").write_text("")
    for words in (["report", "old"], ["work", "old"], ["check", "old"]):
        result = diorama(*words)
        assert result.returncode == 2 and "layout 1, this one is 2" in result.stderr and result.stderr.count("\n") == 1


def test_the_recipe_for_clusters(diorama, tmp_path):
    (tmp_path / "plan.toml").write_text(Plan([WORLD], ["weiss", "baseline"], ["lmse"], cases=5).to_toml())
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "plan.toml").write_text((tmp_path / "plan.toml").read_text())
    for words in (["work", "bare"], ["report", "bare"]):
        result = diorama(*words)
        assert result.returncode == 2 and "diorama run PLAN.toml -o bare --prepare" in result.stderr
    prepared = diorama("run", "plan.toml", "-o", "out", "--prepare")
    assert prepared.returncode == 0 and "10 to compute" in prepared.stderr and not prepared.stdout
    assert diorama("report", "out", "--format", "csv").returncode == 0  # of nothing so far
    first, second = (diorama("work", "out", "--shard", f"{i}/2") for i in (1, 0))
    assert first.stdout == "shard 1/2: 4 cases computed, 0 failed; 6 of 10 cases are left\n", first.stderr
    assert second.stdout == "shard 0/2: 6 cases computed, 0 failed; 0 of 10 cases are left\n"
    again = diorama("run", "out/plan.toml", "-o", "out", "--json")
    assert again.returncode == 0 and json.loads(again.stdout)["computed"] == 0


BIG = """
import numpy as np
from diorama import Scene, Score
from diorama.protocols.layers.lmse import Lmse

class Big(Lmse):
    metrics = ("x",)

    def score(self, bench, case):
        image = bench.frame(Scene.from_json(case.payload["scene"])).image
        v = np.resize(image.astype(float), 90_000) + np.random.default_rng(0).normal(size=90_000)
        a = v.reshape(300, 300)
        yield Score("x", float((a @ a).sum() + v @ v + np.linalg.solve(a, v[:300]).sum()))
"""


def test_the_same_bytes_for_any_number_of_processes_and_threads(tmp_path):
    """As `truth_residual`, with products that are large enough for BLAS to share them among threads."""
    (tmp_path / "big.py").write_text(BIG)
    plain = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    two, protocol = {"OPENBLAS_NUM_THREADS": "2"}, f"{tmp_path}/big.py:Big"
    words = ["-m", "diorama", "run", "-w", WORLD, "-m", "weiss", "-p", protocol, "-n", "2", "-o"]
    code = f"import numpy, diorama.api as d; d.run([{WORLD!r}], ['weiss'], [{protocol!r}], cases=2, out='d')"
    calls = {
        "a": ([*words, "a"], plain | {"OPENBLAS_NUM_THREADS": "1"}),
        "b": ([*words, "b", "--on", "local:2"], plain),
        "c": ([*words, "c"], plain | two),
        "d": (["-c", code], plain | two),
    }
    for call, env in calls.values():
        subprocess.run([sys.executable, *call], env=env, check=True, capture_output=True, cwd=tmp_path)
    found = [rows(tmp_path / name) for name in calls]
    assert found[0] and all(each == found[0] for each in found)


def test_a_world_without_cases_is_an_error(tmp_path):
    (tmp_path / "none.py").write_text(
        "from diorama.worlds.mondrian import Mondrian\nclass Empty(Mondrian):\n    length = 0\n"
    )
    with pytest.raises(InputError, match="no case"):
        create(tmp_path / "out", Plan([f"{tmp_path}/none.py:Empty"], ["weiss"], ["lmse"]))
    assert not (tmp_path / "out").exists()


def test_a_pipe_or_device_in_the_place_of_a_manifest_is_never_read(tmp_path):
    from diorama.io.run_folder import manifest_damage, read_manifest

    for name, make in (("pipe", os.mkfifo), ("device", lambda path: os.symlink("/dev/zero", path))):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "manifest.json")
        assert manifest_damage(tmp_path / name / "manifest.json") == "it is no regular file"
        assert read_manifest(tmp_path / name) is None


@pytest.mark.parametrize("name", ["plan.toml", "cells.json", "run.json"])
def test_bytes_that_are_no_text_in_a_file_of_a_run_are_one_line(good, tmp_path, name):
    shutil.copytree(good, tmp_path / "run")
    (tmp_path / "run" / name).write_bytes(b"cases = 3 # \x9d\n")
    with pytest.raises(InputError, match="damaged"):
        write_report([tmp_path / "run"], tmp_path / "page.html")


@contextlib.contextmanager
def at_most(seconds):
    """Fail where something waits longer than that, for instance for a writer of a pipe."""

    def stop(*_):
        raise AssertionError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
def test_a_pipe_in_the_place_of_any_file_of_a_run_makes_nobody_wait(good, tmp_path):
    files = sorted(path.relative_to(good) for path in good.rglob("*") if path.is_file())
    assert {".webp", ".jsonl", ".json", ".toml"} <= {path.suffix for path in files}
    for number, name in enumerate(files):
        folder = tmp_path / str(number)
        shutil.copytree(good, folder)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with at_most(120), contextlib.suppress(InputError):
            write_report([folder], tmp_path / "page.html")
        with at_most(120), contextlib.suppress(InputError):
            check_run(folder, print)
        with at_most(240), contextlib.suppress(InputError):
            make(folder)
        assert name.name == "plan.toml" or rows(folder) == rows(good), name
