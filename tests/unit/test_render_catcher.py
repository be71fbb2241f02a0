"""The shadow-catching floor against closed forms; windows and unseen instances of the path tracer."""

import numpy as np
import pytest

from diorama.render import catcher, render
from diorama.render.catcher import beams, catch_shadows, irradiance
from diorama.render.mesh import plane, scaling, sphere, translation
from diorama.render.stage import Camera, Environment, Instance, PointLight, Stage

EVEN = Environment(np.ones((32, 64, 3), np.float32), seen=False)
BALL = Instance("ball", translation((0, 0, 1)), (0.8, 0.1, 0.1), object=1, part=1)
FLOOR = Instance("floor", scaling((100, 100, 1)), (0.5, 0.5, 0.5), seen=False)
ABOVE = Camera((0, 0, 30), (0, 0, 0), (0, 1, 0), 40)


def stage(environment=None, lights=(), camera=ABOVE):
    library = {"ball": sphere(96, 48), "floor": plane()}
    return Stage(library, [FLOOR, BALL], camera, list(lights), {}, environment)


def places(size, camera_height=30, fov=40):
    """Floor coordinates of the pixel centres under a camera that looks straight down."""
    half = camera_height * np.tan(np.radians(fov) / 2)
    return ((np.arange(size) + 0.5) / size * 2 - 1) * half


def test_an_even_sky_loses_the_form_factor_of_the_ball():
    """A ball of radius r that touches the floor takes (r/D)²·cos θ = r³/D³ of an even sky, D from the floor point."""
    share = catch_shadows(stage(EVEN), 41, 41, 50.0, count=4096)
    x = places(41)
    for k in (24, 27, 30, 34):
        assert 1 - share[20, k, 1] == pytest.approx((1 / np.hypot(x[k], 1)) ** 3, abs=0.004)


def test_a_lamp_casts_the_shadow_of_its_geometry():
    """From (4, 0, 5) a ball of radius 1 at height 1 shades the floor on the far side, and only there."""
    share = catch_shadows(stage(lights=[PointLight((4, 0, 5), (1, 1, 1))]), 81, 81, 50.0)
    x = places(81)
    lamp, centre = np.array([4.0, 0, 5]), np.array([0.0, 0, 1])
    for row, column in np.ndindex(81, 81):
        point = np.array([x[column], -x[row], 0])  # rows go down the picture, y up
        way = (lamp - point) / np.linalg.norm(lamp - point)
        miss = np.linalg.norm(np.cross(centre - point, way))
        if abs(miss - 1) > 0.6:  # pixels are 0.27 wide
            assert share[row, column, 0] == (0 if miss < 1 else 1)


def test_a_larger_lamp_has_a_softer_shadow():
    hard, soft = (catch_shadows(stage(lights=[PointLight((4, 0, 5), (1, 1, 1))]), 81, 81, 50.0, r) for r in (0.0, 1.0))
    between = [((s > 0.02) & (s < 0.98)).mean() for s in (hard, soft)]
    assert between[1] > 2 * between[0]


def test_light_and_colours_add_up():
    """Under a red sky and a green lamp the shadow of each is missing its own colour only."""
    red = Environment(np.broadcast_to(np.array([1, 0, 0], np.float32), (16, 32, 3)), seen=False)
    share = catch_shadows(stage(red, [PointLight((4, 0, 5), (0, 9, 0))]), 41, 41, 50.0)
    assert (share[..., 2] == 1).all()
    assert share[..., 1].min() == 0
    assert 0 < share[20, 12, 0] < 1
    assert share[20, 34, 1] == 1


def test_beams_bring_the_irradiance_of_the_map():
    sky = np.random.default_rng(0).random((32, 64, 3)).astype(np.float32) ** 8
    sky[5, 20] = 4000
    found = beams(Environment(sky), 512)
    assert np.allclose(found.irradiance.sum(0), irradiance(sky))
    assert (found.directions[:, 2] > 0).all()
    sun = (np.abs(np.arccos(found.directions[:, 2]) - 5.5 / 32 * np.pi) < 0.06).mean()
    assert sun > 0.9  # nearly all beams go where nearly all light is


def test_bundles_of_beams_are_left_out_only_where_none_can_hit(monkeypatch):
    """To the bit the picture that asks every beam."""
    found = beams(EVEN)
    for i, (x, y, z, cosine, sine) in enumerate(found.cones):
        assert (found.directions[8 * i : 8 * i + 8] @ (x, y, z) >= cosine).all()
        assert cosine**2 + sine**2 == pytest.approx(1)
    slanted = Camera((9, -9, 5), (0, 0, 0), (0, 0, 1), 50)
    quick = catch_shadows(stage(EVEN, camera=slanted), 40, 30, 50.0)
    everything = np.tile([0.0, 0.0, 1.0, -1.0, 0.0], (len(found.cones), 1))
    monkeypatch.setattr(catcher, "beams", lambda *_: found._replace(cones=everything))
    assert np.array_equal(catch_shadows(stage(EVEN, camera=slanted), 40, 30, 50.0), quick)
    assert quick.min() < 0.5


def test_beyond_reach_nothing_is_lost():
    share = catch_shadows(stage(EVEN), 41, 41, 3.0)
    x = places(41)
    far = np.hypot(x[None], x[:, None]) > 3.5
    assert (share[far] == 1).all()
    assert share[~far].min() < 0.5


def test_a_window_is_a_piece_of_the_picture():
    view = stage(EVEN, [PointLight((4, 3, 5), (20, 20, 20))], Camera((0, 9, 3), (0, 0, 1), fov_degrees=25))
    whole = render(view, 40, 30, 8, 1)
    part = render(view, 40, 30, 8, 1, window=(11, 7, 30, 24))
    for name in ("image", "albedo", "shading", "depth", "normal", "coverage", "object"):
        assert np.array_equal(part[name][7:24, 11:30], whole[name][7:24, 11:30]), name
    assert part["coverage"][:7].max() == 0
    with pytest.raises(ValueError, match="window"):
        render(view, 40, 30, window=(0, 0, 41, 30))


def test_an_unseen_floor_is_not_in_the_picture_but_lights_the_ball():
    view = stage(EVEN, (), Camera((0, 9, 3), (0, 0, 1), fov_degrees=25))
    alone = Stage(view.library, [BALL], view.camera, (), {}, view.environment)
    seen, free = render(view, 40, 30, 256, 1), render(alone, 40, 30, 256, 1)
    assert np.array_equal(seen["coverage"], free["coverage"])
    assert set(np.unique(seen["object"])) == {-1, 1}
    under = (seen["normal"][..., 2] < -0.5) & (seen["object"] == 1)
    assert under.any()
    # the floor reflects half of what it gets, and it lies in the shadow of the ball
    assert 0.05 < (seen["shading"][under] / free["shading"][under]).mean() < 0.5
