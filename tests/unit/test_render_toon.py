"""Toon images against FunnyBirds' formulas, and layers against re-rendering, to the byte."""

import dataclasses
import hashlib
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from diorama.render import Camera, Instance, PointLight, Stage, Toon, mesh, toon_image, toon_layers
from diorama.render.colour import to_bytes
from diorama.render.mesh import rotation, scaling, translation
from diorama.render.toon import sample_offsets

LIBRARY = {
    "ball": mesh.sphere(64, 32),
    "box": mesh.box(),
    "ring": mesh.torus(),
    "cone": mesh.cone(24),
    "sheet": mesh.plane(),
}
PLAIN = Toon(outline=0.0)
EYE = (0.0, 0.0, 300.0)
CAMERA = Camera(EYE, (0, 0, 0), (0, 1, 0), 40.0)


def ball(radius=50.0, at=(0.0, 0.0, 0.0), colour=(1.0, 1.0, 0.0)) -> Instance:
    return Instance("ball", translation(at) @ scaling(radius), colour, object=3, part=7, layer="ball")


def stage_of(*instances, light=(0.0, 0.0, 300.0)) -> Stage:
    return Stage(LIBRARY, instances, CAMERA, [PointLight(light, (4.0, 4.0, 4.0))])


def random_stage(seed: int) -> Stage:
    r = np.random.default_rng(seed)
    instances = []
    for k in range(r.integers(2, 9)):
        size = (
            translation(r.uniform(-60, 60, 3))
            @ rotation(r.normal(size=3), r.uniform(0, 6))
            @ scaling(r.uniform(5, 40, 3))
        )
        if k % 3 == 1:
            size = size @ scaling((-1, 1, 1))
        name = r.choice(["ball", "box", "ring", "cone"])
        instances.append(Instance(name, size, tuple(r.random(3)), object=k, part=k % 3, layer=f"layer{r.integers(5)}"))
    return stage_of(*instances, light=tuple(r.uniform(-200, 200, 3)))


def rays(width: int, height: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width] + 0.5
    tangent = math.tan(math.radians(20))
    d = np.stack([(2 * x / width - 1) * tangent * width / height, (1 - 2 * y / height) * tangent, -np.ones_like(x)], -1)
    return d / np.linalg.norm(d, axis=-1, keepdims=True)


def sphere_hits(directions: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Distance to a sphere at the origin, and the closest approach of the ray to its centre."""
    along = -directions @ np.array(EYE)
    approach = np.sqrt(np.maximum(np.dot(EYE, EYE) - along**2, 0))
    return along - np.sqrt(np.maximum(radius**2 - approach**2, 0)), approach


def toon_reference(position: np.ndarray, normal: np.ndarray, light: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """FunnyBirds' shading as its description reads."""
    towards = light - position
    distance = np.linalg.norm(towards, axis=-1)
    lookup = (normal * towards).sum(-1) / distance / 2 + 0.5
    texel = np.minimum((lookup * 3).astype(int), 2)
    gradient = np.array([0, 51, 102])[texel] / 255
    attenuation = np.clip(1 - distance / 800, 0, 1)
    return to_bytes(np.clip(colour * (0x88 / 255 + 4 * gradient * attenuation)[..., None], 0, 1))


def test_unlit_colours_are_the_published_bytes():
    dark = dataclasses.replace(stage_of(ball(), ball(20, (60, 0, 0), (2 / 3,) * 3)), lights=[])
    image = toon_image(dark, 64, 64, look=PLAIN)["image"]
    assert {tuple(map(int, c)) for c in image.reshape(-1, 3)} == {(0x55, 0x55, 0x99), (193, 193, 0), (161, 161, 161)}


@pytest.mark.slow
def test_a_lit_sphere_follows_the_formula_pixel_by_pixel():
    light, colour = np.array([120.0, 150.0, 90.0]), np.array([0.2, 0.5, 0.9])
    picture = toon_image(stage_of(ball(colour=tuple(colour)), light=tuple(light)), 128, 96, look=PLAIN)
    directions = rays(128, 96)
    distance, approach = sphere_hits(directions, 50)
    position = EYE + distance[..., None] * directions
    expected = toon_reference(position, position / 50, light, colour)
    inside = approach < 49
    wrong = (np.abs(picture["image"].astype(int) - expected) > 1).any(-1) & inside
    assert wrong.sum() < 0.01 * inside.sum()  # facets move the edge of a tone by less than a pixel


def test_ids_and_depth_of_a_sphere():
    picture = toon_image(stage_of(ball()), 128, 96)
    directions = rays(128, 96)
    distance, approach = sphere_hits(directions, 50)
    inside, outside = approach < 49.7, approach > 50
    assert (picture["object"][inside] == 3).all() and (picture["part"][inside] == 7).all()  # no holes
    assert (picture["object"][outside] == -1).all() and np.isinf(picture["depth"][outside]).all()
    expected = distance * -directions[..., 2]
    clear = approach < 45
    np.testing.assert_allclose(picture["depth"][clear], expected[clear], rtol=1e-3)


@pytest.mark.parametrize("thickness", [0.003, 0.02])
def test_the_outline_has_its_clip_space_thickness(thickness):
    """At the silhouette of a distant sphere the clip normal lies in the image plane: t·width/2 pixels, less t·z."""
    size = 1024
    far = Camera((0, 0, 3000), (0, 0, 0), (0, 1, 0), 2.5)
    look = Toon(outline=thickness, far=1e5)
    stage = Stage(LIBRARY, [ball(radius=30, colour=(1, 1, 1))], far, [])
    row = toon_image(stage, size, size, look=look)["image"][size // 2, :, 0]
    black = np.flatnonzero(row == 0)
    left = black[black < size // 2]
    assert len(left) == pytest.approx(thickness * size / 2, abs=1.5)


def test_the_outline_is_in_the_image_but_not_in_the_ids():
    thick = Toon(outline=0.05)
    with_line, without = (toon_image(stage_of(ball()), 64, 64, look=look) for look in (thick, PLAIN))
    assert (with_line["object"] == without["object"]).all() and (with_line["depth"] == without["depth"]).all()
    assert (with_line["image"] == 0).all(-1).sum() > 50


@pytest.mark.parametrize("samples", [1, 2, 5, 8])
def test_ids_do_not_depend_on_the_samples(samples):
    plain, smooth = (toon_image(random_stage(3), 48, 48, n) for n in (1, samples))
    for name in ("object", "part", "depth"):
        np.testing.assert_array_equal(plain[name], smooth[name])


def test_samples_average_bytes():
    """One pixel over an edge: the mean of the sample bytes, rounded half up."""
    half = Instance("sheet", translation((100, 0, 0)) @ scaling(100), (1, 1, 1))
    stage = dataclasses.replace(stage_of(half), lights=[])
    n = 5
    covered = sum(x >= 0.5 for x, _ in sample_offsets(n))
    image = toon_image(stage, 3, 3, n, PLAIN)["image"]
    assert image[1, 1, 0] == (2 * (covered * 193 + (n - covered) * 0x55) + n) // (2 * n)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 8, 13, 16])
def test_sample_offsets_start_at_the_centre_and_fill_every_row_and_column(n):
    offsets = sample_offsets(n)
    assert offsets[0].tolist() == [0.5, 0.5]
    assert ((offsets >= 0) & (offsets < 1)).all()
    assert len(np.unique(offsets[:, 0].round(9))) == n


@given(st.integers(0, 10**6), st.sampled_from([1, 5]), st.sets(st.integers(0, 4)))
@settings(max_examples=40, deadline=None)
def test_every_subset_of_layers_is_the_re_render_to_the_byte(seed, samples, dropped):
    stage = random_stage(seed)
    layers = toon_layers(stage, 40, 32, samples)
    drop = {f"layer{i}" for i in dropped} & set(layers.names)
    kept = [instance for instance in stage.instances if instance.layer not in drop]
    if not kept:
        return
    again = toon_image(dataclasses.replace(stage, instances=kept), 40, 32, samples)
    composite = layers.composite(drop)
    for name, layer in again.items():
        assert layer.dtype == composite[name].dtype
        np.testing.assert_array_equal(composite[name], layer, err_msg=name)


def test_all_layers_dropped_leaves_the_background():
    layers = toon_layers(random_stage(1), 16, 16, 5)
    empty = layers.composite(layers.names)
    assert (empty["image"] == (0x55, 0x55, 0x99)).all() and (empty["object"] == -1).all()
    assert (layers.full["object"] >= 0).any()


def test_equal_depths_go_to_the_earlier_instance_also_across_layers():
    """Two equal spheres, the layers named against the order in which they are drawn."""
    first, second, third = (dataclasses.replace(ball(), layer=name, part=k) for k, name in enumerate("bab"))
    stage = stage_of(first, dataclasses.replace(second, colour=(1, 0, 0)), third)
    layers = toon_layers(stage, 32, 32)
    assert set(np.unique(layers.full["part"])) == {-1, 0}
    assert set(np.unique(layers.composite("b")["part"])) == {-1, 1}


def test_a_composite_leaves_the_layers_alone():
    layers = toon_layers(random_stage(5), 32, 32)
    before = layers.full["image"].copy()
    layers.composite(layers.names[:1])["image"][:] = 0
    np.testing.assert_array_equal(layers.composite()["image"], before)


def test_unknown_layers_are_named():
    with pytest.raises(ValueError, match="no layer 'beak'"):
        toon_layers(random_stage(5), 8, 8).composite({"beak"})


def test_front_faces_only():
    facing = Instance("sheet", scaling(40), (1, 1, 1))
    away = Instance("sheet", rotation((1, 0, 0), np.pi) @ scaling(40), (1, 1, 1))
    assert (toon_image(stage_of(facing), 16, 16, look=PLAIN)["object"] >= 0).any()
    assert (toon_image(stage_of(away), 16, 16, look=PLAIN)["object"] == -1).all()


def test_a_floor_through_the_camera_plane_is_clipped_at_near():
    """The floor y = −1 seen from (0, 0, 0): the pixel centre at slope s sees depth 1/s."""
    floor = Instance("sheet", translation((0, -1, 0)) @ rotation((1, 0, 0), -np.pi / 2) @ scaling(1000), (1, 1, 1))
    stage = Stage(LIBRARY, [floor], Camera((0, 0, 0), (0, 0, -1), (0, 1, 0), 90.0))
    depth = toon_image(stage, 64, 64, look=Toon(outline=0, near=0.5, far=100))["depth"]
    slope = -(1 - 2 * (np.arange(64) + 0.5) / 64)
    expected = np.where(
        (slope > 0) & (1 / np.where(slope > 0, slope, 1) <= 100), 1 / np.where(slope > 0, slope, 1), np.inf
    )
    np.testing.assert_allclose(depth, np.repeat(expected[:, None], 64, 1), rtol=1e-5)


@pytest.mark.parametrize("size", [(1, 1), (7, 3), (33, 17)])
def test_odd_sizes(size):
    width, height = size
    picture = toon_image(random_stage(2), width, height, 5)
    assert picture["image"].shape == (height, width, 3) and picture["depth"].shape == (height, width)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instances": []}, "empty"),
        ({"camera": Camera((0, 0, 0), (0, 0, 0))}, "coincide"),
        ({"camera": Camera((0, 0, 5), (0, 0, 0), (0, 0, 1))}, "up is along"),
        ({"camera": Camera((0, 0, 5), (0, 0, 0), (0, 1, 0), 0.0)}, "fov"),
        ({"camera": Camera((0, math.nan, 5), (0, 0, 0), (0, 1, 0))}, "finite"),
        ({"camera": Camera((10, 5, 0), (0, 0, 0), (0, 1, 0))}, "inside object 3"),
        ({"instances": [Instance("teapot")]}, "no mesh 'teapot'"),
        ({"instances": [Instance("ball", np.full((4, 4), np.nan))]}, "finite 4×4"),
    ],
)
def test_impossible_stages_are_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        toon_image(dataclasses.replace(stage_of(ball()), **change), 8, 8)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("arguments", [(0, 8, 1), (8, 0, 1), (8, 8, 0)])
def test_impossible_sizes_are_refused(arguments):
    with pytest.raises(ValueError, match="render:"):
        toon_image(stage_of(ball()), *arguments)


def test_another_process_draws_the_same_bytes():
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]);"
        "from test_render_toon import random_stage, toon_image;"
        "print(hashlib.sha256(toon_image(random_stage(9), 64, 64, 5)['image'].tobytes()).hexdigest())"
    )
    here = hashlib.sha256(toon_image(random_stage(9), 64, 64, 5)["image"].tobytes()).hexdigest()
    run = [sys.executable, "-c", code, os.path.dirname(__file__)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == here


@pytest.mark.slow
def test_the_cold_compile_is_announced_once_and_a_warm_start_is_silent(tmp_path):
    code = (
        "from diorama.render.raster import resolve; import numpy as np;"
        "resolve(np.zeros((1, 1, 1, 3), np.uint8), 1, np.zeros((1, 1, 3), np.uint8))"
    )
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    cold, warm = (
        subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stderr
        for _ in range(2)
    )
    assert cold.count("compiling the renderer") == 1 and cold.count("\n") == 1
    assert warm == ""


def test_the_samples_of_large_birds_even_out_the_outline():
    """A line of 0.4 pixels round a white ball on white: the ink per two pixels of its length is evener than with few."""
    from diorama.worlds.birds.rendering import FEW, MANY

    look = Toon(background=(255, 255, 255), ambient=(1.0, 1.0, 1.0))
    camera = Camera((0, 0, 300.0), (0, 0, 0), (0, 1, 0), 40.0)
    stage = Stage({"ball": mesh.sphere(128, 64)}, [Instance("ball", mesh.scaling(80), (1.0, 1.0, 1.0))], camera, [])
    y, x = np.mgrid[:256, :256] + 0.5
    piece = ((np.arctan2(y - 128, x - 128) + np.pi) / (2 * np.pi) * 306).astype(int) % 306
    spread = []
    for samples in (FEW, MANY):
        ink = 255.0 - toon_image(stage, 256, 256, samples, look)["image"][..., 0]
        each = np.bincount(piece.ravel(), ink.ravel(), 306)
        assert each.min() > 0.3 * each.mean()
        spread.append(each.std() / each.mean())
    assert spread[1] < 0.9 * spread[0]
