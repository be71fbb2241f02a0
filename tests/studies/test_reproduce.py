"""The script of the intrinsic results on three small staged objects: tables from rows, figures that can be opened."""

import pytest

from diorama.io.images import read_png
from studies.intrinsic import page


@pytest.fixture
def script(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "BUILD", tmp_path / "build")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "figures")
    monkeypatch.setattr(page, "PROCESSES", 1)
    monkeypatch.setattr(page, "SIZES", (10, 20))  # the objects are 48 pixels
    return page


def test_tables_and_figures_of_small_objects(script, mini_mit):
    world = f"mit_intrinsic(root={mini_mit}, objects=('box', 'deer', 'cup1'))"
    l2 = script.run("mit", world, script.CLASSICAL, ["lmse"])
    l1 = script.run("l1", world, [f"retinex_color({script.COLOUR}, norm=l1)"], ["lmse"])
    assert script.values("mit", "retinex_color").keys() == {"box", "deer", "cup1"}
    assert "figure4_lmse.svg" in script.figure4(l2)
    assert script.named(l1, "retinex_color")["cases"] == 3
    rows = script.windows(world).splitlines()
    assert len(rows) == 2 + len(script.CLASSICAL) and "(" in rows[2]
    assert script.specular(l2, l2).splitlines()[2].endswith("1.00 |")
    script.components(world, script.FIGURES)
    script.figure5("mit", ("box", "cup1"), script.FIGURES)
    script.figure6("mit", "l1", ("box",), script.FIGURES)
    script.pairs(script.FIGURES / "pairs.svg", "LMSE", ("L2", "L1"), {"box": (0.1, 0.05), "cup1": (0.2, 0.2)})
    for name, least in (("figure1", 5), ("figure3", 5), ("figure5", 2 + len(script.CLASSICAL)), ("figure6", 4)):
        picture = read_png(script.FIGURES / f"{name}.png", bits=8)
        assert picture.shape[1] > 70 + least * 80 and picture.std() > 20
    for path in script.FIGURES.glob("*.svg"):
        assert path.read_text(encoding="utf-8").startswith("<svg")


def test_what_was_computed_is_kept_until_its_source_changes(script, monkeypatch):
    calls = []
    compute = lambda: calls.append(1) or "value"  # noqa: E731
    assert [script.kept("x", script.capture, compute) for _ in range(2)] == ["value", "value"] and len(calls) == 1
    monkeypatch.setattr(script, "source_key", lambda path: {"source": "other"})
    script.kept("x", script.capture, compute)
    assert len(calls) == 2
