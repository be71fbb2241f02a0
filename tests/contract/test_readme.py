"""The README lines that score a folder of somebody else's outputs, pasted into a shell; and what is said of bad files."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from diorama.api import run
from diorama.core.frame import linear_to_srgb
from diorama.io.images import quantise, write_png
from diorama.report.summary import read_results
from diorama.report.write import write_report
from diorama.worlds.mondrian import Mondrian
from tests.conftest import REPOSITORY

WORLD = "mondrian(size=48, patches=5)"


def test_twelve_lines_work_when_pasted(tmp_path):
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = re.search(r"## Score somebody else's outputs.*?```bash\n(.*?)```", text, re.S)[1]
    assert len(block.strip().splitlines()) <= 13  # twelve, and the end of the heredoc
    words = f'diorama() {{ "{sys.executable}" -m diorama "$@"; }}\npython() {{ "{sys.executable}" "$@"; }}\nset -e\n'
    done = subprocess.run(
        ["bash", "-c", words + block], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "one set of answers under every protocol" in done.stdout
    for cell in read_results(tmp_path / "mine").cells:
        assert all(row.status == "ok" for row in cell.rows) and cell.cases == 4


@pytest.fixture
def saved(tmp_path):
    """The true layers of four cases as 8-bit sRGB PNG files."""

    world = Mondrian(size=48, patches=5)
    for i in range(4):
        name, scene = world.scene_at(0, i)
        truth = world.render([scene])[0].truth
        for layer in ("reflectance", "shading"):
            values = linear_to_srgb(truth[layer] / max(1.0, float(truth[layer].max())))
            write_png(
                tmp_path / "saved" / name / f"{layer}.png",
                quantise(values[:, :, 0] if values.shape[2] == 1 else values, 8),
            )
    return tmp_path / "saved"


def test_a_mix_up_of_encodings_is_noted_in_rows_and_report_and_the_right_one_is_not(saved, tmp_path):
    wrong, right = f"predictions(folder={saved})", f"predictions(folder={saved}, encoding=srgb)"
    document = run([WORLD], [wrong, right], ["lmse"], cases=4, out=tmp_path / "run")
    scores = {cell["method"]: cell["summary"]["lmse"]["mean"] for cell in document["cells"]}
    assert min(scores, key=scores.get).endswith("encoding=srgb)")
    for cell in read_results(tmp_path / "run").cells:
        noted = [row for row in cell.rows if "srgb-encoded" in row.reason]
        assert bool(noted) == ("encoding=srgb" not in cell.manifest["method"])
    assert "files look srgb-encoded" in write_report([tmp_path / "run"]).read_text(encoding="utf-8")


def test_the_note_stands_under_every_protocol(saved, tmp_path):
    """The second protocol finds the answers remembered, and says of them what the first said."""
    run([WORLD], [f"predictions(folder={saved})"], ["lmse", "si_mse", "psnr"], cases=4, out=tmp_path / "run")
    cells = read_results(tmp_path / "run").cells
    noted = {c.manifest["protocol"]: sum("srgb-encoded" in row.reason for row in c.rows) / len(c.rows) for c in cells}
    assert noted == {"lmse": 1, "si_mse": 1, "psnr": 1}


def test_bad_files_are_rows_with_a_reason(saved, tmp_path):
    cases = sorted(path.name for path in saved.iterdir())
    (saved / cases[0] / "shading.png").unlink()
    np.save(saved / cases[1] / "shading.npy", np.full((48, 48, 1), np.nan, np.float32))
    np.save(saved / cases[2] / "shading.npy", np.ones((4, 5), np.float32))
    run([WORLD], [f"predictions(folder={saved}, encoding=srgb)"], ["lmse"], cases=4, out=tmp_path / "run")
    (cell,) = read_results(tmp_path / "run").cells
    reasons = {row.case: (row.status, row.reason) for row in cell.of("lmse")}
    for case, said in zip(cases, ("no shading for case", "NaN", "has shape (4, 5, 1)"), strict=False):
        assert reasons[case][0] == "error" and said in reasons[case][1]
    assert reasons[cases[3]][0] == "ok"
