"""The page of speed is made of what the benchmarks kept: every claim, plots, what was not measured, whether it was idle."""

import importlib
import json

import pytest

from diorama.core.catalogue import build

torch = pytest.importorskip("torch")

page = importlib.import_module("benchmarks._speed_page")
kept = importlib.import_module("benchmarks._print")
growth = importlib.import_module("benchmarks.growth")
passes = importlib.import_module("benchmarks.passes")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(page, "transfers", lambda: "## Accelerators")
    return tmp_path


def grown() -> dict[str, float]:
    """Figures of growth: a second for a hundred cases, and flat memory."""
    found = {f"cells_{n}_{unit}": n / 100 for n in growth.CELLS for unit in ("s", "mb")} | {"cells_time_exponent": 1.0}
    for run in ("cnn", "layers"):
        for what, sizes in (("cases", growth.CASES), ("methods", growth.METHODS), ("size", growth.SIZES)):
            found |= {f"{run}_{what}_{n}_s": n / 100 for n in sizes} | {f"{run}_{what}_{n}_mb": 400.0 for n in sizes}
            found |= {f"{run}_{what}_time_exponent": 1.0, f"{run}_{what}_memory_exponent": 0.0}
    return found


def test_the_page_says_what_was_wanted_measured_and_met(folder):
    about = {"date": "2026-01-01", "cores": 2, "processor": "P", "python": "3.11", "load_before": 0.1}
    kept.keep("growth", grown(), about)
    kept.keep("intrinsic", {"mit_table_seconds": 9.0}, about | {"load_before": 7.0})
    text = page.write_page().read_text()
    assert "| planning of 400 cells, s | ≤ 3 | 4 | **no** |" in text
    assert "| time against cases, network: exponent | ≤ 1.05 | 1 | yes |" in text
    assert "| the MIT table on two cores, s | ≤ 8 | 9 | **no** |" in text
    assert "| evaluation of FunnyBirds against the reference loop as its users have it | ≥ 15 | not measured |" in text
    assert "**The machine was not idle** (load before it) for intrinsic (7)" in text
    for line in (line for line in text.splitlines() if line.startswith("![")):
        assert (folder / line.partition("(")[2][:-1]).read_text().startswith("<svg")


def passed() -> dict[str, float]:
    """Figures of passes: our layout is twice as fast as torch's own, the twin and engines three times."""
    rates = {"eager": 10.0, "eager_ours": 20.0, "folded": 30.0}
    engines = dict.fromkeys(("onnxruntime", "openvino", "best"), 30.0)
    found = {f"{name}_folded_apart": 1e-7 for name in passes.NETWORKS}
    for name in passes.NETWORKS:
        found |= passes._figures(f"{name}_forward", rates | engines) | passes._figures(f"{name}_gradient", rates)
    return found | passes.means(found)


def test_passes_are_against_torchs_own_layout_and_the_page_says_what_remains_against_ours(folder):
    kept.keep("passes", passed(), {"date": "D", "cores": 2, "processor": "P", "python": "3.11", "load_before": 0.1})
    text = page.write_page().read_text()
    assert "| folded torch against eager torch in its own layout, with the gradient | ≥ 1.15 | 3 | yes |" in text
    assert "| geometric mean over eager | 1 | 2.00 | 3.00 | 3.00 |" in text
    assert "remain 1.50 for the best engine, 1.50 for folded torch forward and 1.50 with the gradient" in text


def test_the_usual_network_has_torchs_own_layout_and_gives_the_same():
    model = build("model", "birds_cnn").object
    images = torch.rand(2, 3, 128, 128)
    first = passes.usual("birds_cnn", model)
    assert all(weights.is_contiguous() for weights in first.parameters())
    assert torch.allclose(first(images), model.module(images), atol=1e-3)


def test_every_claim_names_a_benchmark_of_the_page():
    assert {name for name, *_ in page.WANTED} <= set(page.NAMES)


def test_exponents_are_slopes():
    assert growth.exponent((1, 2, 4), [3.0, 12.0, 48.0]) == pytest.approx(2)
    assert growth.exponent((64, 128), [5.0, 5.0]) == pytest.approx(0)


def test_what_is_kept_says_where_it_was_measured(folder):
    kept.keep("passes", {"x": 1.0}, kept.machine(("numpy",)))
    found = json.loads((folder / "passes.json").read_text())
    assert found["figures"] == {"x": 1.0} and {"date", "processor", "load_before", "libraries"} <= set(found["about"])
