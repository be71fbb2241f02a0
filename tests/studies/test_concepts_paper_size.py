"""The page at the paper's image size from a tiny run, and the table of what the full scale costs."""

import json
from dataclasses import asdict

import pytest

from studies import page_kit
from studies.concepts import costs, page, paper_size

TINY = page.Scale(32, 2, 4, 2, 4, 8, 3, samples=(1, 1))
ONE = {"a": 1.0, "b": 1.0, "c": 1.0}
MADE = costs.Costs(1.0, 0.5, 0.01, 2.0, 1.5, 3.0, 44.0, ONE, ONE, dict.fromkeys(ONE, 1e-6), ONE, "commit x")


@pytest.fixture
def measured(monkeypatch, tmp_path):
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(asdict(MADE)))
    monkeypatch.setattr(costs, "FILE", path)


def test_the_full_scale_is_the_papers_counts(measured):
    stages = {what: (count, seconds) for what, count, seconds in costs.rows(MADE)}
    images = 4 * (120 * 100 + 90 * 44)
    by_start = {what.split(",")[0]: found for what, found in stages.items()}
    assert by_start["forward"] == (f"3 × {images + 2000:,}", 3.0 * (images + 2000))
    assert by_start["lights traced"] == ("960", 960.0)
    assert by_start["textured paints traced"] == ("2,000", 1000.0)
    assert by_start["100 CAVs of each set"] == ("3 × 840", 3 * 840.0)
    report = costs.report()
    assert report.splitlines()[-1].startswith("| all |") and "a Δi set of 44 44.0 s" in report


def test_the_scales_are_said_beside_the_papers():
    said = page.scaled_down(page.MIDDLE)
    assert "| pixels | 256 | 256 |" in said and "| images of a set | all | all |" in said and "light paths" in said
    assert "light paths" not in page.scaled_down(page.SMALL)
    assert page.SMALL.csm("published") == "csm(variant=published, tests=120, randoms=400, runs=100)"
    assert page.MIDDLE.world(images=None) == "concepts(scenes=10, samples=4, size=256)"


def a_little_work():
    start = page_kit.cpu_seconds()
    while page_kit.cpu_seconds() < start + 0.02:
        sum(range(10_000))


def test_processor_time_adds_up_over_calls(tmp_path):
    spent = page_kit.Spent(tmp_path / "a" / "spent.json")
    for _ in range(2):
        spent.of(a_little_work)
    (total,) = spent.known().values()
    assert total >= 0.039 and "CPU minutes over all calls" in spent.sentence()


@pytest.mark.slow
def test_a_tiny_run_fills_the_page(measured, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    monkeypatch.setattr(page, "BUILD", tmp_path)
    monkeypatch.setattr(page_kit, "PROCESSES", 1)
    found = {name: page.Job(name, plan) for name, plan in paper_size.plans(TINY, None).items()}
    for job in found.values():
        job.compute()
    rows = {name: job.rows() for name, job in found.items()}
    sets = paper_size.gathered(rows, "csm")
    assert list(sets) == list(page.paper.SETTINGS)
    assert all(len({r.case for r in some}) == 2 for of in sets.values() for some in of.values())
    text = paper_size.page(TINY, rows, "Its runs took no time.", page.scaled_down(TINY))
    assert "2 of rgb-complex" in text and "Not computed yet" not in text
    assert "all three networks: textured-simple, textured-complex, rgb-complex." in paper_size.computed(
        {"rgb-simple": {}}
    )
    assert paper_size.gathered({"middle/csm/rgb-simple/iid_timelapse": rows["middle/tests"]}, "csm").keys() == {
        "rgb-simple"
    }
    assert "{" not in text and text.count("iid_supervised (CGIID-like)") >= 5
