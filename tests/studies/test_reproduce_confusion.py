"""The script of the mosaic results on a few small pictures: jobs, tables from rows, the paper's table and its claim."""

import pytest

from diorama.io.images import read_png
from studies import page_kit
from studies.confusion import page
from tests.conftest import REPOSITORY
from tests.unit.test_mosaic import write_folder


@pytest.fixture
def script(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "BUILD", tmp_path / "build")
    monkeypatch.setattr(page_kit, "PROCESSES", 1)
    return page


def test_jobs_tables_and_figures_on_small_pictures(script, tmp_path):
    folder = write_folder(tmp_path / "photos", {"cat": 6, "dog": 6})
    world, model = f"mosaic(source={folder}, cell=32, per_class=3)", f"{REPOSITORY}/tests/tiny_models.py:Two"
    setup = script.Setup(script.DOGS, script.LITE, world, model, f"photos(source={folder}, size=64)")
    for job in ((setup, "accuracy", 0), (setup, script.IG, 4), (setup, script.CAM, 6)):
        script.compute(job)
    table = script.our_table([setup]).splitlines()
    assert len(table) == 4 and "| IG | 4 | " in table[2] and "| Grad-CAM | 6 | " in table[3]
    assert table[3].count("–") == 2  # recall and F1 are withheld
    assert setup.accuracy in [i / 12 for i in range(13)]
    (point,) = script.our_points([setup])
    assert point[0] == "IG" and set(point[2]) == {"accuracy", "recall", "f1"}
    found = {(script.DOGS, script.LITE): setup}
    page = script.page(found, [], [])
    assert "{" not in page and table[2] in page
    script.figure(setup, 1, tmp_path / "f.png", (script.CAM, script.IG))
    script.swap_figure(setup, 0, tmp_path / "s.png", (script.IG,))
    assert read_png(tmp_path / "f.png").shape[1] > 3 * 192 and read_png(tmp_path / "s.png").shape[1] > 5 * 192
    assert [job[1] for job in script.jobs(found, [], [])][:3] == ["accuracy", script.CAM, script.LRP]


def test_the_paper_s_table_and_its_claim(script):
    rows = script.published()
    assert len(rows) == 24 and len(script.paper_table().splitlines()) == 26
    for row in rows:
        if row["method"] == "Grad-CAM":
            assert row["precision"] == row["accuracy"] and not row["recall"]
    lines = script.claim(script.their_points(), "the paper")
    assert [line[1:3] for line in lines] == [["LIME", "6"], ["LRP", "6"], ["IG", "6"]]
    follows = [("LRP", a, {"accuracy": a, "recall": -a, "f1": 1 - a}) for a in (0.5, 0.6, 0.8, 0.9, 0.95)]
    assert str(script.claim(follows, "x")[0]).count("+1.00 (p 0.00)") == 1
    assert str(script.claim(follows, "x")[0]).count("−1.00 (p 0.00)") == 2
