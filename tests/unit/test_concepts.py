"""Concept sets: what is constant in them, the paper's counts and names, natural sets, negatives, files on disk."""

import json
import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.io.images import quantise, read_png, write_png
from diorama.render.colour import black_body
from diorama.testing.check import check_all
from diorama.worlds.concepts.concepts import SETTINGS, Concepts
from diorama.worlds.concepts.layers import Studio, compose, reflectance
from diorama.worlds.concepts.random_scenes import RandomScenes
from diorama.worlds.concepts.scenes import SOLIDS, SUBSTITUTES, SWEEP, TRIPLES, casts
from diorama.worlds.concepts.test_scenes import TestScenes
from diorama.worlds.recorded.arap import EXCLUDED
from diorama.worlds.recorded.natural_concepts import NaturalConcepts
from diorama.worlds.recorded.photometric_stereo import PhotometricStereo
from diorama.worlds.tabletop.tabletop import Tabletop
from tests.conftest import DATA

SMALL = {"scenes": 2, "images": 3, "size": 24, "samples": 4}


def frames_of(world, index):
    return world.render(world.members(world.scene(index)[1]))


def spread(frames, layer):
    """How much a layer changes over a set: the largest difference from the first image."""
    stack = np.stack([frame.truth[layer] for frame in frames])
    return float(np.abs(stack - stack[0]).max())


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_only_what_is_named_changes(setting):
    painted = frames_of(Concepts(change="albedo", setting=setting, **SMALL), 1)
    assert spread(painted, "shading") <= 1e-6 < 0.1 < spread(painted, "reflectance")
    assert spread(painted, "specular") <= 1e-6
    lit = frames_of(Concepts(change="light", setting=setting, **SMALL), 1)
    assert spread(lit, "reflectance") <= 1e-6 < 0.1 < spread(lit, "shading")
    for frame in painted + lit:
        truth = frame.truth
        assert np.array_equal(frame.image, truth["reflectance"] * truth["shading"] + truth["specular"])
        assert 0.02 < frame.mask.mean() < 0.8


def test_composed_and_traced_images_agree_where_a_pixel_shows_one_surface():
    table = Tabletop(size=32, samples=8, objects=3, temperature=2500.0)
    scene = table.do(Concepts(setting="rgb-complex", size=32).scene(3)[1], temperature=2500.0)
    traced, composed = table.render([scene])[0], compose(Studio(32, 8), scene)
    pure = reflectance(Studio(32, 8), scene.params)
    paints = np.array([[0.85] * 3, *(thing["paint"] for thing in scene.params["objects"])], np.float32)
    single = (np.abs(pure[:, :, None] - paints).max(axis=3) < 1e-6).any(axis=2)
    assert 0.7 < single.mean() < 1
    assert np.abs(traced.image - composed.image)[single].max() < 2e-5
    assert np.abs(traced.truth["reflectance"] - composed.truth["reflectance"]).max() < 1e-6
    assert np.array_equal(traced.truth["parts"], composed.truth["parts"])


def test_temperature_is_one_factor_on_shading_and_highlights():
    world = Concepts(**SMALL)
    scene = world.scene(0)[1]
    white, warm = world.render([world.do(scene, temperature=None), world.do(scene, temperature=2500)])
    for layer in ("shading", "specular"):
        assert np.allclose(warm.truth[layer], white.truth[layer] * black_body(2500), rtol=1e-5, atol=1e-7)
        assert np.ptp(white.truth[layer], axis=2).max() == 0


def test_with_inter_reflection_the_layers_still_explain_the_image():
    given = {"setting": "rgb-simple", "bounces": 1, **SMALL, "images": 2}
    lit, painted = (frames_of(Concepts(change=change, **given), 0) for change in ("light", "albedo"))
    assert spread(lit, "reflectance") <= 1e-6
    assert spread(painted, "shading") > 1e-4  # the table throws the paint's colour back
    for frame in lit + painted:
        made = frame.truth["reflectance"] * frame.truth["shading"] + frame.truth["specular"]
        assert np.array_equal(frame.image, made)


def test_counts_and_names_are_the_papers():
    world = Concepts()
    assert len(world) == 4 * (120 + 90)
    scenes = [world.scene(i) for i in range(len(world))]
    counts = Counter((s.params["change"], s.params["setting"]) for _, s in scenes)
    assert set(counts.values()) == {120, 90} and len(counts) == 8
    names = [name for name, _ in scenes]
    assert len(set(names)) == len(names)
    assert {"ducktex_light0temp2500", "ducklight0temp2500", "duck_mat0temp2500", "duck_tex_mat0temp2500"} <= set(names)
    assert all(re.fullmatch(r".+((tex_)?light[0-3]|_(tex_)?mat[0-2])temp(2500|4500|6500)", name) for name in names)
    combined = {
        (p["change"], p["setting"], p["index"], p["temperature"], p["variant"]) for _, s in scenes for p in [s.params]
    }
    assert len(combined) == len(names)
    assert len({(s.params["change"], s.params["setting"]) for _, s in scenes[:8]}) == 8
    assert {len(world.members(s)) for _, s in scenes[:2]} == {100, 44}
    assert all(s.params["power"] == 1000 and s.params["radius"] == 0.5 for _, s in scenes)


def test_the_lamp_sweeps_from_left_to_right_without_the_centre():
    world = Concepts(change="light", setting="rgb-simple")
    concept = world.scene(0)[1]
    angles = [member.params["light_angle"] for member in world.members(concept)]
    assert angles == [*range(-44, 0, 2), *range(2, 45, 2)] == list(SWEEP)
    few = Concepts(change="light", setting="rgb-simple", images=4)
    assert [m.params["light_angle"] for m in few.members(concept)] == [-44, -16, 16, 44]
    assert len({json.dumps(m.params["objects"]) for m in world.members(concept)}) == 1


def test_a_paint_is_the_same_in_all_sets_of_a_base_scene():
    world = Concepts(setting="textured-complex", images=3)
    sets = [world.scene(i)[1] for i in range(len(world)) if world.scene(i)[1].params["index"] == 4]
    painted = [s for s in sets if s.params["change"] == "albedo"]
    assert len({json.dumps([m.params["objects"] for m in world.members(s)]) for s in painted}) == 1
    for concept in sets:
        other = world.opposite(concept).params
        assert (other["base"], other["temperature"]) == (concept.params["base"], concept.params["temperature"])
        assert other["change"] != concept.params["change"]
    lit = next(s for s in sets if s.params["change"] == "light" and s.params["variant"] == 2)
    assert lit.params["objects"] == world.members(painted[0])[2].params["objects"]


def test_more_scenes_or_images_leave_the_others_as_they_are():
    few, many = Concepts(scenes=2, images=2, change="albedo"), Concepts(scenes=12, images=9, change="albedo")
    for i in range(8):
        concept = few.scene(i)[1]
        assert concept == many.scene(i)[1]
        assert few.members(concept) == many.members(concept)[:2]
    names = [name for name, _ in casts(1, 25, None)]
    assert len(set(names)) == 25 and names[10] == "duck-2"


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_the_papers_meshes_and_their_substitutes(tmp_path):
    for name in {*SOLIDS, *SUBSTITUTES.values()} - {"Cube", "Sphere", *SUBSTITUTES}:
        (tmp_path / f"{name}.obj").write_text(TETRAHEDRON)
    assert [name for name, _ in casts(1, 10, str(tmp_path))][:5] == ["Cube", "Sphere", "cow", "homer", "rocker-arm"]
    world = Concepts(meshes=str(tmp_path), change="light", setting="rgb-complex", **{**SMALL, "scenes": 10})
    assert world.scene(9)[0] == "spot_stanford-bunny_suzanne_mat0temp2500"
    assert world.scene(1)[1].params["objects"][2]["mesh"] == "teapot.obj"
    assert frames_of(world, 1)[0].mask.any()
    (tmp_path / "happy.obj").write_text(TETRAHEDRON)
    assert casts(3, 10, str(tmp_path))[0] == ("Cube_happy_stanford-bunny", ("Cube", "happy.obj", "stanford-bunny.obj"))
    (tmp_path / "rocker-arm.obj").unlink()
    assert casts(1, 2, str(tmp_path))[0][0] == "cow"  # not all of the paper's are there: any folder of meshes will do
    assert len(set(TRIPLES)) == len(SOLIDS) == 10


def test_the_real_meshes_and_textures():
    if not (DATA / "meshes").is_dir() or not (DATA / "textures_dtd").is_dir():
        pytest.skip(f"the meshes and textures are not in {DATA} (set DIORAMA_DATA)")
    given = {"meshes": str(DATA / "meshes"), "textures": str(DATA / "textures_dtd")}
    world = Concepts(change="albedo", setting="textured-complex", **{**SMALL, "scenes": 10}, **given)
    assert world.scene(8)[0] == "nefertiti_spot_suzannetex_light0temp6500"
    frames = frames_of(world, 8)
    assert spread(frames, "shading") <= 1e-6 < 0.05 < spread(frames, "reflectance")


def test_test_scenes_and_negatives_are_apart_from_the_sets():
    staged, negatives = TestScenes(size=24, samples=4), RandomScenes(size=24, samples=4)
    assert (len(staged), len(negatives)) == (120, 2000)
    cases = [staged.scene(i) for i in range(120)]
    assert len({name for name, _ in cases}) == len({scene.key for _, scene in cases}) == 120
    assert cases[0][1].params["objects"] == cases[40][1].params["objects"] == cases[80][1].params["objects"]
    assert len({scene.params["light"] for _, scene in cases}) == 3
    assert all(len(scene.params["objects"]) == 3 for _, scene in cases)
    concepts = Concepts(scenes=10)
    looks = {json.dumps(concepts.scene(i)[1].params["camera"]) for i in range(80)}
    randoms = [negatives.scene(i)[1] for i in range(200)]
    assert not looks & {json.dumps(s.params["camera"]) for s in [*randoms, *(s for _, s in cases)]}
    for name in ("temperature", "power", "radius", "fill", "table", "camera", "light", "specular"):
        assert len({json.dumps(s.params[name]) for s in randoms}) >= min(2, len(randoms))
    assert {len(s.params["objects"]) for s in randoms} == {1, 3}
    for frame in [*staged.render([s for _, s in cases[:2]]), *negatives.render(randoms[:4])]:
        assert np.isfinite(frame.image).all() and frame.mask.any() and frame.image.mean() > 0.005


def test_the_contract_holds(tmp_path):
    said: list[str] = []
    specs = [
        "concepts(size=16, samples=2, scenes=2, images=2)",
        "test_scenes(size=16, samples=2)",
        "random_scenes(size=16, samples=2)",
        f"photometric_stereo(root={stereo(tmp_path / 'ps')})",
        f"natural_concepts(root={tmp_path / 'ps'}, kind=stereo, min_images=3, size=16)",
    ]
    assert check_all(specs, said.append), said


def stereo(root: Path, count: int = 4) -> Path:
    draw = np.random.default_rng(0)
    for name in ("cat", "chrome", "owl"):
        for i in range(count):
            write_png(root / name / f"{name}.{i}.png", quantise(draw.random((20, 30, 3)), 8))
        mask = np.zeros((20, 30), np.uint8)
        mask[5:15, 5:25] = 255
        write_png(root / name / f"{name}.mask.png", mask)
    (root / "lights.txt").write_text("4\n" + "0 0 1\n" * 3 + "0.6 0 0.8\n")
    return root


def test_photometric_stereo_reads_photos_masks_and_directions(tmp_path):
    world = PhotometricStereo(str(stereo(tmp_path)))
    assert world.names == ["cat", "owl"]  # not the ball that calibrates
    scene = world.scene(1)[1]
    frame = world.render([world.do(scene, light=3)])[0]
    assert frame.mask.sum() == 200 and frame.encoding == "linear"
    assert frame.truth["lights"] == [[0.6, 0.0, 0.8]]
    stored = read_png(tmp_path / "owl" / "owl.3.png")
    assert np.array_equal(quantise(frame.image, 8), stored)
    with pytest.raises(InputError, match="light=4 was not recorded; there are 0 to 3"):
        world.do(scene, light=4)
    with pytest.raises(InputError, match=r"has <object>\.0\.png"):
        PhotometricStereo(str(tmp_path / "cat"))


def test_too_few_natural_images_are_refused_and_counted(tmp_path, diorama):
    with pytest.raises(
        InputError, match=r"'cat' has 4 images, fewer than min_images=20; add some, or accept it with min_images=4"
    ):
        NaturalConcepts(str(stereo(tmp_path / "ps")), "stereo")
    world = NaturalConcepts(str(tmp_path / "ps"), "stereo", min_images=4, size=12)
    assert world.note == "2 natural concept sets of 4 images, fewer than the 20 that Kim et al. (2018) advise"
    name, concept = world.scene(0)
    frames = world.render(world.members(concept))
    assert name == "cat" and len(frames) == 4 and frames[0].image.shape == (12, 12, 3)
    assert concept.params["change"] == "light"
    said = diorama("show", f"natural_concepts(root={tmp_path / 'ps'}, kind=stereo)")
    assert said.returncode == 2 and "has 4 images, fewer than min_images=20" in said.stderr
    assert said.stderr.count("\n") == 1
    said = diorama("show", f"natural_concepts(root={tmp_path / 'ps'}, kind=stereo, min_images=4)")
    assert "note: 2 natural concept sets of 4 images, fewer than the 20" in said.stdout


def test_multi_illumination_sets_have_25_images(tmp_path):
    import cv2

    (tmp_path / "everett_kitchen2").mkdir()
    for i in range(25):
        picture = quantise(np.random.default_rng(i).random((31, 46, 3)), 8)
        (tmp_path / "everett_kitchen2" / f"dir_{i}_mip6.jpg").write_bytes(cv2.imencode(".jpg", picture)[1].tobytes())
    world = NaturalConcepts(str(tmp_path), mip=6, size=None)
    frames = frames_of(world, 0)
    assert len(frames) == 25 and frames[0].image.shape == (31, 46, 3) and frames[0].encoding == "srgb"
    assert "fewer" not in world.note


def test_real_natural_sets(mit_root):
    world = NaturalConcepts(str(mit_root), "mit", min_images=11)
    assert len(world) == 16 and len(world.members(world.scene(0)[1])) == 11
    if not (DATA / "photometric_stereo").is_dir():
        pytest.skip(f"the photometric stereo photos are not in {DATA} (set DIORAMA_DATA)")
    photos = NaturalConcepts(str(DATA / "photometric_stereo"), "stereo", min_images=12)
    assert [photos.scene(i)[0] for i in range(len(photos))] == ["buddha", "cat", "horse", "owl"]
    frames = frames_of(photos, 1)
    inside = np.stack([frame.image[frame.mask].mean() for frame in frames])
    assert len(frames) == 12 and np.ptp(inside) > 0.01


@pytest.mark.slow
def test_the_layout_is_the_papers_and_goes_on_where_it_stopped(tmp_path, diorama):
    world = "concepts(size=16, samples=2, scenes=1, images=3, setting=rgb-simple)"
    done = diorama("render", world, "--layout", "concepts-linear", "-n", "2", "-o", "out")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    assert sorted(p.name for p in (out / "duck_mat0temp2500").iterdir()) == ["000.png", "001.png", "002.png"]
    assert json.loads((out / "manifest.json").read_text())["sets"] == ["duck_mat0temp2500", "ducklight0temp2500"]
    noted = json.loads((out / "duck_mat0temp2500.json").read_text())["images"]
    assert [entry["light_angle"] for entry in noted] == [-44, 2, 44]
    r, s, c, image = (
        np.load(out / "linear" / f"duck_mat0temp2500_{n}.npy") for n in ("reflectance", "shading", "specular", "image")
    )
    assert np.array_equal(image, r * s + c) and np.ptp(r, axis=0).max() <= 1e-6
    ElementTree.parse(out / "figure3.svg")
    (out / "ducklight0temp2500.json").unlink()  # as if stopped while this set was written
    before = {p: p.stat().st_mtime_ns for p in out.rglob("0*.png")}
    assert diorama("render", world, "--layout", "concepts", "-n", "3", "-o", "out").returncode == 0
    again = {p.parent.name for p, t in before.items() if p.stat().st_mtime_ns != t}
    assert again == {"ducklight0temp2500"}
    assert len(list(out.glob("*/0*.png"))) == 9
    other = diorama("render", world.replace("size=16", "size=20"), "--layout", "concepts", "-n", "1", "-o", "out")
    assert other.returncode == 2 and "choose another -o" in other.stderr
    read = NaturalConcepts(str(out), "folder", min_images=3, size=None)
    assert [read.scene(i)[1].params["change"] for i in range(3)] == ["light", "albedo", "albedo"]
    staged = build("world", world).object
    shown = quantise(frames_of(staged, 1)[2].srgb(), 8)
    assert np.array_equal(quantise(frames_of(read, 0)[2].image, 8), shown)


@pytest.mark.slow
def test_negatives_are_written_beside_the_sets(tmp_path, diorama):
    done = diorama("render", "random_scenes(size=16, samples=2)", "--layout", "concepts", "-n", "3", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "out" / "randoms").iterdir()) == [f"random{i:05d}.png" for i in range(3)]
    photos = f"photo_folder(root={tmp_path / 'out'}, size=12)"  # any folder of pictures will do
    assert diorama("render", photos, "--layout", "concepts", "-n", "9", "-o", "photos").returncode == 0
    written = sorted(p.name for p in (tmp_path / "photos" / "randoms").iterdir())
    assert written == ["contact.png", *(f"randoms__random{i:05d}.png" for i in range(3))]
    refused = diorama("render", "concepts", "--layout", "concepts", "--do", "fill=0", "-o", "out")
    assert refused.returncode == 2 and "--do fill" in refused.stderr


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("concepts(change=shape)", "change='shape' is not one of"),
        ("concepts(setting=complex)", "setting='complex' is not one of"),
        ("concepts(scenes=0)", "give a number at least 1"),
        ("concepts(size=4)", "at least 8, at most 4096"),
        ("concepts(meshes=nowhere)", "no such folder"),
        ("test_scenes(lights=13)", "at least 1, at most 12"),
        ("random_scenes(count=0)", "at least 1"),
        ("natural_concepts(root=nowhere, kind=folder)", "there is no folder 'nowhere'"),
        ("photo_folder(root=nowhere)", "there is no folder 'nowhere'"),
        ("natural_concepts(root=nowhere, size=2)", "too small"),
    ],
)
def test_mistakes_are_named(spec, said):
    with pytest.raises(InputError, match=re.escape(said)):
        build("world", spec)


def test_the_papers_exclusions_of_arap():
    assert set(EXCLUDED["gupta2022"]) == {"katie", "redhead", "skin", "strawberries", "toad", "revolution"}
