"""The gallery: pictures of the worst cases, made once, beside their captions."""

import json
import os

import numpy as np
import pytest

from diorama.core.cases import Panel
from diorama.core.gallery import illustrate, pending, strip
from diorama.core.plan import Plan
from diorama.core.run import create
from diorama.launch.local import launch

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


def test_controls_of_codes_have_pictures_too(tmp_path):
    """Pictures show fewer frames than are scored, and a control answers about all of them."""
    plan = Plan(["sprites(counts=(3, 3, 8, 8, 8))"], ["represent/random"], ["mig(frames=600)"], [], 1, 0, True)
    made = create(tmp_path / "run", plan)
    launch(made, 1)
    illustrate(made)
    assert not pending(made)
    drawn = {made.cell_folder(cell): cell.control for cell in made.cells if cell.control != "dose"}
    assert all(len(list(folder.glob("keep/*.webp"))) == 1 for folder in drawn) and "oracle" in drawn.values()


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local:1", "local:2"])
def test_a_method_is_not_asked_again_for_pictures_of_what_it_was_scored_on(diorama, tmp_path, on):
    """Answers are counted where they are made: every case once, whichever turn out to be the worst."""
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(
        "import os\n"
        "import numpy as np\n"
        "from diorama import Heatmap\n"
        "class Counted:\n"
        "    targeted = True\n"
        "    def explain_targets(self, model, image, targets):\n"
        "        with open(os.environ['COUNT'], 'a') as file:\n"
        "            file.write('asked\\n')\n"
        "        return [Heatmap(image.mean(axis=2) - 0.3, True) for _ in targets]\n"
        "    def explain(self, model, images, targets):\n"
        "        return [self.explain_targets(model, x, [t])[0] for x, t in zip(images, targets)]\n"
    )
    os.environ["COUNT"] = str(tmp_path / "count")
    try:
        words = ["-w", "birds", "-M", "birds_cnn", "-m", "./mine.py:Counted", "-p", "single_deletion", "-n", "20"]
        assert diorama("run", *words, "-o", "run", "--on", on).returncode == 0
        assert len((tmp_path / "count").read_text().splitlines()) == 20
    finally:
        del os.environ["COUNT"]
    values = {}
    for part in (tmp_path / "run").glob("cells/*/*/rows/*.jsonl"):
        rows = [json.loads(line) for line in part.read_text().splitlines()]
        values |= {row["case"]: row["value"] for row in rows if row.get("metric") == "sd" and row["value"] is not None}
    drawn = {json.loads(p.read_text())["case"] for p in (tmp_path / "run").rglob("keep/*.json")}
    assert drawn == set(sorted(values, key=lambda case: (values[case], case))[:6])


def test_this_looks_like_that_shows_the_strongest_boxes_beside_their_prototypes():
    from diorama.core.answers import Boxes
    from diorama.protocols.parts.pictures import looks_like

    image = np.zeros((64, 64, 3), np.float32)
    image[8:24, 8:40] = (0.2, 0.4, 0.6)  # what the strongest box holds, twice as wide as high
    image[40:56, 40:56] = (0.7, 0.1, 0.3)
    corners = np.array([[0, 0, 4, 4], [8, 8, 40, 24], [40, 40, 56, 56], [1, 1, 5, 5]])
    patches = np.stack([np.full((8, 8, 3), v, np.float32) for v in (0.1, 0.35, 0.65, 0.9)])
    where, *pairs = looks_like(Boxes(corners, np.array([0.5, 3.0, 2.0, 0.1]), patches), image)
    assert [panel.caption for panel in pairs] == [
        *("this", "looks like that: similarity × weight 3.00"),
        *("this", "looks like that: similarity × weight 2.00"),
        *("this", "looks like that: similarity × weight 0.50"),
    ]
    this, that = pairs[0].image, pairs[1].image
    assert this.shape == that.shape == (144, 144, 3)
    np.testing.assert_allclose(this[72, 72], (0.2, 0.4, 0.6), atol=1e-6)
    np.testing.assert_allclose(this[20, 72], 1.0)  # its shape is kept: white above and below
    np.testing.assert_allclose(that[72, 72], 0.35, atol=1e-6)
    np.testing.assert_allclose(pairs[2].image[72, 72], (0.7, 0.1, 0.3), atol=1e-6)
    assert (this[0, 0] == that[0, 0]).all() and (this[0, 0] != pairs[2].image[0, 0]).any()  # a colour for each pair
    np.testing.assert_allclose(where.image[8, 20], this[0, 0])  # and the same around its box
    np.testing.assert_allclose(where.image[16, 20], (0.2, 0.4, 0.6), atol=1e-6)
    assert (image[8, 20] == np.array((0.2, 0.4, 0.6), np.float32)).all()  # the frame's own picture is left as it was
