"""Loaders of IIW, SAW, ARAP and Multi-Illumination on fixtures with the traps of the real files; saved predictions."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from diorama import api
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.frame import linear_to_srgb
from diorama.core.guard import Note, attempt
from diorama.core.scene import rng
from diorama.io.images import quantise, write_png
from diorama.methods.decompose.constant import Constant
from diorama.methods.decompose.predictions import Predictions
from diorama.testing.check import check_all
from diorama.worlds.mondrian import Mondrian
from diorama.worlds.recorded.arap import Arap
from diorama.worlds.recorded.iiw import Iiw
from diorama.worlds.recorded.multi_illumination import MultiIllumination
from diorama.worlds.recorded.saw import Saw
from tests.reference import intrinsic_loops as slow


def photo(seed, size=(36, 44)):
    return quantise(np.random.default_rng(seed).random((*size, 3)), 8)


def judgements(seed):
    draw = np.random.default_rng(seed)
    points = [{"id": 100 + i, "x": draw.random(), "y": draw.random(), "opaque": i != 3} for i in range(12)]
    made = [
        {
            "id": i,
            "point1": 100 + i % 12,
            "point2": 100 + (i * 5 + 1) % 12,
            "darker": "12E"[i % 3],
            "darker_score": 0.5 + i,
        }
        for i in range(30)
    ]
    made[0]["darker_score"], made[1]["darker"], made[2]["darker_score"] = None, None, -0.1
    made[4]["compare_what"] = "S"
    return {"id": seed, "intrinsic_points": points, "intrinsic_comparisons": made}


@pytest.fixture
def iiw(tmp_path) -> Path:
    root = tmp_path / "iiw"
    for i in (9, 10, 54, 100, 101, 102):
        write_png(root / f"{i}.png", photo(i))
        (root / f"{i}.json").write_text(json.dumps(judgements(i)))
    nothing = judgements(102)
    for comparison in nothing["intrinsic_comparisons"]:
        comparison["darker_score"] = None
    (root / "102.json").write_text(json.dumps(nothing))
    return root


@pytest.fixture
def run(tmp_path):
    """Run cells in this process."""

    def call(world, method, protocol, **more):
        return api.run([world], [method], [protocol], out=tmp_path / "run", **more)["cells"]

    return call


def test_iiw_in_numeric_order_with_its_split(iiw, tmp_path):
    assert Iiw(str(iiw)).names == ["9", "10", "54", "100", "101", "102"]
    assert Iiw(str(iiw), "test").names == ["9", "102"]
    assert Iiw(str(iiw), "train").names == ["10", "54", "100", "101"]
    (tmp_path / "ids.txt").write_text("54\n10\n")
    assert Iiw(str(iiw), ids=str(tmp_path / "ids.txt")).names == ["54", "10"]
    (tmp_path / "ids.txt").write_text("7")
    with pytest.raises(InputError, match="'7'"):
        Iiw(str(iiw), ids=str(tmp_path / "ids.txt"))
    with pytest.raises(InputError, match="no folder"):
        Iiw(str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="recorded once"):
        Iiw(str(iiw)).do(Iiw(str(iiw)).scene(0)[1], light=1)


def test_whdr_on_iiw_equals_the_loop_and_an_image_without_judgements_is_undefined(iiw, run):
    (cell,) = run(f"iiw(root={iiw})", "constant(layer=shading)", "whdr")
    world = Iiw(str(iiw))
    expected = []
    for i in range(5):
        frame = world.render([world.scene(i)[1]])[0]
        told = json.loads((iiw / f"{world.names[i]}.json").read_text())
        expected.append(slow.whdr_loop(frame.linear(), told["intrinsic_points"], told["intrinsic_comparisons"]))
    summary = cell["summary"]["whdr"]
    assert summary["mean"] == pytest.approx(np.mean(expected))
    assert (summary["n_ok"], summary["n_undefined"]) == (5, 1)
    (constant,) = run(f"iiw(root={iiw})", "constant", "whdr")
    assert constant["summary"]["whdr"]["mean"] == pytest.approx(constant["summary"]["truth_constant"]["mean"])


def saw_folder(root):
    labels = root / "saw_pixel_labels" / "saw_data-filter_size_0-ignore_border_0.05"
    (root / "saw_splits").mkdir(parents=True)
    labels.mkdir(parents=True)
    for i in (3, 20, 100):
        ramp = (
            np.linspace(0.5, 0.6, 44)[None, :, None]
            + 0.35 * (np.arange(44) > 30)[None, :, None]
            + np.zeros((36, 44, 3))
        )
        write_png(root / "saw_images_512" / f"{i}.png", quantise(ramp + 0.02 * (photo(i) / 255), 8))
        marked = np.full((36, 44), 100, np.uint8)
        if i != 100:  # a photo may have no label at all
            marked[4:12, 4:12], marked[20:30, 5:20], marked[5:30, 30:33] = 2, 1, 0
        np.save(labels / f"{i}.npy", marked)
    np.save(root / "saw_splits" / "test_ids.npy", np.array([20, 3, 100]))
    (root / "saw_annotations").mkdir()
    (root / "saw_annotations" / "3.json").write_text(json.dumps(judgements(3)))
    return labels


def test_saw_is_one_case_over_all_photos(tmp_path, run):
    root = tmp_path / "saw"
    saw_folder(root)
    world = Saw(str(root))
    assert world.names == ["20", "3", "100"]
    assert Saw(str(root), "all").names == ["3", "20", "100"]
    frames = world.render([world.scene(i)[1] for i in range(3)])
    photos = [
        (f.linear().astype(np.float64).mean(axis=2), f.truth["factors"]["saw"], f.image.astype(np.float64).mean(axis=2))
        for f in frames
    ]
    for mode in (0, 1):
        (cell,) = run(f"saw(root={root})", "constant", f"saw_ap(preset=li, mode={mode})", cases=1)
        assert cell["summary"]["saw_ap"]["mean"] == pytest.approx(slow.saw_li_loop(photos, mode), abs=1e-6)
        assert cell["summary"]["photos"]["mean"] == 2
    (cell,) = run(f"saw(root={root})", "constant", "saw_ap(preset=kovacs2017)")
    expected = slow.saw_kovacs_loop([(s / s.max(), labels) for s, labels, _ in photos])
    assert cell["summary"]["saw_ap"]["mean"] == pytest.approx(expected, abs=1e-6)
    assert cell["cases"] == 1 and cell["summary"]["saw_ap"]["n_excluded"] == 0


def test_saw_refuses_labels_that_do_not_fit(tmp_path):
    labels = saw_folder(tmp_path)
    world = Saw(str(tmp_path))
    assert set(world.render([world.scene(1)[1]])[0].truth["factors"]) == {"saw", "judgements"}
    np.save(labels / "20.npy", np.full((10, 10), 2))
    with pytest.raises(InputError, match="10×10"):
        world.render([world.scene(0)[1]])
    np.save(labels / "20.npy", np.full((36, 44), 7))
    with pytest.raises(InputError, match="labels 0, 1, 2 and 100"):
        world.render([world.scene(0)[1]])
    (labels.parent / "another").mkdir()
    with pytest.raises(InputError, match="2 folders"):
        Saw(str(tmp_path), "all")


def arap_folder(root, size=40):
    world = Mondrian(size=size, patches=5)
    for seed, (name, lights) in enumerate(
        (("alley", ("", "_light0", "_light2")), ("office", ("",)), ("oldoffice", ("",)))
    ):
        scene = world.sample(rng(seed, "arap"))
        for i, light in enumerate(lights):
            frame = world.render([world.do(scene, light=i)])[0]
            write_png(root / "input" / f"{name}{light}.png", quantise(frame.image, 16))
            write_png(
                root / "shading" / f"{name}{light}_shading.png", quantise(np.repeat(frame.truth["shading"], 3, 2), 16)
            )
        write_png(root / "reflectance" / f"{name}_albedo.png", quantise(frame.truth["reflectance"], 16))
        write_png(root / "mask" / f"{name}_alpha.png", quantise(frame.mask * 0.9, 8))


def test_arap_shares_reflectance_over_lights_and_leaves_whole_scenes_out(tmp_path):
    arap_folder(tmp_path)
    world = Arap(str(tmp_path))
    assert world.names == ["alley", "alley_light0", "alley_light2", "oldoffice"]
    assert len(Arap(str(tmp_path), exclude="none")) == 5
    _, scene = world.scene(0)
    assert world.lights(scene) == [0, 1, 3]
    frames = world.render([scene, world.do(scene, light=3)])
    assert np.array_equal(frames[0].truth["reflectance"], frames[1].truth["reflectance"])
    assert not np.array_equal(frames[0].image, frames[1].image)
    with pytest.raises(InputError, match="0, 1, 3"):
        world.do(scene, light=2)
    write_png(tmp_path / "shading" / "alley_shading.png", photo(0, (8, 9)))
    with pytest.raises(InputError, match="9×8"):
        world.render([scene])
    (tmp_path / "mask" / "oldoffice_alpha.png").unlink()
    with pytest.raises(InputError, match="missing"):
        world.render([world.scene(3)[1]])


def test_arap_scores_with_the_truth_and_over_lights(tmp_path, run):
    arap_folder(tmp_path / "arap")
    cells = run(f"arap(root={tmp_path / 'arap'})", "constant(layer=shading)", "invariance", controls=True)
    mine, oracle = cells[0]["summary"]["invariance"], cells[1]["summary"]["invariance"]
    assert (mine["n_ok"], mine["n_undefined"]) == (3, 1)  # oldoffice has one light
    assert mine["mean"] == pytest.approx(1, abs=1e-6)
    assert oracle["mean"] == pytest.approx(0, abs=1e-9)


def test_multi_illumination_has_25_lights(tmp_path, run):
    import cv2

    for scene in ("everett_kitchen2", "everett_dining1"):
        (tmp_path / scene).mkdir()
        for i in range(25):
            done, data = cv2.imencode(".jpg", photo(i, (62, 93)))
            assert done
            (tmp_path / scene / f"dir_{i}_mip6.jpg").write_bytes(data.tobytes())
        write_png(
            tmp_path / scene / "materials_mip6.png",
            np.repeat(np.arange(62, dtype=np.uint8)[:, None, None] // 31, 93, 1).repeat(3, 2),
        )
    world = MultiIllumination(str(tmp_path), mip=6)
    assert world.names == ["everett_dining1", "everett_kitchen2"]
    _, scene = world.scene(0)
    frames = world.render([scene, world.do(scene, light=24)])
    assert frames[0].image.shape == (62, 93, 3)
    assert frames[0].encoding == "srgb"
    assert set(np.unique(frames[0].truth["parts"])) == {0, 1}
    assert not np.array_equal(frames[0].image, frames[1].image)
    with pytest.raises(InputError, match="0 to 24"):
        world.do(scene, light=25)
    with pytest.raises(InputError, match="there are mip=6"):
        MultiIllumination(str(tmp_path))
    (cell,) = run(f"multi_illumination(root={tmp_path}, mip=6)", "constant(layer=shading)", "invariance", cases=1)
    assert cell["summary"]["invariance"]["mean"] == pytest.approx(1)
    (tmp_path / scene.params["scene"] / "dir_7_mip6.jpg").unlink()
    with pytest.raises(InputError, match="dir_7_mip6"):
        world.render([world.do(scene, light=7)])


def test_the_contract_holds_for_loaders(iiw, tmp_path):
    arap_folder(tmp_path / "arap")
    saw_folder(tmp_path / "saw")
    said: list[str] = []
    specs = [f"iiw(root={iiw})", f"arap(root={tmp_path / 'arap'})", f"saw(root={tmp_path / 'saw'})"]
    assert check_all(specs, said.append), said


def test_constant_reflectance_is_invariant_without_texture(run):
    (cell,) = run("mondrian(size=48)", "constant", "invariance", cases=2)
    assert cell["summary"]["invariance"]["mean"] == cell["summary"]["texture"]["mean"] == 0
    frame = Mondrian(size=48).render([Mondrian(size=48).sample(rng(0, "c"))])[0]
    for layer in ("reflectance", "shading"):
        layers = Constant(layer).decompose([frame])
        assert np.array_equal(layers.reflectance * layers.shading, frame.image)


@pytest.fixture
def staged():
    world = Mondrian(size=40, patches=5)
    return world.render([world.sample(rng(1, "predictions"))])[0]


def _write_exr(path, layer):
    OpenEXR = pytest.importorskip("OpenEXR")
    header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    names = ("R", "G", "B") if layer.shape[2] == 3 else ("Y",)
    channels = {n: np.ascontiguousarray(layer[:, :, i], np.float32) for i, n in enumerate(names)}
    with OpenEXR.File(header, channels) as file:
        file.write(str(path))


def save(folder, layers, ending, encode=lambda x: x):
    for name, raw in layers.items():
        path = folder / "a" / f"{name}.{ending.removesuffix('16').removesuffix('8')}"
        path.parent.mkdir(parents=True, exist_ok=True)
        layer = encode(raw)
        if ending == "npy":
            np.save(path, layer)
        elif ending == "exr":
            _write_exr(path, layer)
        else:
            write_png(path, quantise(layer[:, :, 0] if layer.shape[2] == 1 else layer, int(ending[3:])))


@pytest.mark.parametrize("ending", ["npy", "exr", "png8", "png16"])
def test_predictions_of_every_format_and_a_likely_mix_up(staged, tmp_path, ending):
    truth = {name: staged.truth[name] for name in ("reflectance", "shading")}
    save(tmp_path / "right", truth, ending)
    save(tmp_path / "mixed", truth, ending, linear_to_srgb)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layers = Predictions(str(tmp_path / "right")).load("a", staged, None)
        again = Predictions(str(tmp_path / "mixed"), encoding="srgb").load("a", staged, None)
    tolerance = 0.02 if ending == "png8" else 1e-3
    for found in (layers, again):
        assert np.abs(found.reflectance - truth["reflectance"]).max() < tolerance
        assert np.abs(found.shading - truth["shading"]).max() < tolerance
    with pytest.warns(Note, match="files look srgb-encoded, not linear"):
        Predictions(str(tmp_path / "mixed")).load("a", staged, None)
    with pytest.warns(Note, match="files look linear-encoded, not srgb"):
        Predictions(str(tmp_path / "right"), encoding="srgb").load("a", staged, None)


def said(tmp_path):
    """The reasons and notes of all rows."""
    rows = [json.loads(line) for path in (tmp_path / "run").rglob("*.jsonl") for line in path.read_text().splitlines()]
    return "\n".join(row["reason"] for row in rows)


def test_predictions_that_cannot_be_scored_say_why(tmp_path, run):
    truth = {"reflectance": np.ones((40, 40, 1)), "shading": np.ones((40, 40, 1))}
    cases = {
        "0-00000": {**truth, "shading": np.ones((20, 40, 1))},
        "0-00001": {**truth, "shading": np.full((40, 40, 1), np.nan)},
        "0-00002": {"reflectance": truth["reflectance"]},
        "0-00003": truth,
    }
    for case, layers in cases.items():
        (tmp_path / "saved" / case).mkdir(parents=True)
        for name, layer in layers.items():
            np.save(tmp_path / "saved" / case / f"{name}.npy", layer)
    (cell,) = run("mondrian(size=40)", f"predictions(folder={tmp_path / 'saved'})", "si_mse", cases=4)
    summary = cell["summary"]["si_mse"]
    assert (summary["n_ok"], summary["n_error"]) == (1, 3)
    shown = said(tmp_path)
    for reason in ("(20, 40, 1)", "NaN or infinite", "no shading for case '0-00002'"):
        assert reason in shown


def test_predictions_of_further_lights_are_files_of_their_own(tmp_path):
    world = Mondrian(size=40)
    scene = world.sample(rng(2, "lights"))
    lit = world.render([world.do(scene, light=3)])[0]
    (tmp_path / "a").mkdir()
    np.savez(tmp_path / "a" / "light03.npz", reflectance=lit.truth["reflectance"], shading=lit.truth["shading"])
    assert np.array_equal(Predictions(str(tmp_path)).load("a", lit, None).shading, lit.truth["shading"])
    error = attempt(
        lambda: Predictions(str(tmp_path)).load("a", world.render([world.do(scene, light=4)])[0], None)
    ).error
    assert "light04" in str(error)


def test_a_mix_up_is_noted_in_the_rows(tmp_path, run):
    world = build("world", "mondrian(size=40)").object

    frame = world.render([world.scene_at(0, 0)[1]])[0]
    (tmp_path / "saved").mkdir()
    layers = {name: linear_to_srgb(frame.truth[name]) for name in ("reflectance", "shading")}
    np.savez(tmp_path / "saved" / "0-00000.npz", **layers)
    run("mondrian(size=40)", f"predictions(folder={tmp_path / 'saved'})", "si_mse", cases=1)
    assert "files look srgb-encoded" in said(tmp_path)
