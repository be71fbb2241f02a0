"""The virtual capture against exact truth: the noise-free floor, and what noise, motion and one light cost."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("embreex")

from diorama.capture.virtual import Photographs, develop, errors, noisy, photograph
from diorama.worlds.tabletop.tabletop import Tabletop
from studies.intrinsic import capture as studies
from studies.intrinsic.capture import Condition, markdown

#: The most that R, S and C are off without noise, motion and interreflection. Flat paint: rounding. Textured: pixels in
#: which reflectance and light vary together, where the mean of a product is not the product of means.
FLOOR = {"rgb": {"R": 1e-6, "S": 1e-6, "C": 1e-6}, "textured": {"R": 0.06, "S": 0.05, "C": 1e-6}}


@cache
def taken(surface: str, far: float = 0.0, seed: int = 0) -> Photographs:
    world = Tabletop(size=64, samples=32, objects=3, surface=surface, fill=0.05)
    return photograph(world, world.scene_at(seed, 0)[1], moved=(0.8 * far, -0.6 * far))


@pytest.mark.parametrize("surface", ["rgb", "textured"])
@pytest.mark.parametrize("seed", [0, 2009])  # 2009: a scene that neither rules nor constants were set on
def test_noise_free_floor(surface, seed):
    """Flat paint: the pipeline is exact but for rounding. Textures: the stated floor."""
    photographs = taken(surface, seed=seed)
    found = errors(develop(photographs, aligned=False), photographs)
    assert all(found[layer] <= FLOOR[surface][layer] for layer in "RSC"), found


def test_floor_holds_beside_a_slit_thinner_than_a_pixel():
    """Between the ears of this rabbit pixels see the background, though the part map of the picture does not say so."""
    world = Tabletop(size=64, samples=16, objects=3, surface="textured", fill=0.05)
    scene = world.do(world.scene_at(2009, 1)[1], albedo=dict(enumerate(studies.FLAT)))
    photographs = photograph(world, scene)
    assert (photographs.parts != photographs.frame.truth["parts"])[develop(photographs, False).mask].sum() == 0
    found = errors(develop(photographs, aligned=False), photographs)
    assert all(found[layer] <= FLOOR["rgb"][layer] for layer in "RSC"), found
    spoilt = replace(photographs, parts=photographs.frame.truth["parts"])
    assert errors(develop(spoilt, aligned=False), spoilt)["R"] > 0.005


def test_layers_explain_the_image():
    capture = develop(taken("rgb"), aligned=False)
    m = capture.mask
    np.testing.assert_allclose(capture.original[m], (capture.diffuse + capture.specular)[m])
    product = capture.reflectance * capture.shading
    np.testing.assert_allclose(product[m], capture.diffuse[m], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(capture.original[m], taken("rgb").frame.image[m], rtol=1e-5)
    assert not capture.shading[~m].any()


def test_noise_costs_and_two_lights_cost_less():
    clean = taken("textured")
    found = [errors(develop(noisy(clean, s), False), clean) for s in (0.003, 0.01, 0.03)]
    for layer in "RSC":
        assert found[0][layer] < found[1][layer] < found[2][layer]
    assert found[1]["R"] < errors(develop(noisy(clean, 0.01), False, lights=1), clean)["R"]
    assert found[1]["C"] == pytest.approx(0.01 / np.sqrt(2) / _level(clean), rel=0.1)  # σ·√2/2 in each channel


def _level(photographs: Photographs) -> float:
    inside = develop(photographs, False).mask & photographs.lit
    return float(np.sqrt(np.mean(photographs.frame.image[inside].astype(float) ** 2)))


def test_alignment_repairs_a_moved_camera():
    moved = taken("textured", 0.75)
    as_taken, aligned = develop(moved, aligned=False), develop(moved)
    assert np.hypot(*np.subtract(aligned.shift, (0.6, -0.45))) < 0.08
    before, after = errors(as_taken, moved), errors(aligned, moved)
    assert after["S"] < 0.5 * before["S"]
    assert after["R"] < before["R"]


def test_a_capture_is_repeatable_and_takes_one_light():
    world = Tabletop(size=32, samples=4)
    shot = photograph(world, world.scene_at(0, 0)[1], (0,), (0.3, 0.1))
    a, b, other = (develop(noisy(shot, 0.01, seed), lights=1).reflectance for seed in (4, 4, 5))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, other)


def test_study_has_every_condition(monkeypatch):
    monkeypatch.setattr(studies, "NOISE", (0.01,))
    monkeypatch.setattr(studies, "MOVED", (0.5,))
    monkeypatch.setattr(studies, "TABLES", (0.0,))
    rows = studies.study(size=32, samples=2, scenes=1)
    assert [row.study for row in rows] == [
        *["floor"] * 4,
        *["noise"] * 2,
        *["misalignment"] * 4,
        *["interreflection"] * 2,
    ]
    assert all(np.isfinite([row.R, row.S, row.C]).all() for row in rows)
    assert len(markdown(rows).splitlines()) == len(rows) + 2
    assert isinstance(rows[0], Condition)
