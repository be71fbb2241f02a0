"""Candle's pictures: exact layers, interventions that change only what they should, boxes, marks, files on disk."""

import json

import numpy as np
import pytest

from diorama.core.errors import InputError
from diorama.core.scene import rng
from diorama.io.images import read_png, write_png
from diorama.testing.worlds import CHECKS
from diorama.worlds.candle.candle import Candle
from diorama.worlds.candle.factors import VALUES, grid, values_of
from diorama.worlds.candle.panoramas import backdrop, despeckled, panorama, panorama_files, read_panorama, view
from diorama.worlds.candle.stage import place as placed
from diorama.worlds.candle.stage import project, solids, visible_box
from tests.conftest import DATA

#: The sets are photographed anew for this module: many seconds before the first picture.
pytestmark = pytest.mark.slow

WORLD = Candle(width=64, samples=4)
BUFFERS = ("mask", "parts", "depth", "normal")


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Photographs of sets go to a folder of the test's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def scene():
    """A large cube in the middle of the floor."""
    factors = values_of(grid()[1350 + 12])
    return WORLD.numbered(0).changed({**factors, "position": [0.6, -2.0], "camera": [0.1, -0.2]})


def same(a, b, *names):
    return all(np.array_equal(a.truth[name], b.truth[name]) for name in names)


@pytest.mark.slow
def test_layers_make_the_image_exactly(scene):
    frame = WORLD.render([scene])[0]
    t = frame.truth
    assert np.array_equal(frame.image, t["reflectance"] * t["shading"] + t["specular"])
    assert frame.image.shape == (48, 64, 3)
    assert t["factors"]["object"] == "cube"
    inside = t["mask"] & (t["reflectance"][..., 0] == np.float32(0.8))
    assert inside.sum() > 0.7 * t["mask"].sum()  # the paint itself, away from the edges


def test_a_colour_changes_the_paint_and_nothing_else(scene):
    old, new = WORLD.render([scene, WORLD.do(scene, color="blue")])
    assert same(old, new, *BUFFERS, "specular")
    assert old.truth["boxes"] == new.truth["boxes"]
    changed = (old.image != new.image).any(-1)
    grown = visible_box(changed)
    x0, y0, x1, y1 = old.truth["boxes"]["object"]
    assert x0 - 1 <= grown[0] and y0 - 1 <= grown[1] and grown[2] <= x1 + 1 and grown[3] <= y1 + 1
    inside = old.mask & (old.truth["reflectance"] == np.float32([0.8, 0.0866, 0.0804])).all(-1)
    assert inside.any()
    # a convex object does not light itself: the same random numbers give the same light on another paint
    assert np.allclose(old.truth["shading"][inside], new.truth["shading"][inside], rtol=1e-5)


def test_a_lamp_changes_light_and_leaves_matter(scene):
    frames = WORLD.render([scene, *(WORLD.do(scene, light=light) for light in ("middle", "right"))])
    for other in frames[1:]:
        assert same(frames[0], other, *BUFFERS, "reflectance")
        assert not np.allclose(frames[0].image, other.image)
    dark = Candle(width=64, samples=4, lamp=0.0)
    off = [dark.render([dark.do(scene, light=light)])[0].image for light in ("left", "right")]
    assert np.array_equal(*off)  # without power its place does not matter
    assert (off[0] <= frames[0].image + 1e-5).mean() > 0.6


def test_a_scene_changes_what_is_around_and_leaves_the_object(scene):
    old, new = WORLD.render([scene, WORLD.do(scene, scene="indoor")])
    assert same(old, new, *BUFFERS)
    paint = (old.truth["reflectance"] == np.float32([0.8, 0.0866, 0.0804])).all(-1)
    assert np.array_equal(old.truth["reflectance"][paint], new.truth["reflectance"][paint])
    assert not np.allclose(old.image[~old.mask], new.image[~old.mask])


def test_turning_shows_on_the_cube_only_unless_marked(scene):
    for thing in VALUES["object"]:
        turned = [WORLD.do(scene, object=thing, rotation=r) for r in (0, 30)]
        a, b = (frame.image for frame in WORLD.render(turned))
        # the cylinder has 32 flat sides, whose turn shows a little
        assert (np.abs(a - b).max() > 0.35) == (thing == "cube"), thing


@pytest.mark.parametrize("bug", [False, True])
def test_marks_make_every_turn_of_every_shape_visible(scene, bug):
    world = Candle(width=64, samples=2, marked=True, rotation_bug=bug)
    for thing in VALUES["object"]:
        frames = world.render([world.do(scene, object=thing, rotation=r) for r in VALUES["rotation"]])
        paints = np.stack([frame.truth["reflectance"] for frame in frames])
        for i in range(6):
            for j in range(i):
                changed = (np.abs(paints[i] - paints[j]).max(-1) > 0.2).sum()
                assert changed > 0.03 * frames[0].mask.sum(), (thing, VALUES["rotation"][i], VALUES["rotation"][j])


def test_moving_uncovers_the_same_background(scene):
    old, new = WORLD.render([scene, WORLD.do(scene, position=[-3.0, -14.0])])
    free = ~(grow(old.mask) | grow(new.mask))
    assert np.array_equal(old.truth["reflectance"][free], new.truth["reflectance"][free])
    assert np.array_equal(old.truth["depth"][free], new.truth["depth"][free])


def grow(mask):
    wide = np.pad(mask, 1)
    return np.any([np.roll(wide, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1)], axis=0)[1:-1, 1:-1]


def test_shadows_fall_on_the_floor_away_from_the_lamp(scene):
    """The share of light the floor keeps: below 1 near the object, 1 above the horizon."""
    shares = {}
    for light in ("left", "right"):
        frame = WORLD.render([WORLD.do(scene, light=light)])[0]
        floor = ~grow(frame.mask)
        shares[light] = np.where(floor, frame.truth["shading"][..., 1], 1)
        assert shares[light].max() <= 1.00001
        assert np.allclose(shares[light][:18], 1)
    x0, _, x1, _ = frame.truth["boxes"]["object"]
    for light, side in (("left", slice(x1, None)), ("right", slice(0, x0))):
        away = (1 - shares[light][:, side]).sum()
        other = (1 - shares[light][:, slice(0, x0) if light == "left" else slice(x1, None)]).sum()
        assert away > other, light


def test_no_object_is_hidden():
    """In every combination, wherever it is put, most of the object is inside the picture."""
    chance, shown = rng(0, "occlusion"), []
    for i in chance.permutation(4050)[:400]:
        p = Candle().numbered(int(i), seed=int(i)).params
        points = solids()[p["object"]].vertices.astype(float)
        matrix = placed(p, False)
        x, y = project(points @ matrix[:3, :3].T + matrix[:3, 3], view(*p["camera"]), 320, 240).T
        shown.append(((x >= 0) & (x < 320) & (y >= 0) & (y < 240)).mean())
    assert min(shown) > 0.5
    assert np.mean(shown) > 0.97


@pytest.mark.parametrize(("x", "y"), [(4.5, 0.0), (-4.5, 0.0), (4.5, -20.0), (-4.5, -20.0)])
def test_the_smallest_object_shows_in_every_corner(scene, x, y):
    frame = WORLD.render([WORLD.do(scene, object="torus", size=1.5, position=[x, y], camera=[0.5, 0.5])])[0]
    assert frame.mask.sum() >= 4
    assert frame.truth["boxes"]["object"] is not None


def test_the_tight_box_is_inside_the_loose_one_without_jitter(scene):
    frame = WORLD.render([WORLD.do(scene, camera=[0.0, 0.0])])[0]
    tight, loose = frame.truth["boxes"]["object"], frame.truth["boxes"]["loose"]
    assert all(loose[i] - 1 <= tight[i] for i in (0, 1))
    assert all(tight[i] <= loose[i] + 1 for i in (2, 3))
    assert tight == visible_box(frame.mask)


def test_the_camera_is_that_of_a_genuine_image():
    """Image 3541 of the data set: its published box (x 150 to 245) fixes the place, and with it the visible torus."""
    path = DATA / "candle_samples" / "3541.png"
    if not path.is_file():
        pytest.skip(f"the genuine samples are not in {path.parent} (set DIORAMA_DATA)")
    image = read_png(path).astype(int)
    blue = (image[..., 2] > image[..., 1] + 40) & (image[..., 2] > image[..., 0] + 40)
    blue[:150] = False  # the climbing frame
    genuine = visible_box(blue)
    params = {**values_of(grid()[3541]), "position": [-1.75, -6.55], "camera": [0.0, 0.0]}
    points = solids()["torus"].vertices.astype(float)
    matrix = placed(params, True)
    seen = project(points @ matrix[:3, :3].T + matrix[:3, 3], view(), 320, 240)
    ours = [*seen.min(0), *seen.max(0)]
    assert np.abs(np.subtract(genuine, ours))[[0, 2]].max() < 1.5
    assert np.abs(np.subtract(genuine, ours))[[1, 3]].max() < 5  # the jitter of ±0.5 degrees is ±3.9 pixels


def test_the_contracts_of_worlds_hold():
    for check in CHECKS:
        assert check(Candle(width=32, samples=2)) == "", check.__name__


# Panoramas from files


def test_lone_bright_dots_go_and_all_else_stays():
    draw = rng("dots")
    wall = 0.3 * (1 + 0.004 * draw.standard_normal((60, 80, 1))) * np.array([1, 0.9, 0.7])
    leaves = draw.uniform(0.02, 0.2, (60, 80, 1)) * np.array([0.4, 1, 0.3])
    at = np.array([(i, j) for i in range(5, 60, 10) for j in range(5, 80, 10)])
    for clean, strength in ((wall, 1.08), (leaves, 3.0)):
        dotted = clean.copy()
        dotted[tuple(at.T)] = strength * clean.max(axis=(0, 1))
        kept = despeckled(dotted.astype(np.float32))
        assert (kept[tuple(at.T)] <= clean.max(axis=(0, 1)) + 1e-6).all()
        elsewhere = np.ones(clean.shape[:2], bool)
        elsewhere[tuple(at.T)] = False
        changed = (kept != dotted.astype(np.float32)).any(axis=2)[elsewhere]
        assert changed.mean() < 0.02


@pytest.fixture
def panoramas(tmp_path):
    """Sky above, ground below; red in the middle, green to its left, blue to its right."""
    image = np.zeros((64, 128, 3), np.uint8)
    image[..., 0] = 200
    image[:, :58] = (0, 200, 0)
    image[:, 70:] = (0, 0, 200)
    image[:32] = image[:32] // 2 + 100
    write_png(tmp_path / "a.png", image)
    write_png(tmp_path / "city_square.png", image)
    return tmp_path


def test_panoramas_keep_left_and_right_and_up(panoramas):
    seen = backdrop(panorama("indoor", str(panoramas), 64), view(), 64, 48)
    left, middle, right = seen[40, 2], seen[40, 32], seen[40, 61]
    assert (left.argmax(), middle.argmax(), right.argmax()) == (1, 0, 2)
    assert seen[:16].mean() > seen[32:].mean()
    files = panorama_files(str(panoramas))
    assert files["city square"].name == "city_square.png"
    assert files["indoor"].name == "a.png"


def test_bad_panoramas_are_named(tmp_path):
    with pytest.raises(InputError, match="holds no panorama"):
        panorama_files(str(tmp_path))
    write_png(tmp_path / "square.png", np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(InputError, match="twice as wide as high"):
        read_panorama(tmp_path / "square.png")


def test_real_panoramas_light_the_object(scene):
    if not (DATA / "hdri").is_dir():
        pytest.skip(f"the panoramas are not in {DATA / 'hdri'} (set DIORAMA_DATA)")
    pytest.importorskip("OpenEXR")
    world = Candle(width=64, samples=4, hdri=str(DATA / "hdri"), scenes=16)
    frames = world.render([world.do(scene, scene=name) for name in ("indoor", "bridge")])
    for frame in frames:
        assert np.isfinite(frame.image).all()
        assert frame.mask.any()
    assert same(*frames, *BUFFERS)
    assert not np.allclose(frames[0].image, frames[1].image)


# On disk


@pytest.mark.slow
def test_a_data_set_is_written_read_and_continued(diorama, tmp_path):
    world = "candle(width=32, samples=2)"
    command = ["render", world, "-n", "6", "--layout", "candle", "-o", "out", "--seed", "3"]
    first = diorama(*command)
    assert first.returncode == 0, first.stderr
    out = tmp_path / "out"
    assert {p.name for p in out.glob("[0-9]*")} == {f"{i}.{kind}" for i in range(6) for kind in ("png", "json")}
    pixels = {p.name: p.read_bytes() for p in out.glob("[0-9]*")}
    (out / "2.json").unlink()  # as if stopped after writing the image
    (out / "5.png").unlink()
    (out / "5.json").unlink()
    kept = (out / "1.png").stat().st_mtime_ns
    assert diorama(*command).returncode == 0
    assert (out / "1.png").stat().st_mtime_ns == kept
    assert {p.name: p.read_bytes() for p in out.glob("[0-9]*")} == pixels
    content = json.loads(pixels["4.json"])
    assert content["objects"]["Cube_0"]["rotation"] == 60
    other = diorama("render", world, "-n", "6", "--layout", "candle", "-o", "out", "--seed", "4")
    assert other.returncode == 2
    assert "another world, seed or --do" in other.stderr
    from diorama.worlds.recorded.candle_recorded import CandleRecorded

    recorded = CandleRecorded(str(out))
    frame = recorded.render([recorded.scene(4)[1]])[0]
    staged = Candle(width=32, samples=2).render([Candle(width=32, samples=2).numbered(4, seed=3)])[0]
    assert frame.truth["factors"] == staged.truth["factors"]
    assert frame.truth["boxes"] == staged.truth["boxes"]
    assert np.abs(frame.image - staged.srgb()).max() < 0.003


def test_layout_mistakes_are_said(diorama):
    assert (
        "candle have 4050 combinations"
        in diorama("render", "candle", "-n", "4051", "--layout", "candle", "-o", "o").stderr
    )
    assert (
        "cannot be written in layout"
        in diorama("render", "mondrian", "-n", "1", "--layout", "candle", "-o", "o").stderr
    )
