"""Sprites: the re-rendering against published frames of dSprites, the grid, confounding, and the original's layout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.core.errors import InputError
from diorama.models.sprites_moments import SpritesMoments
from diorama.render.sprites import SHAPES, silhouettes
from diorama.worlds.recorded.dsprites import Dsprites
from diorama.worlds.sprites import NAMES, Sprites
from tests.conftest import DATA

FOLDER = DATA / "dsprites"
TINY = FOLDER / "tiny" / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
LEVELS = Sprites().levels
present = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"dSprites samples are not in {FOLDER} (set DIORAMA_DATA)")


def gif_layout():
    """(shape, scale, orientation, x, y) of the gif's frames as numbers of levels; scales of 0–17 by area, see the test."""
    centre = [(None, 0, 0, 0)] * 18 + [(5, k, 0, 0) for k in range(40)]
    walk = [(5, 0, 0, k) for k in range(32)] + [(5, 0, k, 31) for k in range(32)]
    walk += [(5, 0, 31, 31 - k) for k in range(32)] + [(5, 0, 31 - k, 0) for k in range(32)]
    end = [(None, 0, 0, 0)] * 6
    heart = centre + walk + end
    return [(2, *p) for p in heart] + [(1, *p) for p in centre + end] + [(0, *p) for p in centre + end]


def drawn(shape, scale, turn, x, y):
    values = (LEVELS[name][i] for name, i in zip(NAMES[1:], (scale, turn, x, y), strict=True))
    return silhouettes(np.array([shape]), *(np.array([v]) for v in values))[0]


@present
def test_frames_of_the_published_gif():
    """Squares and ellipses: at least 95 % exact; hearts: at most 3 pixels off."""
    image_module = pytest.importorskip("PIL.Image")
    wrong = {0: [], 1: [], 2: []}
    with image_module.open(FOLDER / "dsprites.gif") as gif:
        for number, (shape, scale, *rest) in enumerate(gif_layout()):
            gif.seek(number)
            true = np.asarray(gif.convert("L")) > 127
            scales = range(6) if scale is None else [scale]
            wrong[shape].append(min(int((drawn(shape, s, *rest) != true).sum()) for s in scales))
    assert [len(wrong[s]) for s in (0, 1, 2)] == [64, 64, 192]
    for shape in (0, 1):
        assert np.mean(np.array(wrong[shape]) == 0) >= 0.95, SHAPES[shape]
    assert max(wrong[2]) <= 3
    assert sum(map(sum, wrong.values())) <= 70  # wrong pixels over all 320 frames


@present
def test_independent_samples_with_latents():
    with np.load(TINY, allow_pickle=False) as stored:
        values, images = stored["latents_values"], stored["imgs"]
    ours = silhouettes(values[:, 1].astype(int) - 1, *values[:, 2:].T)
    wrong = (ours != images).sum(axis=(1, 2))
    assert wrong.max() <= 3 and (wrong == 0).sum() >= 9


def test_the_grid_is_the_published_one():
    world = Sprites()
    assert len(world) == 737_280
    last = world.numbered(737_279).params
    assert last == {"shape": "heart", "scale": 1.0, "orientation": 2 * np.pi, "x": 1.0, "y": 1.0}
    number = (((1 * 6 + 2) * 40 + 3) * 32 + 4) * 32 + 5
    want = dict(zip(NAMES, ("ellipse", 0.7, LEVELS["orientation"][3], 4 / 31, 5 / 31), strict=True))
    assert world.numbered(number).params == pytest.approx(want)
    name, scene = world.scene(12345)
    assert world.numbered(int(name)) == scene
    first, end = world.render([world.numbered(0), world.numbered(39 * 1024)])
    assert np.array_equal(first.image, end.image)  # orientation 0 and 2π are one image, as in the original


def test_every_combination_of_a_thinned_grid_comes_once():
    world = Sprites((3, 2, 4, 3, 3))
    scenes = [world.scene(i) for i in range(len(world))]
    assert len(world) == 216 == len({scene.key for _, scene in scenes})
    assert sorted(int(name) for name, _ in scenes) == list(range(216))
    assert len(set(world.levels["orientation"])) == 4 and 2 * np.pi not in world.levels["orientation"]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2), st.floats(0.3, 1), st.floats(0, 6.2), st.floats(0, 1), st.floats(0, 1))
def test_do_changes_only_what_it_names(shape, scale, turn, x, y):
    world = Sprites()
    scene = world.do(world.numbered(0), shape=SHAPES[shape], scale=scale, orientation=turn, x=0.5, y=0.5)
    moved = world.do(scene, x=x, y=y)
    assert {k for k in NAMES if moved.params[k] != scene.params[k]} <= {"x", "y"}
    centre, away = (frame.image[..., 0] for frame in world.render([scene, moved]))
    assert abs(centre.sum() - away.sum()) <= 0.25 * centre.sum() + 6  # the same shape, other sub-pixel place
    back = world.render([world.do(moved, x=0.5, y=0.5)])[0].image[..., 0]
    assert np.array_equal(back, centre)


def test_turning_a_square_by_a_quarter_changes_nothing_but_rounding():
    world = Sprites()
    scene = world.do(world.numbered(0), x=0.5, y=0.5, orientation=0.3)
    a, b = world.render([scene, world.do(scene, orientation=0.3 + np.pi / 2)])
    assert np.abs(a.image - b.image).sum() == 0


def test_coupling_confounds_by_sub_selection():
    free, coupled = Sprites((3, 6, 4, 8, 4)), Sprites((3, 6, 4, 8, 4), sigma=0.2, couple=("scale", "x"))
    assert len(coupled) < len(free) / 2
    params = [coupled.scene(i)[1].params for i in range(len(coupled))]
    scale, x, y = (np.array([p[k] for p in params]) for k in ("scale", "x", "y"))
    assert np.corrcoef(scale, x)[0, 1] > 0.7 > 0.2 > abs(np.corrcoef(scale, y)[0, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sprites((3, 6, 40, 32)), "five whole numbers"),
        (lambda: Sprites((4, 6, 40, 32, 32)), "five whole numbers of at most"),
        (lambda: Sprites(sigma=0.0), "sigma=0.0 should be above 0"),
        (lambda: Sprites(couple=("scale", "colour")), "couple names 'colour'"),
        (lambda: Sprites().do(Sprites().numbered(0), shape="star"), "shape='star'"),
        (lambda: Sprites().do(Sprites().numbered(0), x=1.5), r"x=1.5 should be a number from 0 to 1"),
        (lambda: Sprites().numbered(10**6), "there is no combination 1000000"),
        (lambda: Dsprites("nowhere.npz"), "there is no file 'nowhere.npz'"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.fixture
def fixture_npz(tmp_path):
    """Twenty-four sprites in the layout of the published file, compressed as that is."""
    world = Sprites((3, 2, 2, 2, 1))
    frames = world.render([world.numbered(i) for i in range(24)])
    params = [frame.scene.params for frame in frames]
    values = [[1.0, SHAPES.index(p["shape"]) + 1, *(p[k] for k in NAMES[1:])] for p in params]
    path = tmp_path / "dsprites.npz"
    images = np.stack([frame.image[..., 0] for frame in frames]).astype(np.uint8)
    np.savez_compressed(path, imgs=images, latents_values=np.array(values), latents_classes=np.zeros((24, 6), int))
    return path


def test_the_original_layout(fixture_npz):
    world, staged = Dsprites(str(fixture_npz)), Sprites((3, 2, 2, 2, 1))
    assert len(world) == 24 and {k: len(v) for k, v in world.levels.items()} == {
        **dict(zip(NAMES, (3, 2, 2, 2, 1), strict=True))
    }
    for i in range(24):
        name, scene = world.scene(i)
        assert np.array_equal(world.render([scene])[0].image, staged.render([staged.numbered(int(name))])[0].image)
    scene = world.scene(0)[1]
    other = world.do(scene, shape="heart", scale=1.0)
    assert other.params["shape"] == "heart" and world.render([other])[0].truth["factors"]["scale"] == 1.0
    with pytest.raises(InputError, match=r"no recorded image has scale=0.55"):
        world.do(scene, scale=0.55)
    with pytest.raises(InputError, match="cannot change 'colour'"):
        world.do(scene, colour=1)


@pytest.mark.parametrize("lacking", ["imgs", "latents_values"])
def test_a_file_without_an_array_is_refused(fixture_npz, tmp_path, lacking):
    with np.load(fixture_npz) as stored:
        kept = {name: stored[name] for name in stored.files if name != lacking}
    np.savez(tmp_path / "other.npz", **kept)
    with pytest.raises(InputError, match=f"no array '{lacking}'"):
        world = Dsprites(str(tmp_path / "other.npz"))
        world.render([world.scene(0)[1]])
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(InputError, match="cannot be read as arrays"):
        Dsprites(str(tmp_path / "text.npz"))


@present
def test_the_genuine_samples_read():
    world = Dsprites(str(TINY))
    frame = world.render([world.scene(0)[1]])[0]
    assert len(world) == 12 and set(np.unique(frame.image)) == {0.0, 1.0}


def test_moments_tell_all_but_the_orientation():
    world, judge = Sprites(), SpritesMoments()
    scenes = [world.scene(i)[1] for i in range(120)]
    logits = judge.logits(np.stack([frame.image for frame in world.render(scenes)]))
    parts = np.split(logits, np.cumsum(judge.heads)[:-1], axis=1)
    right = {
        name: np.mean([part[n].argmax() == levels.index(s.params[name]) for n, s in enumerate(scenes)])
        for (name, levels), part in zip(world.levels.items(), parts, strict=True)
    }
    assert min(right[name] for name in ("shape", "scale", "x", "y")) >= 0.99
    assert 0.6 < right["orientation"] < 0.95  # symmetric shapes: not to be told
    np.testing.assert_allclose(np.exp(parts[0]).sum(axis=1), 1, atol=1e-5)
