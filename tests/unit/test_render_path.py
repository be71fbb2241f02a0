"""The path tracer against formulas: point and rectangle lights, furnaces, GGX by quadrature; exact layers."""

import dataclasses
import gc
import hashlib
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")
pytest.importorskip("embreex")

from diorama.render import (
    Camera,
    Environment,
    Instance,
    PointLight,
    RectLight,
    Stage,
    Toon,
    mesh,
    render,
    toon_image,
)
from diorama.render import trace as tracing
from diorama.render.jit import kernel
from diorama.render.mesh import rotation, scaling, translation

LIBRARY = {"ball": mesh.sphere(96, 48), "box": mesh.box(), "ring": mesh.torus(), "sheet": mesh.plane()}
RED = np.array([0.7, 0.3, 0.1])
WHITE_SKY = Environment(np.ones((8, 16, 3), np.float32))


def floor(colour=(0.5, 0.5, 0.5), specular=None, size=20.0) -> Instance:
    return Instance("sheet", scaling(size), colour, specular=specular, object=1)


def ball(colour=tuple(RED), specular=None, texture=None) -> Instance:
    return Instance("ball", translation((0, 0, 1)), colour, texture, specular, object=2, part=5)


LAMP = RectLight((-0.5, -0.5, 3.0), (0, 1, 0), (1, 0, 0), (10.0, 8.0, 6.0))  # shines down
SIDE = Camera((0, -6, 3), (0, 0, 0.7), (0, 0, 1), 35.0)
TOP = Camera((0, 0, 8), (0, 0, 0), (0, 1, 0), 30.0)


def scene(*instances, camera=SIDE, lights=(LAMP,), environment=None) -> Stage:
    return Stage(LIBRARY, instances, camera, lights, environment=environment)


def floor_points(size: int, camera: Camera = TOP) -> np.ndarray:
    """Where the pixel centres of the camera above see the floor."""
    y, x = (np.mgrid[:size, :size] + 0.5) / size
    reach = camera.eye[2] * math.tan(math.radians(camera.fov_degrees) / 2)
    return np.stack([(2 * x - 1) * reach, (1 - 2 * y) * reach, np.zeros_like(x)], -1)


@pytest.mark.slow
def test_a_floor_under_a_point_light():
    """Shading I·cos θ/(π·d²)."""
    light = PointLight((1.0, 0.5, 2.0), (5.0, 3.0, 1.0))
    picture = render(scene(floor(), camera=TOP, lights=[light]), 32, 32, 16, bounces=0)
    towards = np.array(light.position) - floor_points(32)
    distance = np.linalg.norm(towards, axis=-1)
    expected = (towards[..., 2] / distance**3 / math.pi)[..., None] * light.intensity
    np.testing.assert_allclose(picture["shading"], expected, rtol=5e-3)
    np.testing.assert_allclose(picture["albedo"], 0.5, rtol=1e-6)


def test_a_lambert_sphere_under_a_point_light():
    light = np.array([3.0, -4.0, 5.0])
    picture = render(scene(ball(), lights=[PointLight(tuple(light), (9.0, 9.0, 9.0))]), 96, 96, 8, bounces=0)
    normal = picture["normal"]
    position = normal + np.array([0, 0, 1])
    towards = light - position
    distance = np.linalg.norm(towards, axis=-1)
    cosine = (normal * towards).sum(-1) / distance
    expected = 9 * np.maximum(cosine, 0) / (math.pi * distance**2)
    clear = (picture["object"] == 2) & (picture["coverage"] == 1) & (cosine > 0.3) & (normal[..., 1] < -0.4)
    assert clear.sum() > 500
    np.testing.assert_allclose(picture["shading"][clear], np.repeat(expected[clear][:, None], 3, 1), rtol=0.05)
    assert picture["shading"][clear].mean() == pytest.approx(expected[clear].mean(), rel=5e-3)


def rectangle_form_factor(point: np.ndarray, height: float, half: float) -> float:
    """From a horizontal element to the square −half..half above it: four corner rectangles (Howell, B-4)."""
    total = 0.0
    for x in (half - point[0], half + point[0]):
        for y in (half - point[1], half + point[1]):
            a, b = x / height, y / height
            total += a / math.hypot(1, a) * math.atan(b / math.hypot(1, a))
            total += b / math.hypot(1, b) * math.atan(a / math.hypot(1, b))
    return total / (2 * math.pi)


def test_a_rectangle_light_has_its_form_factor():
    """Shading L·F; the light is left out of the camera's sight."""
    picture = render(scene(floor(), camera=TOP), 24, 24, 64, bounces=0)
    factor = np.array([[rectangle_form_factor(p, 3.0, 0.5) for p in row] for row in floor_points(24)])
    np.testing.assert_allclose(picture["shading"][..., 0], 10 * factor, rtol=0.05)
    assert picture["shading"].mean((0, 1)) == pytest.approx(factor.mean() * np.array(LAMP.radiance), rel=2e-3)


def test_the_back_of_a_rectangle_light_is_dark():
    turned = dataclasses.replace(LAMP, edge_u=LAMP.edge_v, edge_v=LAMP.edge_u)
    assert render(scene(floor(), lights=[turned]), 8, 8, 8)["shading"].max() == 0


def test_a_shadow_is_where_it_should_be():
    """A point light over a ball: the floor is dark inside the tangent cone, lit outside."""
    picture = render(scene(floor(), ball(), lights=[PointLight((0, 0, 4), (20, 20, 20))]), 128, 128, 8, bounces=0)
    shade = render(scene(floor(), lights=[PointLight((0, 0, 4), (20, 20, 20))]), 128, 128, 8, bounces=0)
    on_floor = (np.abs(picture["albedo"] - 0.5) < 1e-6).all(-1)  # no sample of the pixel on the ball
    depth = shade["depth"].astype(float)
    y, x = (np.mgrid[:128, :128] + 0.5) / 128
    right, up, forward = SIDE.basis()
    tangent = math.tan(math.radians(SIDE.fov_degrees) / 2)
    rays = forward + (2 * x - 1)[..., None] * tangent * right + (1 - 2 * y)[..., None] * tangent * up
    radius = np.hypot(*np.moveaxis(SIDE.eye + depth[..., None] * rays, -1, 0)[:2])
    edge = 4 * math.tan(math.asin(1 / 3))
    assert (picture["shading"][on_floor & (radius < edge - 0.1)] == 0).all()
    lit = on_floor & (radius > edge + 0.1)
    np.testing.assert_allclose(picture["shading"][lit], shade["shading"][lit], rtol=1e-6)


def test_more_rays_where_a_lamp_is_hidden():
    """Half the noise in the shadow, the same picture elsewhere, and no choice that follows paint or power."""
    stage = scene(floor(), ball())
    truth = render(stage, 32, 32, 1024, bounces=0, seed=1)
    plain, rich = (render(stage, 32, 32, 16, bounces=0, shadows=n) for n in (1, 4))
    lit = (plain["shading"] == rich["shading"]).all(-1)
    assert 0.3 < lit.mean() < 0.95
    off = [np.abs(picture["shading"] - truth["shading"])[~lit] for picture in (plain, rich)]
    assert np.sqrt((off[1] ** 2).mean()) < 0.6 * np.sqrt((off[0] ** 2).mean())
    assert rich["shading"].mean() == pytest.approx(truth["shading"].mean(), rel=3e-3)
    lamps = [dataclasses.replace(light, radiance=tuple(2 * v for v in light.radiance)) for light in stage.lights]
    twice = render(dataclasses.replace(stage, lights=lamps), 32, 32, 16, bounces=0, shadows=4)
    assert np.array_equal(twice["shading"], 2 * rich["shading"])
    whole = render(stage, 32, 32, 16, bounces=0, shadows=4, window=(5, 9, 20, 30))
    assert np.array_equal(whole["shading"][9:30, 5:20], rich["shading"][9:30, 5:20])
    assert np.array_equal(rich["albedo"], plain["albedo"])


def test_half_the_paths_amid_a_surface():
    """Geometry chooses: the layers stay exact and right on average, reflectance is the same under any lamp and none."""
    stage = scene(floor(), ball(specular=(0.05, 0.2)), environment=WHITE_SKY)
    truth, asked = (render(stage, 24, 24, n, bounces=0, seed=s, shadows=4) for n, s in ((512, 1), (32, 0)))
    for name in ("shading", "specular", "image"):
        assert asked[name].mean((0, 1)) == pytest.approx(truth[name].mean((0, 1)), rel=4e-3)
    assert np.array_equal(asked["image"], asked["albedo"] * asked["shading"] + asked["specular"])
    image = np.random.default_rng(0).random((8, 8, 3)).astype(np.float32)
    painted = Instance("sheet", scaling(20.0), texture="paint", object=1)
    moved = dataclasses.replace(LAMP, corner=(2.0, -0.5, 3.0))
    stages = [
        Stage(LIBRARY, [painted, ball()], SIDE, lights, {"paint": image}, WHITE_SKY)
        for lights in ((LAMP,), (moved,), ())
    ]
    pictures = [render(stage, 24, 24, 32, bounces=0, shadows=4) for stage in stages]
    assert all(np.array_equal(picture["albedo"], pictures[0]["albedo"]) for picture in pictures)
    for threads, window in ((2, None), (1, (5, 9, 20, 23))):
        again = render(stages[0], 24, 24, 32, bounces=0, shadows=4, threads=threads, window=window)
        x0, y0, x1, y1 = window or (0, 0, 24, 24)
        assert np.array_equal(again["image"][y0:y1, x0:x1], pictures[0]["image"][y0:y1, x0:x1])
        assert (again["object"] >= 0).sum() == (pictures[0]["object"][y0:y1, x0:x1] >= 0).sum()


def test_plane_depth_and_normals():
    tilted = Instance("sheet", rotation((1, 0, 0), 0.4) @ scaling(30), object=4, part=9)
    picture = render(scene(tilted, camera=TOP), 16, 12, 8, bounces=0)
    normal = np.array([0, -math.sin(0.4), math.cos(0.4)])
    np.testing.assert_allclose(picture["normal"], np.broadcast_to(normal, (12, 16, 3)), atol=1e-6)
    y, x = np.mgrid[:12, :16] + 0.5
    tangent = math.tan(math.radians(15))
    rays = np.stack([(2 * x / 16 - 1) * tangent * 16 / 12, (1 - 2 * y / 12) * tangent, -np.ones_like(x)], -1)
    expected = -(np.array(TOP.eye) @ normal) / (rays @ normal)
    np.testing.assert_allclose(picture["depth"], expected, rtol=1e-5)
    assert (picture["object"] == 4).all() and (picture["part"] == 9).all()


def test_furnace_a_convex_body_under_a_white_sky_has_shading_1():
    picture = render(scene(ball(), lights=[], environment=WHITE_SKY), 48, 48, 64, bounces=0)
    full = picture["coverage"] == 1
    assert picture["shading"][full].mean() == pytest.approx(1, abs=2e-3)
    np.testing.assert_allclose(picture["shading"][full], 1, atol=0.12)


def test_furnace_a_white_scene_with_many_bounces_disappears():
    """Albedo 1 under a sky of 1 is 1 everywhere, also in corners."""
    white = (1.0, 1.0, 1.0)
    picture = render(scene(floor(white), ball(white), lights=[], environment=WHITE_SKY), 32, 32, 64, bounces=24)
    assert picture["image"].mean() == pytest.approx(1, abs=3e-3)


def test_furnace_glossy_at_every_surface():
    """Albedo 0.6 + F0 0.4 is 1 everywhere, only if later surfaces are glossy too; rougher GGX would lose energy."""
    instances = [floor((0.6,) * 3, (0.4, 0.01)), ball((0.6,) * 3, (0.4, 0.01))]
    picture = render(scene(*instances, lights=[], environment=WHITE_SKY), 32, 32, 256, bounces=24)
    on_ball = picture["object"] == 2
    assert picture["image"].mean() == pytest.approx(1, abs=3e-3)
    assert picture["image"][on_ball].mean() == pytest.approx(1, abs=5e-3)
    assert picture["specular"][on_ball].mean() == pytest.approx(0.4, abs=3e-3)


def ggx_reference(viewer: np.ndarray, light: np.ndarray, alpha: float) -> np.ndarray:
    """D·G₂/(4·cos·cos)·cos_l as Walter 2007 and Heitz 2014 write them."""
    half = viewer + light
    half = half / np.linalg.norm(half, axis=-1, keepdims=True)
    a2 = alpha**2
    d = a2 / (math.pi * (half[..., 2] ** 2 * (a2 - 1) + 1) ** 2)

    def lam(w: np.ndarray) -> np.ndarray:
        return (-1 + np.sqrt(1 + a2 * (1 - w[..., 2] ** 2) / w[..., 2] ** 2)) / 2

    return d / (1 + lam(viewer) + lam(light)) / (4 * viewer[..., 2])


@pytest.mark.parametrize("alpha", [0.05, 0.15, 0.4, 0.9])
def test_glossy_reflection_of_a_rectangle_by_quadrature(alpha):
    """∫ f·L·cos_l·cos_r/d² dA over the lamp, at the floor point in the middle of the view."""
    eye = np.array([1.5, -2.0, 2.5])
    camera = Camera(tuple(eye), (0.3, 0.2, 0), (0, 0, 1), 0.05)
    point = np.array([0.3, 0.2, 0.0])
    u, v = (np.mgrid[:600, :600] + 0.5) / 600
    towards = np.stack([u - 0.5, v - 0.5, np.full_like(u, 3.0)], -1) - point
    distance = np.linalg.norm(towards, axis=-1)
    light = towards / distance[..., None]
    viewer = (eye - point) / np.linalg.norm(eye - point)
    value = ggx_reference(np.broadcast_to(viewer, light.shape), light, alpha) * light[..., 2] / distance**2
    expected = 0.3 * 10 * value.mean()
    picture = render(scene(floor(specular=(0.3, alpha)), camera=camera), 8, 8, 512, bounces=0)
    assert picture["specular"][..., 0].mean() == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_glossy_reflection_of_a_white_sky_by_quadrature(alpha):
    eye = np.array([0.0, -2.0, 1.0])
    theta, phi = (np.mgrid[:1500, :1500] + 0.5) / 1500
    theta, phi = theta * math.pi / 2, phi * 2 * math.pi
    light = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1)
    viewer = np.broadcast_to(eye / np.linalg.norm(eye), light.shape)
    expected = (ggx_reference(viewer, light, alpha) * np.sin(theta)).mean() * math.pi**2
    camera = Camera(tuple(eye), (0, 0, 0), (0, 0, 1), 0.05)
    stage = scene(floor(specular=(1.0, alpha)), camera=camera, lights=[], environment=WHITE_SKY)
    assert render(stage, 8, 8, 512, bounces=0)["specular"].mean() == pytest.approx(expected, rel=1e-2)


def test_one_bounce_between_two_walls_by_quadrature():
    """A lit wall shines on the floor: S = ρ·Σ S_wall·form factor, the wall in small pieces."""
    lamp = PointLight((-2.0, 0.0, 1.0), (30.0, 30.0, 30.0))
    wall = Instance("sheet", translation((1, 0, 1)) @ rotation((0, 1, 0), -math.pi / 2), (0.8,) * 3)
    camera = Camera((0.0, -0.1, 5.0), (0.0, 0.0, 0.0), (0, 1, 0), 0.05)
    stage = scene(floor((0.001,) * 3), wall, camera=camera, lights=[lamp])
    direct, both = (render(stage, 8, 8, 512, bounces=b)["shading"].mean() for b in (0, 1))
    y, z = (np.mgrid[:400, :400] + 0.5) / 200 - [[[1]], [[0]]]
    wall_points = np.stack([np.ones_like(y), y, z], -1)
    to_lamp = np.array(lamp.position) - wall_points
    shading = 30 * -to_lamp[..., 0] / np.linalg.norm(to_lamp, axis=-1) ** 3 / math.pi
    distance = np.linalg.norm(wall_points, axis=-1)
    factor = (wall_points[..., 2] / distance) * (wall_points[..., 0] / distance) / (math.pi * distance**2) / 200**2
    assert both - direct == pytest.approx(0.8 * (shading * factor).sum(), rel=1e-2)


LAMPS = (LAMP, PointLight((2, -2, 3), (3, 2, 1)))


def busy_stage(lights=LAMPS) -> Stage:
    r = np.random.default_rng(0)
    sky = Environment((r.random((16, 32, 3)) ** 4).astype(np.float32))
    texture = r.random((16, 16, 3)).astype(np.float32)
    ring = Instance("ring", translation((-1.5, 0, 0.4)), (0, 0.6, 0.9), specular=(0.3, 0.2), object=3)
    stage = scene(floor(), ball((1, 1, 1), (0.1, 0.3), "noise"), ring, lights=lights, environment=sky)
    return dataclasses.replace(stage, textures={"noise": texture})


def test_the_image_is_albedo_times_shading_plus_specular():
    picture = render(busy_stage(), 48, 40, 16)
    residual = picture["image"] - (picture["albedo"] * picture["shading"] + picture["specular"])
    assert np.abs(residual).max() <= 1e-6
    assert all(np.isfinite(picture[name]).all() for name in ("image", "albedo", "shading", "specular"))
    assert all(picture[name].dtype == np.float32 for name in ("image", "albedo", "shading", "specular", "depth"))
    assert picture["specular"].max() > 0.1 and picture["coverage"].min() == 0


def test_light_does_not_touch_albedo_ids_or_geometry():
    here, there = (render(busy_stage([PointLight((x, -2, 3), (9, 9, 9))]), 40, 40, 16) for x in (-2, 2))
    for name in ("albedo", "object", "part", "depth", "normal", "coverage"):
        np.testing.assert_array_equal(here[name], there[name])
    assert np.abs(here["shading"] - there["shading"]).max() > 0.1


def test_shading_exists_where_a_channel_reflects_nothing():
    """Red under white light: the green shading is the same as the red, though it reaches nobody."""
    picture = render(scene(floor((0.8, 0.0, 0.0)), camera=TOP), 8, 8, 16, bounces=0)
    ratio = np.array(LAMP.radiance)[1] / LAMP.radiance[0]
    np.testing.assert_allclose(picture["shading"][..., 1], picture["shading"][..., 0] * ratio, rtol=1e-5)


def test_scaling_the_lights_scales_shading_and_specular():
    """Linear in light: with every light doubled the same paths bring twice as much."""
    lights = [PointLight((2, -2, 3), (3, 2, 1))]
    stage = dataclasses.replace(busy_stage(lights), environment=None)
    twice = dataclasses.replace(stage, lights=[PointLight((2, -2, 3), (6, 4, 2))])
    one, two = (render(s, 24, 24, 16) for s in (stage, twice))
    for name in ("shading", "specular"):
        np.testing.assert_allclose(two[name], 2 * one[name], rtol=1e-5, atol=1e-7)


def test_textures_are_bilinear_and_start_at_the_first_texel():
    texture = np.zeros((2, 2, 3), np.float32)
    texture[0, 0] = (1, 0, 0)
    texture[0, 1] = (0, 1, 0)
    texture[1, 0] = (0, 0, 1)
    sheet = Instance("sheet", np.eye(4), (1, 1, 1), "t")
    camera = Camera((0, 0, 100), (0, 0, 0), (0, 1, 0), 2 * math.degrees(math.atan(0.01)))
    picture = render(Stage(LIBRARY, [sheet], camera, [], {"t": texture}), 2, 2, 256, bounces=0)
    # uv (0, 0) is x = y = −1, the lower left of this view; a pixel sees 3/4 of its own texel along each axis
    assert picture["albedo"][1, 0, 0] == pytest.approx(0.75**2, abs=0.01)
    assert picture["albedo"][1, 1, 1] == pytest.approx(0.75**2, abs=0.01)
    assert picture["albedo"][0, 0, 2] == pytest.approx(0.75**2, abs=0.01)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_bit(threads):
    one, many = (render(busy_stage(), 40, 37, 16, threads=n) for n in (1, threads))
    for name in one:
        np.testing.assert_array_equal(one[name], many[name])


def test_another_process_renders_the_same_bits():
    code = (
        "import sys, hashlib; sys.path.insert(0, sys.argv[1]);"
        "from test_render_path import busy_stage, render;"
        "print(hashlib.sha256(render(busy_stage(), 24, 24, 8)['image'].tobytes()).hexdigest())"
    )
    here = hashlib.sha256(render(busy_stage(), 24, 24, 8)["image"].tobytes()).hexdigest()
    run = [sys.executable, "-c", code, os.path.dirname(__file__)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == here


def test_the_seed_changes_noise_but_not_ids():
    one, two = (render(busy_stage(), 24, 24, 8, seed=s) for s in (0, 1))
    assert (one["image"] != two["image"]).any()
    np.testing.assert_array_equal(one["object"], two["object"])


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 17), st.integers(0, 3))
@settings(max_examples=15, deadline=None)
def test_any_size_and_sample_count(width, height, samples, bounces):
    picture = render(busy_stage(), width, height, samples, bounces)
    assert picture["image"].shape == (height, width, 3) and np.isfinite(picture["image"]).all()


def test_an_unseen_sky_lights_but_leaves_the_background_black():
    stage = scene(ball(), lights=[], environment=dataclasses.replace(WHITE_SKY, seen=False))
    picture = render(stage, 24, 24, 16)
    assert (picture["image"][picture["coverage"] == 0] == 0).all()
    assert picture["image"][picture["coverage"] == 1].min() > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instances": []}, "empty"),
        ({"camera": Camera((0.2, 0.1, 1.0), (5, 0, 0))}, "inside object 2 .mesh 'ball'"),
        ({"instances": [ball(texture="bark")]}, "no texture 'bark'"),
        ({"lights": [RectLight((0, 0, 1), (1, 0, 0), (2, 0, 0))]}, "no area"),
        ({"environment": Environment(np.full((2, 4, 3), np.nan, np.float32))}, "environment must be"),
    ],
)
def test_impossible_stages_are_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        render(dataclasses.replace(scene(floor(), ball()), **change), 8, 8, 8)
    assert "\n" not in str(caught.value)


def test_a_room_with_inward_faces_may_hold_the_camera():
    room = mesh.box()
    inwards = mesh.Mesh(room.vertices, -room.normals, room.uv, room.faces[:, ::-1])
    stage = Stage({"room": inwards}, [Instance("room", scaling(5), object=6)], SIDE, [LAMP])
    stage = dataclasses.replace(stage, camera=Camera((0, -4, 0), (0, 0, 0), (0, 0, 1)))
    assert (render(stage, 8, 8, 8)["object"] == 6).all()


@kernel
def _two_rays(embree):
    packet = tracing.new_packet()
    packet.active[:] = 0
    tracing.set_ray(packet, 0, 0.2, 0.3, 0.0, 0.0, 0.0, 1.0, tracing.FAR)
    tracing.set_ray(packet, 5, 50.0, 0.0, 0.0, 0.0, 0.0, 1.0, tracing.FAR)
    tracing.intersect(embree, packet, embree.coherent)
    return packet.words, packet.codes


def test_the_layout_of_embree_packets():
    """Smoke test of RTCRayHit8: every row of a hit where we believe it to be; instance 1 is the nearer of two."""
    sheets = [Instance("sheet", translation((0, 0, 5))), Instance("sheet", translation((0, 0, 1)) @ scaling(3))]
    with tracing.EmbreeScene(scene(*sheets)) as embree:
        words, codes = _two_rays(embree)
    assert words.shape == (21, 8) and words.ctypes.data % 64 == 0
    assert words[tracing.T_FAR, 0] == pytest.approx(1) and codes[tracing.INSTANCE, 0] == 1
    assert codes[tracing.GEOMETRY, 0] == 0 and codes[tracing.GEOMETRY, 5] == tracing.NOTHING
    face = mesh.plane().faces[codes[tracing.PRIMITIVE, 0]]
    a, b, c = mesh.plane().vertices[face] * 3
    u, v = words[tracing.U, 0], words[tracing.V, 0]
    np.testing.assert_allclose(((1 - u - v) * a + u * b + v * c)[:2], (0.2, 0.3), atol=1e-6)
    normal = words[tracing.NORMAL : tracing.NORMAL + 3, 0]
    np.testing.assert_allclose(normal / np.linalg.norm(normal), (0, 0, 1), atol=1e-6)


def test_a_mesh_is_uploaded_once_by_content():
    copy = mesh.Mesh(LIBRARY["ball"].vertices, LIBRARY["ball"].normals, LIBRARY["ball"].uv, LIBRARY["ball"].faces)
    library = tracing.library()
    assert library.mesh_scene(copy) == library.mesh_scene(LIBRARY["ball"])


@pytest.mark.parametrize(("package", "call"), [("numba", "toon_image"), ("numba", "render"), ("embreex", "render")])
def test_a_missing_package_is_named_with_its_cure(package, call):
    code = (
        f"import sys; sys.modules[{package!r}] = None; sys.path.insert(0, sys.argv[1]);"
        "from diorama.render import Camera, Instance, Stage, mesh, render, toon_image;"
        "stage = Stage({'ball': mesh.sphere()}, [Instance('ball')], Camera((0, -5, 0)));"
        f"{call}(stage, 8, 8)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, os.path.dirname(__file__)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith("pip install 'diorama[render]'")


def test_scenes_built_in_several_threads_at_once():
    alone = render(busy_stage(), 16, 16, 8)["image"]
    with ThreadPoolExecutor(4) as pool:
        for picture in pool.map(lambda _: render(busy_stage(), 16, 16, 8), range(12)):
            np.testing.assert_array_equal(picture["image"], alone)


def resident_megabytes() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_stays_flat():
    """New scenes and new meshes in every frame: more meshes than are kept, so that old ones are freed."""

    def frames(n: int, start: int) -> None:
        for k in range(start, start + n):
            solid = mesh.cylinder(12, top=1 + k / 10000)
            stage = scene(floor(), Instance("new", scaling(0.5)))
            stage = dataclasses.replace(stage, library={**LIBRARY, "new": solid})
            render(stage, 8, 8, 8, bounces=0)

    frames(700, 0)
    gc.collect()
    before = resident_megabytes()
    frames(700, 700)
    gc.collect()
    assert resident_megabytes() - before < 8


@pytest.mark.parametrize("seed", range(4))
def test_the_rasteriser_and_the_ray_tracer_see_the_same(seed):
    """Two independent ways to find what a pixel centre sees: toon triangles and Embree rays."""
    r = np.random.default_rng(seed)
    instances = []
    for k in range(12):
        place = translation(r.uniform(-2, 2, 3)) @ rotation(r.normal(size=3), r.uniform(0, 6))
        name = str(r.choice(["ball", "box", "ring"]))
        instances.append(Instance(name, place @ scaling(r.uniform(0.2, 0.8, 3)), object=k, part=100 + k))
    stage = scene(*instances, camera=Camera((1, -7, 3), (0, 0, 0), (0, 0, 1), 40.0), lights=[])
    drawn, traced = toon_image(stage, 96, 80, look=Toon(outline=0, near=0.01)), render(stage, 96, 80, 1, bounces=0)
    same = drawn["object"] == traced["object"]
    assert same.mean() > 0.999 and (drawn["part"] == traced["part"]).mean() > 0.999
    hit = same & (traced["object"] >= 0)
    assert hit.mean() > 0.1
    np.testing.assert_allclose(drawn["depth"][hit], traced["depth"][hit], rtol=1e-4)
