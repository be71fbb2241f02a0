"""The report's table of one set of answers under every protocol."""

import math

import pytest

from diorama.api import run
from diorama.report.sections import name_runs, sections
from diorama.report.spread import geometric_mean, spreads
from diorama.report.summary import read_results
from diorama.report.write import write_report

PROTOCOLS = ["lmse", "lmse(preset=fan2018)", "si_mse", "psnr"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("spread")
    methods = ["retinex_color(brightness=1.0, chroma=0.075)", "baseline"]
    run(["mondrian(size=48, patches=5)"], methods, PROTOCOLS, cases=3, controls=True, out=out)
    return out


def found(folder):
    return spreads(sections(name_runs([read_results(folder)])))


def test_one_row_for_each_protocol_with_its_settings_and_means(folder):
    results = read_results(folder)
    fixed, tuned = found(folder)
    assert fixed.title.endswith("retinex_color(brightness=1.0, chroma=0.075)")
    assert [row[0].partition("(")[0].strip() for row in fixed.rows] == ["lmse", "lmse", "si_mse", "psnr"]
    cells = [c for c in results.cells if "retinex" in (c.manifest["method"] or "")]
    for row, cell in zip(fixed.rows, cells, strict=True):
        values = [r.value for r in cell.of(cell.metric)]
        said = dict(zip(fixed.heads, row, strict=True))
        assert float(said["mean"]) == pytest.approx(sum(values) / 3, rel=2e-3)
        assert said["encoding"] == cell.manifest["settings"]["encoding"]
        assert said["mean type"] == cell.manifest["settings"]["mean"]
        if cell.metric != "psnr":
            assert float(said["geometric mean"]) == pytest.approx(math.exp(sum(map(math.log, values)) / 3), rel=2e-3)
    assert "2 protocols call their number lmse" in fixed.notes[0]
    assert any("chosen separately" in note for note in tuned.notes) and not any(
        "chosen separately" in n for n in fixed.notes
    )


def test_the_table_is_in_every_format(folder):
    for format in ("md", "text", "tex"):
        assert "one set of answers under every protocol" in write_report([folder], format=format).lower()
    page = write_report([folder]).read_text(encoding="utf-8")
    assert page.count("One set of answers under every protocol") == 1 and "scale alignment" in page


def test_one_protocol_is_no_spread(tmp_path):
    run(["mondrian(size=32, patches=4)"], ["weiss"], ["lmse"], cases=2, out=tmp_path)
    assert found(tmp_path) == []
    assert "every protocol" not in write_report([tmp_path]).read_text(encoding="utf-8")


def test_geometric_mean():
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4)
    assert geometric_mean([]) is None and geometric_mean([0.0, 1.0]) is None
