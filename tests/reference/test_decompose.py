"""The classical algorithms against slow, paper-shaped versions; analytic cases; the published table on the real data."""

import json
from dataclasses import replace

import numpy as np
import pytest

from diorama.api import run
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.scene import rng
from diorama.report.summary import read_results
from diorama.worlds.mondrian import Mondrian
from tests.conftest import REPOSITORY
from tests.reference import retinex_loop

GOLDEN = json.loads((REPOSITORY / "tests" / "golden" / "mit_lmse.json").read_text())
METHODS = ["baseline", "retinex_gray", "retinex_color", "weiss", "weiss_retinex"]


@pytest.fixture(scope="module")
def frames():
    world = Mondrian(size=20, patches=4)
    scene = world.sample(rng(3, "test"))
    return world.render([scene, *(world.do(scene, light=i) for i in range(1, 11))])


def decompose(spec, frames):
    return build("method", spec).object.decompose(frames)


def proportional(a, b, mask):
    """Equal on the mask up to one factor: reconstruction leaves a constant free."""
    ratio = a[mask] / b[mask]
    return np.allclose(ratio, ratio.mean(), rtol=1e-4)


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.2, 5.0])
def test_gray_retinex_equals_the_loop(frames, threshold):
    layers = decompose(f"retinex_gray(threshold={threshold})", frames)
    mask = frames[0].mask
    r, s = retinex_loop.retinex_gray(frames[0].image.astype(float), mask, threshold)
    assert proportional(layers.reflectance[..., 0], r, mask)
    assert proportional(layers.shading[..., 0], s, mask)


@pytest.mark.parametrize(("brightness", "chroma"), [(0.1, 0.1), (1.0, 0.05), (0.05, 1.0)])
def test_colour_retinex_equals_the_loop(frames, brightness, chroma):
    layers = decompose(f"retinex_color(brightness={brightness}, chroma={chroma})", frames)
    mask = frames[0].mask
    r, s = retinex_loop.retinex_color(frames[0].image.astype(float), mask, brightness, chroma)
    assert proportional(layers.reflectance[..., 0], r, mask)
    assert proportional(layers.shading[..., 0], s, mask)


@pytest.mark.parametrize(("spec", "threshold"), [("weiss", 0.0), ("weiss_retinex(threshold=0.1)", 0.1)])
def test_weiss_equals_the_loop(frames, spec, threshold):
    layers = decompose(spec, frames)
    mask = frames[0].mask
    lights = [frame.image.astype(float) for frame in frames[1:]]
    r, s = retinex_loop.weiss(frames[0].image.astype(float), lights, mask, threshold)
    assert proportional(layers.reflectance[..., 0], r, mask)
    assert proportional(layers.shading[..., 0], s, mask)


def test_shading_times_reflectance_is_the_image(frames):
    mask = frames[0].mask
    for spec in (
        "retinex_gray(threshold=0.1)",
        "weiss",
        "baseline(everything=shading)",
        "baseline(everything=reflectance)",
    ):
        layers = decompose(spec, frames)
        assert np.allclose(
            (layers.reflectance * layers.shading)[mask, 0], frames[0].image.mean(axis=2)[mask], rtol=1e-4
        )


def test_the_baseline_is_the_image_itself_where_it_is_dark_too(frames):
    """The released estimator hands the image on; only the algorithms that take a logarithm clip it (at 3 of 257)."""
    dark = replace(frames[0], image=frames[0].image * np.float32(0.01))
    seen, mask = dark.image.mean(axis=2), dark.mask
    assert (seen[mask] < 3 / 257).mean() > 0.9
    assert np.allclose(decompose("baseline(everything=shading)", [dark]).shading[mask, 0], seen[mask], atol=1e-7)
    assert np.allclose(
        decompose("baseline(everything=reflectance)", [dark]).reflectance[mask, 0], seen[mask], atol=1e-7
    )


def test_a_threshold_above_everything_leaves_constant_reflectance(frames):
    layers = decompose("retinex_gray(threshold=100)", frames)
    assert np.allclose(layers.reflectance[frames[0].mask], 1)


def test_an_unchosen_threshold_says_what_to_give(frames):
    with pytest.raises(InputError, match=r"0\.373"):
        decompose("retinex_gray", frames)


@pytest.mark.slow
def test_published_table_on_the_real_objects(mit_root, tmp_path):
    """Section 6.4 of the spec: means to 2e-4, every object to the printed digits, the parameters that were chosen."""
    document = run([f"mit_intrinsic(root={mit_root})"], METHODS, ["lmse"], controls=True, out=tmp_path, processes=2)
    cells = {cell["method"]: cell for cell in document["cells"]}
    for method, mean in GOLDEN["mean"].items():
        assert cells[method]["summary"]["lmse"]["mean"] == pytest.approx(mean, abs=1e-4), method
        assert cells[method]["summary"]["lmse"]["n_ok"] == 16
    results = read_results(tmp_path)
    values = {
        c.manifest["method"]: {r.case: r.value for r in c.of("lmse")}
        for c in results.cells
        if not c.manifest["control"]
    }
    for name, row in GOLDEN["objects"].items():
        assert [values[m][name] for m in METHODS] == pytest.approx(row, abs=5.5e-4), name
    for name, value in GOLDEN["retinex_color_four_digits"].items():
        assert values["retinex_color"][name] == pytest.approx(value, abs=6e-5), name
    assert [c["point"] for c in cells["retinex_gray"]["chosen"]] == [
        {"threshold": pytest.approx(10 ** (-3 + 9 * 4 / 14))}
    ]
    assert [c["point"] for c in cells["retinex_color"]["chosen"]] == [
        {"brightness": 1.0, "chroma": pytest.approx(10**-1.125)}
    ]
    assert {round(c["point"]["threshold"], 3) for c in cells["weiss_retinex"]["chosen"]} == {0.1, 0.193}

    assert cells["oracle"]["summary"]["lmse"]["mean"] == pytest.approx(0, abs=1e-12)
    residuals = [
        row.value for c in results.cells if c.manifest["control"] == "oracle" for row in c.of("truth_residual")
    ]
    assert min(residuals) > 0.02 and max(residuals) < 0.085
    dose = [point["mean"] for point in cells["dose"]["curve"]["lmse"]]
    assert dose == sorted(dose) and dose[0] == pytest.approx(0, abs=1e-12) and dose[-1] > 0.05
    ranks = {m: cells[m]["mean_rank"] for m in METHODS}
    assert min(ranks, key=ranks.get) == "weiss_retinex" and max(ranks, key=ranks.get) == "baseline"
