"""Worlds as data: views, datasets, weak labels, the layout `dataset`, a teacher's pictures."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import diorama
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.images import read_png
from tests.conftest import REPOSITORY

pytest.importorskip("numba", reason="scenes are rendered with numba")


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# Views


def test_a_view_is_its_world():
    view = diorama.world("birds", size=32, classes=3)
    assert view.name == "birds(size=32, classes=3)" and len(view.classes) == 3
    assert diorama.world(view) is view and diorama.world(view.world).world is view.world
    scene, other = view.sample(2, seed=5)
    assert [scene, other] == [view.world.scene_at(5, i)[1] for i in range(2)]
    changed = view.do([scene, other], beak=None)
    assert view.do(scene, beak=None) == changed[0]
    one, many = view.render(scene), view.render([scene, changed[0]])
    assert isinstance(one, Frame) and np.array_equal(one.image, many[0].image)
    assert not np.array_equal(many[0].image, many[1].image)
    assert [f.scene for f in view.frames(2, seed=5)] == [scene, other]
    assert "do(label, beak" in repr(view)


@pytest.mark.slow
def test_a_confounded_world_is_asked_as_in_the_design():
    view = diorama.world("candle", confounding="pairs", width=16, samples=1)
    for scene in view.sample(20):
        assert view.world.confounded(scene)
        assert scene.params["color"] in {"cube": ("red", "blue"), "sphere": ("blue", "yellow")}.get(
            scene.params["object"], ("yellow", "purple", "orange", "red")
        )
    assert not view.world.confounded(view.do(view.sample(1)[0], object="cube", color="yellow"))
    frame = next(iter(view.frames(1)))
    assert frame.image.shape == (12, 16, 3)


def test_examples_never_meet_each_other_or_the_scenes_of_a_run():
    view = diorama.world("birds")
    drawn = {split: {s.key for s in view.examples(200, split)} for split in ("train", "val", "test")}
    drawn["run"] = {s.key for s in view.sample(200)}
    assert sum(map(len, drawn.values())) == len(set.union(*drawn.values())) == 800
    assert [s.key for s in view.examples(5)] == [s.key for s in view.examples(200)][:5]
    listed = diorama.world("sprites", counts=(3, 2, 5, 5, 5))
    parts = [{s.key for s in listed.examples(n, split)} for split, n in (("train", 600), ("val", 75), ("test", 75))]
    assert len(set.union(*parts)) == 750 == listed.world.length


def test_a_torch_dataset_goes_through_a_loader():
    torch = pytest.importorskip("torch")
    data = diorama.world("birds", size=24).torch_dataset(6, transform=lambda image: image * 2)
    image, label, truth = data[2]
    frame = data.frame(2)
    assert label == frame.truth["label"] and torch.equal(
        truth["parts"], torch.from_numpy(np.array(frame.truth["parts"]))
    )
    np.testing.assert_allclose(image.permute(1, 2, 0).numpy(), 2 * frame.image)
    images, labels, truths = next(iter(torch.utils.data.DataLoader(data, batch_size=3)))
    assert images.shape == (3, 3, 24, 24) and labels.shape == (3,) and truths["mask"].shape == (3, 24, 24)
    sprites = diorama.world("sprites", counts=(3, 2, 3, 3, 3)).torch_dataset(4, split="val")
    _, factors, _ = next(iter(torch.utils.data.DataLoader(sprites, batch_size=4)))
    levels = diorama.world("sprites", counts=(3, 2, 3, 3, 3)).levels
    assert factors.keys() == levels.keys()
    first = sprites.frame(0).truth["factors"]
    assert all(levels[name][factors[name][0]] == first[name] for name in levels)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: diorama.world("brids"), "did you mean 'birds'"),
        (lambda: diorama.world("birds", sise=3), "did you mean 'size'"),
        (lambda: diorama.world("birds", classes=1), "classes=1"),
        (lambda: diorama.world(3), "int is no world"),
        (lambda: diorama.world("birds").sample(0), "n=0: give at least 1"),
        (lambda: diorama.world("sprites", counts=(1, 1, 1, 1, 2)).sample(3), "has 2 scenes"),
        (lambda: diorama.world("birds").render("scene"), "str is no scene"),
        (lambda: diorama.world("birds").torch_dataset(4, split="trian"), "did you mean 'train'"),
        (lambda: diorama.world("mondrian").torch_dataset(4), "mondrian has neither classes nor levels"),
        (lambda: diorama.look("birds", 0), "give a change"),
        (lambda: diorama.look("birds", -1, {"beak": None}), "scene=-1"),
        (lambda: diorama.look("birds", 0, {"baek": None}), "did you mean 'beak'"),
        (lambda: diorama.look("birds", 0, {"beak": None}, "birds_cn"), "did you mean 'birds_cnn'"),
        (lambda: diorama.traverse("grad_cam"), "grad_cam cannot decode"),
        (lambda: diorama.traverse("pca", steps=1), "steps=1"),
        (lambda: diorama.data.query([{"color": 1}], colour=1), "did you mean 'color'"),
    ],
)
def test_mistakes_are_one_line(call, said):
    with pytest.raises(InputError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)


# The layout `dataset`


@pytest.fixture(scope="module")
def candle(tmp_path_factory):
    out = tmp_path_factory.mktemp("data") / "candle"
    command = [sys.executable, "-m", "diorama", "render", "candle(width=32, samples=1)", "-n", "60"]
    done = subprocess.run(
        [*command, "--layout", "dataset", "-o", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def test_the_dataset_of_candle_has_factors_boxes_split_confounding_and_weak_labels(candle):
    rows = rows_of(candle / "labels.csv")
    assert [r["split"] for r in rows] == ["train"] * 48 + ["val"] * 6 + ["test"] * 6
    assert {"object", "color", "size", "rotation", "scene", "light", "confounded", "labelled"} <= rows[0].keys()
    about = json.loads((candle / "dataset.json").read_text())
    view = diorama.world("candle", width=32, samples=1)
    for row in rows:
        values = {n: next(v for v in vs if str(v) == row[n]) for n, vs in about["levels"].items()}
        scene = Scene("candle", values)
        assert row["confounded"] == str(int(view.world.confounded(scene)))
    labelled = [r for r in rows if r["labelled"] == "1"]
    assert len(labelled) == 5 and all(r["split"] == "train" for r in labelled)  # ⌈10 % of 48⌉
    by_file = {r["file"]: r for r in rows}
    pairs = rows_of(candle / "pairs.csv")
    for pair in pairs:
        a, b = by_file[pair["first"]], by_file[pair["second"]]
        alike = [n for n in about["levels"] if a[n] == b[n]]
        assert alike == pair["shared"].split() and alike and a["split"] == b["split"] == "train"
        assert pair["first"] != pair["second"]
    assert {n for pair in pairs for n in pair["shared"].split()} == about["levels"].keys()


def test_the_pictures_of_the_folder_are_those_of_the_dataset_in_python(candle):
    image = read_png(candle / "images" / "train-00003.png")
    assert image.dtype == np.uint8 and image.shape == (24, 32, 3)
    view = diorama.world("candle", width=32, samples=1)
    frame = view.render(view.examples(4)[3])
    np.testing.assert_array_equal(image, np.rint(frame.srgb() * 255).astype(np.uint8))
    boxes = {b["what"]: b for b in rows_of(candle / "boxes.csv") if b["file"] == "images/train-00003.png"}
    told = frame.truth["boxes"]
    assert {k: [int(b[e]) for e in ("x0", "y0", "x1", "y1")] for k, b in boxes.items()} == {
        k: v for k, v in told.items() if v
    }


def test_the_dataset_of_birds_has_labels_and_parts(tmp_path):
    from diorama.core.catalogue import build
    from diorama.core.writing import Writing
    from diorama.layouts import write

    world = build("world", "birds(size=24, classes=4)")
    write("dataset", Writing(world, 10, 0, {"beak": None}, tmp_path, lambda done, total: None))
    rows = rows_of(tmp_path / "labels.csv")
    assert all(0 <= int(r["label"]) < 4 and r["beak"] == "" and r["eye"] != "" for r in rows)
    assert "labelled" not in rows[0] and not (tmp_path / "pairs.csv").exists()
    assert not any(b["what"] == "beak" for b in rows_of(tmp_path / "boxes.csv"))
    with pytest.raises(InputError, match="at least 10"):
        write("dataset", Writing(world, 9, 0, {}, tmp_path, lambda done, total: None))


@pytest.mark.slow
def test_somebody_elses_loop_starts_from_the_folder(candle):
    pytest.importorskip("torch")
    command = [sys.executable, str(REPOSITORY / "examples" / "own_training_loop.py"), str(candle), "object"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("inside the confounded part: accuracy ") and "outside: accuracy" in done.stdout


@pytest.mark.slow
def test_the_python_of_the_data_page_runs(tmp_path):
    """All blocks in order, but for ten minutes of tuning."""
    import re

    text = (REPOSITORY / "docs" / "data.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", text, re.S))
    code = "\n".join(line for line in blocks.splitlines() if "diorama.tune(" not in line)
    assert blocks.count("diorama.tune(") == 1 and "diorama.traverse(" in code
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "look.png").exists() and (tmp_path / "traverse.png").exists()


# Classes of birds


def test_ten_birds_are_the_first_ten_of_fifty():
    few, all_of_them = diorama.world("birds", classes=10), diorama.world("birds")
    assert tuple(few.classes) == tuple(all_of_them.classes)[:10]
    assert {s.params["label"] for s in few.sample(300)} == set(range(10))
    with pytest.raises(InputError, match="class 0 to 9"):
        few.do(few.sample(1)[0], label=10)


@pytest.mark.slow
def test_part_protocols_judge_on_ten_birds(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("DIORAMA_CACHE", str(tmp_path / "cache"))
    head = "head(backbone=birds_cnn, on='birds(classes=10)', train=10)"
    protocols = ["funnybirds", "single_deletion", "accuracy"]
    made = diorama.run(["birds(classes=10)"], ["input_x_gradient"], protocols, [head], 6, out=tmp_path / "run")
    assert len(made["cells"]) == 3
    (accuracy,) = [cell["summary"]["accuracy"]["mean"] for cell in made["cells"] if "accuracy" in cell["summary"]]
    assert accuracy >= 5 / 6  # features of a network that knows all fifty
    assert all(s["n_error"] == 0 for cell in made["cells"] for s in cell["summary"].values())


# Pictures


def test_a_look_shows_what_changed_and_what_the_network_says(tmp_path):
    pytest.importorskip("torch")
    found = diorama.look("birds", 3, "beak=none", "birds_cnn")
    view = diorama.world("birds")
    scene = view.sample(4)[3]
    before, after = view.render([scene, view.do(scene, beak=None)])
    assert np.array_equal(found.before.image, before.image) and np.array_equal(found.after.image, after.image)
    beak = np.asarray(before.truth["parts"]) == 2
    grown = np.array([np.roll(beak, (y, x), (0, 1)) for y in range(-3, 4) for x in range(-3, 4)]).any(axis=0)
    assert found.difference[beak].max() > 0.2 and found.difference[~grown].max() < 1 / 255  # with its outline
    model = diorama.build("model", "birds_cnn").object
    np.testing.assert_allclose(found.logits_after, model.logits(after.image[None])[0], atol=1e-4)
    pytest.importorskip("matplotlib")
    assert found.save(tmp_path / "a" / "look.png").stat().st_size > 10_000
    assert found.save(tmp_path / "look.svg").read_text().startswith("<?xml")
    assert "data:image/png;base64," in found._repr_html_()
    with pytest.raises(InputError, match=r"ends in \.png"):
        found.save(tmp_path / "look.gif")


def test_a_traversal_moves_one_latent_at_a_time(tmp_path):
    class Corner:
        """Latent 0 is the brightness of the image; latent 1 is there and does nothing."""

        def encode(self, frames):
            bright = np.array([f.image.mean() for f in frames])
            return np.stack([bright, np.arange(len(frames)) % 5], axis=1)

        def decode(self, codes):
            return np.clip(codes[:, :1, None, None], 0, 1).repeat(4, 1).repeat(4, 2).repeat(3, 3).astype(np.float32)

    found = diorama.traverse(Corner(), diorama.world("sprites", counts=(3, 2, 4, 4, 4)), steps=5)
    assert found.latents == (0, 1) and found.change[1] == 0 < found.change[0]
    np.testing.assert_allclose(found.images[0, :, 0, 0, 0], found.values[0], atol=1e-6)
    np.testing.assert_allclose(found.images[1], found.code[0], atol=1e-6)
    with pytest.raises(InputError, match="latents 0 to 1"):
        diorama.traverse(Corner(), "sprites(counts=(3, 2, 4, 4, 4))", latents=[2])
    pytest.importorskip("matplotlib")
    assert found.save(tmp_path / "t.png").exists()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["look", "birds", "--do", "beak=none"], "--out|'-o'"),
        (["look", "brids", "--do", "beak=none", "-o", "x.png"], "did you mean 'birds'"),
        (["traverse", "beta_va", "-o", "x.png"], "did you mean 'represent/beta_vae'|beta_vae"),
    ],
)
def test_the_commands_say_what_is_wrong(command, said, tmp_path):
    import re

    done = subprocess.run(
        [sys.executable, "-m", "diorama", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and re.search(said, done.stderr) and len(done.stderr.splitlines()) == 1
