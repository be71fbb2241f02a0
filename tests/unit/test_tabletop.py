"""The tabletop world: exact layers, local interventions, stated lamp, user's meshes and textures, the MIT layout."""

import json

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("embreex")

from diorama.capture.pipeline import inner
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.scene import Scene, canonical, rng
from diorama.io.images import read_png, write_png
from diorama.render.colour import black_body
from diorama.testing.check import check_component
from diorama.worlds.recorded.mit_intrinsic import MitIntrinsic
from diorama.worlds.tabletop.stage import UNIFORM, lamp
from diorama.worlds.tabletop.tabletop import Tabletop

SMALL = Tabletop(size=32, samples=4)
THREE = Tabletop(size=48, samples=4, objects=3, surface="textured")


def scene_of(world: Tabletop, i: int = 0) -> Scene:
    return world.sample(rng(0, "scene", i))


@pytest.mark.parametrize("text", ["tabletop(size=24, samples=2)", "tabletop(size=24, samples=2, objects=3, bounces=2)"])
def test_contract(text):
    assert check_component(build("world", text))


def test_layers_are_exact_and_truth_is_complete():
    frame = THREE.render([scene_of(THREE)])[0]
    t = frame.truth
    np.testing.assert_array_equal(frame.image, t["reflectance"] * t["shading"] + t["specular"])
    assert set(THREE.truth) == set(t)
    assert set(np.unique(t["parts"])) == {0, 1, 2, 3}
    np.testing.assert_array_equal(t["mask"], t["parts"] > 0)
    assert np.isfinite(t["depth"]).all()
    np.testing.assert_allclose(np.linalg.norm(t["normal"], axis=2), 1, atol=1e-4)
    assert t["specular"][t["mask"]].max() > 0


def test_only_the_light_moves():
    scene = scene_of(THREE)
    lights = [{"light": i} for i in range(1, 12)] + [{"light_angle": -44}, {"temperature": 2500}]
    frame, *others = THREE.render([scene, *(THREE.do(scene, **change) for change in lights)])
    for other in others:
        np.testing.assert_array_equal(other.truth["reflectance"], frame.truth["reflectance"])
        np.testing.assert_array_equal(other.truth["parts"], frame.truth["parts"])
        assert not np.array_equal(other.image, frame.image)
    assert len({other.image.tobytes() for other in others}) == len(others)


def test_repainting_leaves_the_light():
    """With direct light only, paint changes reflectance and nothing else (inside one paint's pixels)."""
    scene = scene_of(SMALL)
    frame, red, twin = SMALL.render([scene, SMALL.do(scene, albedo=[0.8, 0.1, 0.1]), SMALL.do(scene, uniform=True)])
    inside = inner(frame.mask, 1)
    np.testing.assert_allclose(red.truth["reflectance"][inside], np.tile([0.8, 0.1, 0.1], (inside.sum(), 1)), rtol=1e-5)
    np.testing.assert_allclose(twin.truth["reflectance"][inside], UNIFORM, rtol=1e-5)
    for other in (red, twin):
        np.testing.assert_allclose(other.truth["shading"][inside], frame.truth["shading"][inside], rtol=1e-4)
        np.testing.assert_array_equal(other.truth["specular"][inside], frame.truth["specular"][inside])


def test_one_object_can_be_repainted():
    scene = scene_of(THREE)
    done = THREE.do(scene, albedo={1: [0.5, 0.5, 0.5]})
    assert [a == b for a, b in zip(scene.params["objects"], done.params["objects"], strict=True)] == [True, False, True]
    assert Scene.from_json(json.loads(canonical(done.to_json()))) == done


def test_shading_is_gray_under_white_light_and_tinted_under_a_black_body():
    scene = scene_of(SMALL)
    frames = SMALL.render([scene, SMALL.do(scene, temperature=2500)])
    pure = inner(frames[0].mask, 1) | inner(~frames[0].mask, 1)  # one paint in the pixel
    white, warm = (frame.truth["shading"][pure] for frame in frames)
    np.testing.assert_allclose(white, white[:, :1] * np.ones(3), rtol=1e-5)
    np.testing.assert_allclose(warm, white * black_body(2500), rtol=1e-4)


def test_the_lamp_is_as_stated():
    """Irradiance far from the lamp is about power/(π d²) times the exposure; twice the power, twice the light."""
    scene = scene_of(SMALL)
    light = lamp(scene.params)
    np.testing.assert_allclose(np.linalg.norm([light.edge_u, light.edge_v], axis=1), 1.0)  # 2 × 0.5 m
    centre = np.add(light.corner, np.add(light.edge_u, light.edge_v) / 2)
    np.testing.assert_allclose(centre, scene.params["lights"][0], atol=1e-9)
    dim = SMALL.do(scene, fill=0.0)
    once, twice = SMALL.render([dim, SMALL.do(dim, power=2000)])
    np.testing.assert_allclose(twice.image, 2 * once.image, rtol=1e-4, atol=1e-7)


def test_light_angle_turns_the_key_light_about_the_table():
    scene = scene_of(SMALL)
    left, right = (SMALL.render([SMALL.do(scene, light_angle=a)])[0].truth["lights"][0] for a in (-44, 44))
    np.testing.assert_allclose(left, np.multiply(right, [-1, 1, 1]), atol=1e-9)
    assert SMALL.do(SMALL.do(scene, light_angle=10), light=0) == scene


def test_highlights_can_be_switched_off():
    scene = scene_of(SMALL)
    glossy, matt = SMALL.render([scene, SMALL.do(scene, specular=False)])
    assert matt.truth["specular"].max() == 0 < glossy.truth["specular"].max()
    np.testing.assert_array_equal(matt.truth["shading"], glossy.truth["shading"])


def test_black_paper_stops_interreflection():
    world = Tabletop(size=32, samples=16, bounces=2, fill=0.0)
    scene = scene_of(world)
    black, white = world.render([world.do(scene, table=0.0), world.do(scene, table=0.85)])
    mask = black.mask
    assert white.truth["shading"][mask].mean() > 1.05 * black.truth["shading"][mask].mean()


def test_meshes_and_textures_of_a_folder(tmp_path):
    (tmp_path / "m").mkdir()
    corners = ["v 0 0 0", "v 1 0 0", "v 0 1 0", "v 0 0 1"]
    (tmp_path / "m" / "tetra.obj").write_text("\n".join([*corners, "f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]))
    write_png(tmp_path / "t" / "flat.png", np.full((4, 4, 3), 188, np.uint8))
    world = Tabletop(size=32, samples=2, surface="textured", meshes=str(tmp_path / "m"), textures=str(tmp_path / "t"))
    scene = scene_of(world)
    thing = scene.params["objects"][0]
    assert (thing["mesh"], thing["paint"]) == ("tetra.obj", {"image": "flat.png"})
    frame = world.render([scene])[0]
    assert np.median(frame.truth["reflectance"][frame.mask]) == pytest.approx(0.503, abs=0.002)
    before = world.fingerprint()
    write_png(tmp_path / "t" / "flat.png", np.full((4, 4, 3), 189, np.uint8))
    assert world.fingerprint() != before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"light": 12}, "light=12"),
        ({"light": True}, "light=True"),
        ({"ligth": 1}, "'light'"),
        ({"light": 1, "light_angle": 2}, "not both"),
        ({"temperature": 10}, "temperature=10"),
        ({"power": float("nan")}, "power=nan"),
        ({"albedo": [1, 2, 3]}, "albedo="),
        ({"albedo": {5: [0, 0, 0]}}, "object 5"),
        ({"uniform": "yes"}, "uniform='yes'"),
        ({"pan": [1]}, "pan="),
    ],
)
def test_mistakes_are_named(change, named):
    with pytest.raises(InputError, match=named):
        SMALL.do(scene_of(SMALL), **change)


@pytest.mark.parametrize(
    "wrong", [{"size": 4}, {"samples": 0}, {"objects": 2}, {"surface": "shiny"}, {"meshes": "/no/such"}, {"radius": 0}]
)
def test_wrong_parameters_are_named(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(InputError, match=name):
        build("world", f"tabletop({name}={value})")


def test_a_folder_without_meshes_is_named(tmp_path):
    with pytest.raises(InputError, match="holds no mesh"):
        scene_of(Tabletop(meshes=str(tmp_path)))
    with pytest.raises(InputError, match="holds no image"):
        scene_of(Tabletop(surface="textured", textures=str(tmp_path)))


@pytest.mark.slow
def test_mit_layout_is_read_back(tmp_path, diorama):
    spec = "tabletop(size=40, samples=4, objects=3, surface=textured)"
    done = diorama("render", spec, "-n", "1", "-o", "mit", "--layout", "mit")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "mit" / "0-00000"
    names = {"original", "diffuse", "shading", "reflectance", "specular", "mask"}
    assert {p.stem for p in folder.iterdir()} == names | {f"light{i:02d}" for i in range(1, 11)}
    stored = {name: read_png(folder / f"{name}.png", bits=16).astype(float) for name in names}
    assert stored["shading"].ndim == stored["mask"].ndim == 2
    product = stored["reflectance"] * stored["shading"][:, :, None] / 65535
    np.testing.assert_array_equal(stored["original"], np.rint(product + stored["specular"]))
    np.testing.assert_array_equal(stored["diffuse"], np.rint(product))

    exposure = json.loads((tmp_path / "mit" / "manifest.json").read_text())["cases"][0]["exposure"]
    world = Tabletop(size=40, samples=4, objects=3, surface="textured")
    exact = world.render([scene_of(world)])[0]
    read = MitIntrinsic(str(tmp_path / "mit"), "original", ("0-00000",))
    frame = read.render([read.scene(0)[1]])[0]
    np.testing.assert_array_equal(frame.mask, exact.mask)
    inside = exact.mask
    np.testing.assert_allclose(frame.image[inside], exposure * exact.image[inside], atol=2.1 / 65535)
    pure = inside & (np.ptp(exact.truth["shading"], axis=2) < 1e-6)
    assert pure.sum() > 50  # enough pixels of one paint to compare
    np.testing.assert_allclose(frame.truth["reflectance"][pure], exact.truth["reflectance"][pure], atol=1 / 65535)
    view = read.render([read.do(read.scene(0)[1], light=3)])[0]
    other = world.render([world.do(scene_of(world), light=3)])[0]
    np.testing.assert_allclose(view.image[inside], exposure * other.image[inside], atol=1 / 65535)


def test_mit_layout_of_a_warm_light_has_coloured_shading():
    from diorama.worlds.tabletop.mit import mit_layers

    world = Tabletop(size=24, samples=2, temperature=2500.0)
    layers, exposure = mit_layers(world.render([scene_of(world)])[0], [], gray=False)
    assert layers["shading"].ndim == 3
    assert exposure <= 1


def test_mit_layout_refuses_other_worlds_and_misspelt_objects(tmp_path, diorama):
    done = diorama("render", "mondrian", "-n", "1", "-o", "x", "--layout", "mit")
    assert done.returncode != 0
    assert "layout 'mit'" in done.stderr and "flat" in done.stderr
    (tmp_path / "teapot").mkdir()
    with pytest.raises(InputError, match="teapot"):
        MitIntrinsic(str(tmp_path), objects=("teapt",))
