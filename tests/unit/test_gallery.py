"""The gallery: pictures of the worst cases, made once, beside their captions."""

import json

import numpy as np
import pytest

from diorama.core.cases import Panel
from diorama.core.gallery import strip

PLAN = ["-w", "mondrian(size=32, patches=5)", "-m", "constant", "-p", "si_mse", "-n", "8"]


def test_a_strip_holds_the_panels_side_by_side_at_one_size():
    red, blue = np.zeros((20, 10, 3), np.float32), np.zeros((40, 20, 3), np.float32)
    red[..., 0] = blue[..., 2] = 1
    drawn = strip([Panel("red", red), Panel("blue", blue)], 40)
    assert drawn.shape == (40, 40, 3) and drawn.dtype == np.uint8
    assert (drawn[:, :20] == [255, 0, 0]).all() and (drawn[:, 20:] == [0, 0, 255]).all()


@pytest.fixture
def run(diorama, tmp_path):
    assert diorama("run", *PLAN, "-o", "run").returncode == 0
    return tmp_path / "run"


def test_the_worst_cases_are_drawn_with_captions(run, diorama):
    from diorama.report.summary import read_results

    (cell,) = read_results(run).cells
    worst = sorted((r for r in cell.rows if r.metric == "si_mse"), key=lambda r: -r.value)[:6]
    captions = [json.loads(path.read_text()) for path in run.rglob("keep/*.json")]
    assert {c["case"] for c in captions} == {row.case for row in worst}
    assert all(len(c["captions"]) >= 3 for c in captions)


def test_pictures_are_made_once_and_again_when_one_is_lost(run, diorama):
    first, *others = sorted(run.rglob("keep/*.webp"))
    before = {path: path.stat().st_mtime_ns for path in others}
    content = first.read_bytes()
    first.unlink()
    assert diorama("run", *PLAN, "-o", "run").returncode == 0
    assert first.read_bytes() == content and {p: p.stat().st_mtime_ns for p in others} == before
