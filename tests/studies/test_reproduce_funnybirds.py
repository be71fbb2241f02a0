"""The FunnyBirds study on a few birds: tables from rows, planted orders, figures that can be opened."""

import numpy as np
import pytest

from diorama.io.images import read_png
from studies.funnybirds import figures, signs, stability, table2

pytest.importorskip("torch")


def cell(name, ours, paper, half=0.0):
    """A cell as the results document has it, with one metric."""
    told = {"mean": ours, "lo": ours - half, "hi": ours + half}
    return {"method": name, "summary": {"sd": told}, "paper": {"sd": paper}, "variant": "corrected", "control": None}


def test_a_correlation_is_sure_where_scores_are_and_open_where_they_are_not():
    sure = [cell(str(i), 0.1 * i, 0.2 * i) for i in range(6)]
    assert table2.correlation(sure, "sd") == "+1.00 [+1.00, +1.00] (n=6)"
    against = [cell(str(i), 0.1 * i, -0.2 * i) for i in range(6)]
    assert table2.correlation(against, "sd").startswith("-1.00")
    wide = [cell(str(i), 0.1 * i, 0.2 * i, half=2.0) for i in range(6)]
    assert float(table2.correlation(wide, "sd").partition("[")[2].partition(",")[0]) < 0
    assert table2.correlation(sure[:2], "sd") == "–"


def test_how_far_scores_move_is_the_difference_of_two_runs():
    one = {method: {"summary": {m: {"mean": 0.5} for m in stability.COLUMNS}} for method in stability.METHODS}
    other = {method: {"summary": {m: {"mean": 0.5} for m in stability.COLUMNS}} for method in stability.METHODS}
    other["input_x_gradient"]["summary"]["sd"] = {"mean": 0.25}
    del other["integrated_gradients"]["summary"]["ts"]
    lines = list(stability.differences(2, "birds_vgg", one, other))
    assert [line.cells()[3:] for line in lines][1][6] == ".250 (.006)"
    assert lines[0].cells()[-2].startswith("– (")
    assert "mean difference .017 (" in stability.means(lines)  # one of fifteen differs, by .25
    assert "largest .250 for sd of input_x_gradient on birds_vgg (paper's largest .054)" in stability.means(lines)


@pytest.mark.slow
def test_rows_of_a_network_become_tables_and_pictures(monkeypatch, tmp_path):
    monkeypatch.setattr(table2, "BUILD", tmp_path)
    network = table2.Network("birds_cnn", "–", ("saliency",), (), ("grad_cam",))
    found = {"birds_cnn": table2.cells_of(network, table2.Size(6, 2, 2, processes=1))}
    lines = table2.scores(found, "corrected").splitlines()
    assert [line.split("|")[2].strip() for line in lines[2:]] == ["saliency", "oracle", "random", "grad_cam"]
    best = next(c for c in found["birds_cnn"] if c["control"] == "oracle" and c["variant"] == "corrected")
    assert f"| {table2.score(best, 'sd')} |" in table2.controls(found)
    assert len(table2.doses(found["birds_cnn"]).splitlines()) == 2 + len(
        next(c for c in found["birds_cnn"] if c["control"] == "dose")["doses"]
    )
    figures.figure3(found, tmp_path / "figure3.svg")
    assert (tmp_path / "figure3.svg").read_text().count("<image") == 1  # further methods have no bars
    figures.figure7(tmp_path / "figure7.png", [network], (0,))
    assert read_png(tmp_path / "figure7.png", bits=8).std() > 20


@pytest.mark.slow
def test_evidence_of_a_part_is_for_its_class_and_against_the_other():
    found = signs.evidence("birds_cnn", birds=6)
    assert found.birds == 6 and found.effect[0] > 0 > found.effect[1]
    assert found.absolute[0] > abs(found.signed[0]) and np.isfinite(found.absolute).all()
