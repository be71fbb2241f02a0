"""Birds from the command line: contact sheets, part maps, the official layout, figures, and clear errors."""

import json
import shutil

import pytest

pytest.importorskip("embreex", reason="the renderer is not installed (pip install 'diorama[render]')")

from diorama.io.images import read_png
from tests.conftest import DATA
from tests.contract.test_cli import one_line


@pytest.mark.slow
def test_render_with_contact_sheets_part_maps_and_do(diorama, tmp_path):
    result = diorama("render", "birds", "-n", "4", "-o", "out")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "out/contact.png"
    assert (tmp_path / "out" / "contact_parts.png").exists()
    parts = read_png(tmp_path / "out" / "truth" / "0-00000" / "parts.png")
    assert diorama("render", "birds", "-n", "4", "-o", "bald", "--do", "beak=none").returncode == 0
    without = read_png(tmp_path / "bald" / "truth" / "0-00000" / "parts.png")
    assert (parts == 2).any() and not (without == 2).any()
    manifest = json.loads((tmp_path / "bald" / "manifest.json").read_text())
    assert manifest["do"] == {"beak": None} and manifest["cases"][0]["scene"]["params"]["parts"]["beak"] is None


@pytest.mark.slow
def test_official_layout_is_written_and_read_back(diorama, tmp_path):
    assert diorama("render", "birds(size=64)", "-n", "2", "-o", "fb", "--layout", "funnybirds").returncode == 0
    assert {"classes.json", "parts.json", "dataset_train.json", "dataset_test.json", "test_interventions"} <= {
        path.name for path in (tmp_path / "fb").iterdir()
    }
    assert diorama("check", "funnybirds_recorded(root=fb)").returncode == 0


@pytest.mark.slow
def test_figures(diorama, tmp_path):
    assert diorama("render", "birds(size=64)", "-n", "8", "-o", "figures", "--layout", "figures").returncode == 0
    for name in ("figure6_parts.png", "figure8_samples.png"):
        assert read_png(tmp_path / "figures" / name).ndim == 3
    one_line(diorama("render", "mondrian", "-o", "x", "--layout", "figures"), 2, "cannot be written in layout")


@pytest.mark.parametrize(
    ("spec", "says"),
    [("birds(size=0)", "size=0"), ("birds(parts=nowhere)", "no such folder"), ("birds(split=dev)", "'dev'")],
)
def test_bad_parameters(diorama, spec, says):
    one_line(diorama("render", spec, "-o", "x"), 2, says)


def test_bad_changes(diorama):
    one_line(diorama("render", "birds", "-o", "x", "--do", "beek=none"), 2, "beek", "beak")
    one_line(diorama("render", "birds", "-o", "x", "--do", "wing=77"), 2, "77")


@pytest.mark.slow
def test_damaged_official_meshes_are_named(diorama, tmp_path):
    if not (DATA / "funnybirds" / "bird01.glb").exists():
        pytest.skip(f"the official part meshes are not in {DATA / 'funnybirds'} (set DIORAMA_DATA)")
    folder = tmp_path / "parts"
    shutil.copytree(DATA / "funnybirds", folder, ignore=shutil.ignore_patterns("*.png"))
    (folder / "tail" / "tail01.glb").write_bytes((folder / "tail" / "tail01.glb").read_bytes()[:300])
    one_line(diorama("render", f"birds(parts={folder})", "-n", "9", "-o", "x"), 2, "tail01.glb")
    (folder / "beak" / "beak02.glb").unlink()
    one_line(diorama("render", f"birds(parts={folder})", "-n", "9", "-o", "x"), 2, "glb")
