"""The command line as a new user meets it: results, exit codes, and one line for every mistake."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from diorama.cli import main
from diorama.io.images import quantise, read_png, write_png
from tests.conftest import REPOSITORY, write_object
from tests.held import WORDS as HELD
from tests.held import held_run, release

WORLD = "mondrian(size=48, patches=5)"
SMALL = ["-w", WORLD, "-p", "lmse", "-n", "3"]


def one_line(result, code: int, *words: str) -> None:
    """The command ended with `code` and one line on stderr that has all the words; no traceback."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("diorama: "), result.stderr
    for word in words:
        assert word in line, line


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Call the command line in this process, for what ends before anything is computed."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        before = signal.getsignal(signal.SIGTERM)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["diorama", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        signal.signal(signal.SIGTERM, before)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, ended.value.code, said.out, said.err)

    return call


@pytest.mark.slow
def test_run_prints_one_document_and_nothing_else_on_stdout(diorama, tmp_path):
    result = diorama("run", *SMALL, "-m", "baseline", "-m", "weiss", "--controls", "--json", "-o", "out")
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema"] == 1 and document["skipped"] == []
    first = document["cells"][0]
    assert {"world", "model", "method", "protocol", "variant", "key", "summary"} <= set(first)
    counts = {"n_ok", "n_undefined", "n_excluded", "n_error"}
    assert set(first["summary"]["lmse"]) == {"mean", "lo", "hi", "std", *counts}
    assert [c["control"] for c in document["cells"]] == ["", "", "oracle", "random", "dose"]
    assert "5 cells, 15 cases: 0 known, 15 to compute" in result.stderr
    page = (tmp_path / "out" / "report.html").read_text()
    assert len(page) < 3e6 and "<script src" not in page and "http://" not in page.replace("http://www.w3.org", "")


def test_a_plan_file_with_options_over_it(diorama, tmp_path):
    (tmp_path / "plan.toml").write_text(f'worlds = ["{WORLD}"]\nmethods = ["weiss"]\nprotocols = ["lmse"]\ncases = 9\n')
    document = json.loads(diorama("run", "plan.toml", "-n", "2", "--json").stdout)
    assert [(c["method"], c["cases"]) for c in document["cells"]] == [("weiss", 2)]


def test_a_method_of_twelve_lines_outside_the_package(diorama, tmp_path):
    text = (REPOSITORY / "examples" / "twelve_lines.py").read_text()
    lines = text.splitlines()
    assert len(text.rpartition('"""')[2].strip().splitlines()) <= 12
    (tmp_path / "mine.py").write_text("\n".join(lines))
    result = diorama("run", *SMALL, "-m", "./mine.py:Flat", "--json")
    assert result.returncode == 0 and json.loads(result.stdout)["cells"][0]["summary"]["lmse"]["n_ok"] == 3


@pytest.mark.slow
def test_saved_predictions_are_scored(diorama, tmp_path):
    assert diorama("render", WORLD, "-n", "3", "-o", "flat").returncode == 0
    manifest = json.loads((tmp_path / "flat" / "manifest.json").read_text())
    for entry in manifest["cases"]:
        image = read_png(tmp_path / "flat" / entry["image"], bits=16) / 65535
        gray = image.mean(axis=2)
        truth = tmp_path / "flat" / "truth" / entry["case"]
        assert (truth / "reflectance.png").exists() and (truth / "mask.png").exists()
        if entry["case"].endswith("0"):
            (tmp_path / "saved").mkdir(exist_ok=True)
            np.savez(tmp_path / "saved" / f"{entry['case']}.npz", reflectance=image, shading=gray)
        else:
            write_png(tmp_path / "saved" / entry["case"] / "reflectance.png", quantise(image, 16))
            np.save(tmp_path / "saved" / entry["case"] / "shading.npy", gray)
    result = diorama("run", *SMALL, "-m", "predictions(folder=saved)", "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["cells"][0]["summary"]["lmse"]["n_ok"] == 3
    shutil.rmtree(tmp_path / "saved" / manifest["cases"][1]["case"])
    result = diorama("run", *SMALL, "-m", "predictions(folder=saved)")
    one_line(result, 3, "1 cases failed")
    assert "no reflectance for case '0-00001' in saved" in result.stdout


def test_the_truth_as_saved_predictions_scores_zero(diorama, tmp_path):
    diorama("render", WORLD, "-n", "3", "-o", "flat")
    shutil.copytree(tmp_path / "flat" / "truth", tmp_path / "saved")
    document = json.loads(diorama("run", *SMALL, "-m", "predictions(folder=saved)", "--json").stdout)
    assert document["cells"][0]["summary"]["lmse"]["mean"] < 1e-8  # 16-bit rounding


@pytest.mark.slow
def test_gates(diorama):
    assert diorama("run", *SMALL, "-m", "weiss", "--require", "lmse<=0.9").returncode == 0
    one_line(diorama("run", *SMALL, "-m", "weiss", "--require", "weiss:lmse<=1e-9"), 4, "weiss:lmse<=1e-9", "weiss on")
    one_line(diorama("run", *SMALL, "-m", "weiss", "--require", "lmsee<=1"), 2, "did you mean 'lmse'")
    one_line(diorama("run", *SMALL, "-m", "weiss", "--require", "nonsense"), 2, "METRIC<=NUMBER")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rum"], ["did you mean 'run'"]),
        (["run", *SMALL, "-m", "retinex_grey"], ["unknown method 'retinex_grey'", "did you mean 'retinex_gray'"]),
        (["run", "-w", "mondrain", "-m", "weiss", "-p", "lmse"], ["unknown world 'mondrain'", "'mondrian'"]),
        (["run", *SMALL, "-m", "retinex_gray(treshold=1)"], ["no parameter 'treshold'", "did you mean 'threshold'"]),
        (["run", *SMALL, "-m", "retinex_gray(threshold=high)"], ["threshold='high' should be float or None"]),
        (["run", *SMALL, "-m", "retinex_gray(threshold=-1)"], ["threshold=-1: give a number at least 0"]),
        (["run", *SMALL, "-m", "baseline(everything=noise)"], ["'noise' is not one of 'shading', 'reflectance'"]),
        (["run", *SMALL, "-m", "weiss("], ["closing parenthesis"]),
        (["run", *SMALL, "-m", "./none.py:X"], ["there is no file ./none.py"]),
        (["run", *SMALL, "-m", "no.such.module:X"], ["cannot import no.such.module"]),
        (["run", *SMALL, "-m", "diorama.methods.decompose.weiss:Wise"], ["has no 'Wise'", "did you mean 'Weiss'"]),
        (["run", *SMALL], ["lmse needs a method"]),
        (["run", "-m", "weiss", "-p", "lmse"], ["names no world"]),
        (["run", *SMALL[:-1], "0", "-m", "weiss"], ["at least one case"]),
        (["run", *SMALL[:-1], "many", "-m", "weiss"], ["'many' is not a valid integer"]),
        (["run", "no.toml"], ["cannot read the plan no.toml"]),
        (["run", *SMALL, "-m", "weiss", "--device", "tpu"], ["unknown device 'tpu'"]),
        (["run", *SMALL, "-m", "weiss", "--on", "cluster:3"], ["cannot run on 'cluster:3'"]),
        (["run", *SMALL, "-m", "weiss", "--on", "local:0"], ["cannot run on 'local:0'"]),
        (["run", "-w", "mit_intrinsic", "-m", "weiss", "-p", "lmse"], ["needs 'root'", "mit_intrinsic(root=…)"]),
        (["run", "-w", "mit_intrinsic(root=nowhere)", "-m", "weiss", "-p", "lmse"], ["no folder 'nowhere'"]),
        (["run", *SMALL, "-m", "predictions(folder=nowhere)"], ["no folder 'nowhere'"]),
        (["render", "mondrian", "-o", "x", "--do", "lite=3"], ["cannot change 'lite'", "did you mean", "'light'"]),
        (["render", "mondrian", "-o", "x", "--do", "light=30"], ["light=30 does not exist"]),
        (["render", "mondrian", "-o", "x", "--layout", "flit"], ["cannot be written in layout 'flit'", "'flat'"]),
        (["show", "wiess"], ["did you mean 'weiss'"]),
        (["report", "nowhere"], ["nowhere is not a run directory"]),
        (["work", "nowhere"], ["nowhere is not a run directory"]),
        (["compare", "a"], ["compare takes two runs"]),
        (["check", "./none.py:X"], ["there is no file"]),
    ],
)
def test_mistakes_get_one_line_and_exit_two(refused, words, says):
    one_line(refused(*words), 2, *says)


def test_bad_plans(refused, tmp_path):
    for text, says in [
        ("worlds = [", "is not a TOML plan"),
        ('world = ["mondrian"]', "unknown key 'world'; did you mean 'worlds'"),
        ('worlds = "mondrian"', "should be a list of strings"),
        ("cases = 2.5", "should be a whole number"),
    ]:
        (tmp_path / "plan.toml").write_text(text)
        one_line(refused("run", "plan.toml"), 2, says)


def test_impossible_pairs_are_skipped_with_a_reason_or_refused_when_nothing_is_left(diorama, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import replace\nfrom diorama.worlds.mondrian import Mondrian\n"
        "class Dark(Mondrian):\n    factors = {}\n"
        "class Flat(Mondrian):\n    truth = ('mask',)\n"
    )
    result = diorama(
        "run", "-w", "./mine.py:Dark(size=48)", "-m", "weiss", "-m", "baseline", "-p", "lmse", "-n", "2", "--json"
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert [c["method"] for c in document["cells"]] == ["baseline"]
    assert "needs views by light" in document["skipped"][0]["reason"] and "skipped weiss" in result.stderr
    one_line(
        diorama("run", "-w", "./mine.py:Flat", "-m", "weiss", "-p", "lmse", "-o", "other"),
        2,
        "nothing can be run",
        "reflectance, shading",
    )


def damaged(root: Path) -> dict[str, str]:
    """Damage three objects in three ways; returns what each should say."""
    path = root / "box" / "light03.png"
    path.write_bytes(path.read_bytes()[:200])
    (root / "deer" / "light07.png").unlink()
    write_png(root / "cup1" / "shading.png", quantise(np.ones((48, 48)), 8))
    return {
        "box": "light03.png is truncated",
        "deer": "light07.png is missing",
        "cup1": "8 bits per channel, expected 16",
    }


def test_damaged_files_fail_their_cases_and_no_others(diorama, mini_mit, tmp_path):
    expected = damaged(mini_mit)
    world = f"mit_intrinsic(root={mini_mit}, objects=('box', 'deer', 'cup1'))"
    result = diorama("run", "-w", world, "-m", "weiss", "-m", "baseline", "-p", "lmse", "-o", "out", "--json")
    one_line(result, 3, "4 cases failed")
    weiss, baseline = (cell["summary"]["lmse"] for cell in json.loads(result.stdout)["cells"])
    assert (weiss["n_ok"], weiss["n_error"]) == (0, 3)
    assert (baseline["n_ok"], baseline["n_error"]) == (2, 1)
    table = diorama("report", "out", "--format", "csv").stdout
    for words in expected.values():
        assert words in table


def test_sizes_masks_and_components(diorama, mini_mit, tmp_path):
    write_png(mini_mit / "box" / "light01.png", quantise(np.ones((48, 40, 3)), 16))
    write_png(mini_mit / "deer" / "mask.png", np.zeros((48, 48), np.uint16))
    mask = read_png(mini_mit / "cup1" / "mask.png")
    mask[24] = 0  # two components
    mask[30:33, 20:23] = 0  # and a hole
    write_png(mini_mit / "cup1" / "mask.png", mask)
    world = f"mit_intrinsic(root={mini_mit}, objects=('box', 'deer', 'cup1'))"
    result = diorama("run", "-w", world, "-m", "weiss", "-p", "lmse", "-o", "out")
    one_line(result, 3, "2 cases failed")
    table = diorama("report", "out", "--format", "csv").stdout
    assert "light01.png is 40×48 pixels, its mask 48×48" in table
    assert "marks no pixel" in table
    assert "the mask has 2 separate components" in table


def test_an_unwritable_output_and_one_that_holds_other_files(refused, tmp_path):
    (tmp_path / "file").write_text("x")
    one_line(refused("run", *SMALL, "-m", "weiss", "-o", "file/out"), 2, "cannot write to file/out")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_text("x")
    one_line(refused("run", *SMALL, "-m", "weiss", "-o", "photos"), 2, "photos holds other files")
    one_line(refused("run", *SMALL, "-m", "weiss", "-o", "/proc/out"), 2, "cannot write to /proc/out")


@pytest.mark.slow
def test_a_run_directory_of_another_version(diorama, tmp_path):
    assert diorama("run", *SMALL, "-m", "weiss", "-o", "out").returncode == 0
    (tmp_path / "out" / "run.json").write_text('{"schema": 99}')
    one_line(diorama("run", *SMALL, "-m", "weiss", "-o", "out"), 2, "another version of diorama (layout 99")


FILLING = """
import resource, signal
import numpy as np
from diorama import Layers

class Filling:
    asked = 0

    def decompose(self, frames):
        Filling.asked += 1
        if Filling.asked == 4:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        g = np.ones((*frames[0].image.shape[:2], 1))
        return Layers(g, g)
"""


def test_a_full_disk_loses_nothing(diorama, tmp_path):
    """A limit on file size, set in the middle of the work, stands in for the disk: writing beyond it fails alike."""
    (tmp_path / "filling.py").write_text(FILLING)
    command = [
        "run",
        "-w",
        WORLD,
        "-p",
        "lmse",
        "-m",
        "./filling.py:Filling",
        "-n",
        "8",
        "-o",
        "out",
        "--on",
        "local:1",
    ]
    one_line(diorama(*command), 1, "finished results are kept")
    again = diorama(*command)
    one_line(again, 1, "finished results are kept")
    assert "8 cases: 3 known, 5 to compute" in again.stderr
    assert not list((tmp_path / "out").rglob("*.tmp"))


@pytest.mark.parametrize("on", ["local", "local:2"])
def test_ctrl_c_keeps_what_was_computed(diorama, tmp_path, on):
    process = held_run(tmp_path, "--on", on)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130 and "Traceback" not in said, said
    assert "run the same command again to continue" in said
    release(tmp_path)
    document = json.loads(diorama("run", *HELD, "--json").stdout)
    assert document["known"] > 0 and document["known"] + document["computed"] == 6


@pytest.mark.slow
def test_two_processes_on_one_run_do_not_mix(diorama, tmp_path, monkeypatch):
    process = held_run(tmp_path, "--on", "local:1")
    one_line(diorama("run", *HELD), 2, "is being written by process")
    one_line(diorama("work", "out"), 2, "is being written by process")
    monkeypatch.setenv("GATE", "open")
    assert diorama("work", "out", "--shard", "1/2").returncode == 0  # another share is welcome
    release(tmp_path)
    process.communicate(timeout=600)
    assert process.returncode == 0
    (cell,) = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    assert cell["summary"]["lmse"]["n_ok"] == 6


def test_a_killed_worker_is_replaced(diorama, tmp_path):
    process = held_run(tmp_path, "--on", "local:2")
    workers = subprocess.run(
        ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(workers[0]), signal.SIGKILL)
    release(tmp_path)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    (cell,) = json.loads((tmp_path / "out" / "summary.json").read_text())["cells"]
    assert cell["summary"]["lmse"]["n_ok"] == 6


@pytest.mark.slow
def test_work_by_shards_then_report_and_compare(diorama, tmp_path):
    assert diorama("run", *SMALL, "-m", "weiss", "-m", "baseline", "-o", "a", "-n", "1").returncode == 0
    plan = (tmp_path / "a" / "plan.toml").read_text().replace("cases = 1", "cases = 6")
    (tmp_path / "plan.toml").write_text(plan)
    assert diorama("run", "plan.toml", "-o", "a").returncode == 0
    assert diorama("run", "plan.toml", "-o", "b", "-m", "weiss", "-m", "retinex_gray(threshold=0.1)").returncode == 0
    for form in ("text", "md", "tex", "csv", "json"):
        result = diorama("report", "a", "b", "--format", form)
        assert result.returncode == 0 and "weiss" in result.stdout
    assert diorama("report", "a", "-o", "page.html").stdout.strip() == "page.html"
    assert (tmp_path / "page.html").stat().st_size > 10_000
    compared = diorama("compare", "a", "b")
    assert compared.returncode == 0 and "weiss" in compared.stdout
    between = json.loads(diorama("compare", "a", "--between", "weiss", "baseline", "--json").stdout)
    assert len(between) == 1
    one_line(diorama("report", "a", "--format", "docx"), 2, "unknown format 'docx'")


def test_ls_and_show(diorama):
    listed = diorama("ls").stdout
    assert "retinex_gray" in listed and "mondrian" in listed and "lmse" in listed
    shown = diorama("show", "lmse").stdout
    assert "@inproceedings{grosse2009" not in shown and "preset: 'grosse' |" in shown
    assert "@inproceedings{grosse2009" in diorama("show", "lmse", "--bib").stdout
    assert "reflectance · shading + specular, exactly" in diorama("show", "mondrian(size=48)").stdout


def test_render_applies_do_and_draws_a_contact_sheet(diorama, tmp_path):
    for name, words in {"a": [], "b": ["--do", "light=3"]}.items():
        result = diorama("render", WORLD, "-n", "2", "-o", name, *words)
        assert result.stdout.strip() == f"{name}/contact.png"
    first, second = (tmp_path / name / "truth" / "0-00001" for name in "ab")
    assert np.array_equal(read_png(first / "reflectance.png"), read_png(second / "reflectance.png"))
    assert not np.array_equal(read_png(first / "shading.png"), read_png(second / "shading.png"))
    assert read_png(tmp_path / "a" / "contact.png").shape[2] == 3


@pytest.mark.slow
def test_check_passes_on_everything_bundled_and_on_recorded_data(diorama, mini_mit, tmp_path):
    result = diorama("check")
    assert result.returncode == 0 and "FAILED" not in result.stdout, result.stdout
    (tmp_path / "saved").mkdir()
    world = f"mit_intrinsic(root={mini_mit}, objects=('box', 'deer', 'cup1'))"
    result = diorama(
        "check",
        world,
        "decompose/predictions(folder=saved)",
        f"{REPOSITORY}/examples/learned_gradient.py:LearnedGradient",
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.slow
def test_demo(diorama, tmp_path):
    result = diorama("demo")
    assert result.returncode == 0, result.stderr
    path = Path(result.stderr.strip().splitlines()[-1].removeprefix("report: "))
    assert (tmp_path / path).is_file()


def test_output_into_a_closed_pipe_is_quiet(tmp_path):
    command = f"{sys.executable} -m diorama ls | head -n 1"
    result = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stderr == "" and result.stdout.strip() == "worlds"


def test_the_fixture_is_the_real_layout(mini_mit):
    names = sorted(path.name for path in (mini_mit / "box").iterdir())
    assert names == sorted(
        [
            *(f"light{i:02d}.png" for i in range(1, 11)),
            *(f"{n}.png" for n in ("diffuse", "mask", "original", "reflectance", "shading", "specular")),
        ]
    )
    write_object(mini_mit / "again", 0)
    assert (mini_mit / "again" / "diffuse.png").read_bytes() == (mini_mit / "box" / "diffuse.png").read_bytes()
