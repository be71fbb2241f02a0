"""Mosaics and labelled photos: pools as in the paper, exact pixels, local swaps, official tables, damaged photos."""

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from diorama.core.catalogue import build
from diorama.core.errors import Excluded, InputError
from diorama.core.scene import Scene, canonical
from diorama.io.images import quantise, write_png
from diorama.io.photos import fitted, read_photo, split
from diorama.worlds.mosaic.files import jpeg, unjpeg
from diorama.worlds.mosaic.mosaic import Mosaic
from diorama.worlds.recorded.photos import Photos
from tests.conftest import DATA


def picture(seed, shape=(40, 52)):
    """A smooth colour picture, different for every seed."""
    random = np.random.default_rng(seed)
    coarse = random.random((5, 5, 3))
    return quantise(np.clip(fitted_float(coarse, shape), 0, 1), 8)


def fitted_float(coarse, shape):
    import cv2

    return cv2.resize(coarse, shape[::-1], interpolation=cv2.INTER_CUBIC)


def write_folder(root, counts):
    """Class folders with so many PNG photos each."""
    for c, (name, count) in enumerate(counts.items()):
        for i in range(count):
            write_png(root / name / f"{i:02d}.png", picture(100 * c + i))
    return root


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "photos", {"cat": 7, "cow": 6, "dog": 5})


def mosaic(folder, **params):
    return Mosaic(str(folder), **{"cell": 16, **params})


def shown(scene):
    return [(cell["label"], cell["image"]["params"]["image"]) for cell in scene.params["cells"]]


def all_shown(world):
    return [(scene.params["target"], shown(scene)) for _, scene in (world.scene(i) for i in range(len(world)))]


@pytest.mark.parametrize(("grid", "target"), [(2, 2), (2, 1), (2, 3), (3, 4), (3, 1)])
def test_every_mosaic_has_its_target_cells_and_no_image_twice(folder, grid, target):
    world = mosaic(folder, grid=grid, target=target, per_class=9)
    assert len(world) == 27 and world.size == 16 * grid
    for label, cells in all_shown(world):
        assert len(cells) == grid**2
        assert sum(c == label for c, _ in cells) == target
        assert len(set(cells)) == grid**2
        assert all(name.startswith(world.class_name(c) + "/") for c, name in cells)


def test_images_are_used_evenly_as_in_the_paper(folder):
    world = mosaic(folder, per_class=12)
    for label in (0, 1, 2):
        own = Counter(n for t, cells in all_shown(world) if t == label for c, n in cells if c == label)
        assert max(own.values()) - min(own.values()) <= 1 + 1  # the list, repeated; the last turn is cut
        other = Counter(c for t, cells in all_shown(world) if t == label for c, _ in cells if c != label)
        assert set(other.values()) == {12}  # every other class gives ⌈2·12/2⌉


def test_positions_are_shuffled_by_seed_and_case(folder):
    first = all_shown(mosaic(folder, per_class=10))
    assert first == all_shown(mosaic(folder, per_class=10))
    assert first != all_shown(mosaic(folder, per_class=10, seed=1))
    places = Counter(i for t, cells in first for i, (c, _) in enumerate(cells) if c == t)
    assert set(places) == {0, 1, 2, 3} and max(places.values()) < 2 * min(places.values())


def test_classes_take_turns_so_that_few_cases_are_of_all_classes(folder):
    world = mosaic(folder)
    assert [world.scene(i)[1].params["target"] for i in range(4)] == [0, 1, 2, 0]
    assert [world.scene(i)[0] for i in (0, 3)] == ["cat-000", "cat-001"]


def test_pixels_are_those_of_the_photos(folder):
    world = mosaic(folder, cell=14)
    scene = world.scene(5)[1]
    frame = world.render([scene])[0]
    assert frame.image.shape == (28, 28, 3) and frame.encoding == "srgb"
    for i, (label, file) in enumerate(shown(scene)):
        y, x = divmod(i, 2)
        cell = quantise(frame.image[14 * y : 14 * y + 14, 14 * x : 14 * x + 14], 8)
        assert np.array_equal(cell, fitted(read_photo(folder / file), 14, crop=True))
        assert (frame.truth["cells"]["index"][14 * y : 14 * y + 14, 14 * x : 14 * x + 14] == i).all()
        assert frame.truth["cells"]["labels"][i] == label
    assert frame.truth["label"] == scene.params["target"]


def test_scenes_are_json_with_names_only(folder):
    scene = mosaic(folder).scene(0)[1]
    assert Scene.from_json(json.loads(canonical(scene.to_json()))) == scene
    assert str(folder) not in canonical(scene.to_json())


@pytest.mark.parametrize("recompress", [False, True])
def test_a_swap_changes_one_cell_and_nothing_else(folder, recompress):
    world = mosaic(folder, recompress=recompress)
    reach = 1 if recompress else 0  # cells of 16 pixels are whole blocks; a JPEG's colour is smoothed over one more
    scene = world.scene(1)[1]
    for change in (2, (2, "dog"), (2, 0)):
        other = world.do(scene, cell=change)
        before, after = world.render([scene, other])
        differs = (before.image != after.image).any(axis=2)
        assert differs[16:, :16].any() and not differs[: 16 - reach].any() and not differs[16:, 16 + reach :].any()
        assert [a == b for a, b in zip(shown(scene), shown(other), strict=True)] == [True, True, False, True]
        assert shown(other)[2] not in shown(scene) and other.params["target"] == scene.params["target"]
    assert shown(world.do(scene, cell=2))[2][0] == shown(scene)[2][0]
    assert shown(world.do(scene, cell=(2, "dog")))[2][0] == 2
    assert world.do(scene, cell=2) == world.do(scene, cell=2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cell": 4}, "cells are 0 to 3"),
        ({"cell": (0, "bird")}, "there is no class 'bird'; there are: cat, cow, dog"),
        ({"light": 1}, "cannot change 'light'"),
    ],
)
def test_a_swap_that_makes_no_sense_is_refused(folder, change, said):
    world = mosaic(folder)
    with pytest.raises(InputError, match=said):
        world.do(world.scene(0)[1], **change)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"target": 4}, "of 4 cells 1 to 3"),
        ({"grid": 1}, "grid=1"),
        ({"grid": 3, "target": 6}, "class 'dog' has 5 images: a mosaic shows 6 different ones"),
        ({"per_class": 6, "reuse": False}, "class 'dog' has 5 images: per_class=6 needs 6"),
        ({"train": 5}, "class 'dog' .* has 5 photos"),
        ({"per_class": 0}, "per_class=0"),
    ],
)
def test_too_few_images_are_said_before_anything_runs(folder, params, said):
    with pytest.raises(InputError, match=said):
        mosaic(folder, **params)


def test_one_class_or_no_folder_is_an_error(tmp_path):
    with pytest.raises(InputError, match="has 1 class; a mosaic needs at least two"):
        mosaic(write_folder(tmp_path / "one", {"cat": 4}))
    with pytest.raises(InputError, match="there is no"):
        mosaic(tmp_path / "nowhere")
    with pytest.raises(InputError, match="train=3 is for a folder"):
        build("world", "mosaic(source=birds(size=64), train=3)")
    with pytest.raises(InputError, match="has no labels"):
        build("world", "mosaic(source=mondrian)")


def test_without_reuse_the_paper_s_numbers_hold(folder):
    world = mosaic(folder, per_class=4, reuse=False)  # ⌈2·4/2⌉ = 4 of every other class
    for label in (0, 1, 2):
        other = Counter(n for t, cells in all_shown(world) if t == label for c, n in cells if c != label)
        assert set(other.values()) == {1} and len(other) == 8


def test_photos_that_a_head_learnt_from_are_left_out(folder):
    learnt, held_out = split(folder, 2, 3)
    world = mosaic(folder, train=2, split_seed=3, per_class=8)
    used = {name for _, cells in all_shown(world) for _, name in cells}
    assert used == {str(p.relative_to(folder)) for files in held_out.values() for p in files}
    assert not used & {str(p.relative_to(folder)) for files in learnt.values() for p in files}


def test_the_key_follows_the_photos_and_not_their_place(folder, tmp_path):
    first = build("world", f"mosaic(source={folder}, cell=16)").digest
    moved = folder.rename(tmp_path / "moved")
    assert build("world", f"mosaic(source={moved}, cell=16)").digest == first
    write_png(moved / "cat" / "00.png", picture(999))
    assert build("world", f"mosaic(source={moved}, cell=16)").digest != first


def test_another_world_as_the_source():
    world = build("world", "mosaic(source=birds(size=64), per_class=2)").object
    assert len(world) == 100 and world.size == 128
    frame = world.render([world.scene(7)[1]])[0]
    cells = [Scene.from_json(cell["image"]) for cell in frame.scene.params["cells"]]
    birds = world.images.render(cells)
    for i, bird in enumerate(birds):
        y, x = divmod(i, 2)
        assert np.array_equal(frame.image[64 * y : 64 * y + 64, 64 * x : 64 * x + 64], bird.image)
    assert [bird.truth["label"] for bird in birds] == frame.truth["cells"]["labels"]
    assert build("world", "mosaic(source=birds(size=64))").digest != build("world", "mosaic(source=birds)").digest


def test_a_recompressed_mosaic_is_the_jpeg_that_pillow_writes(folder):
    import io

    from PIL import Image

    exact, lossy = (mosaic(folder, recompress=r).render([mosaic(folder).scene(0)[1]])[0].image for r in (False, True))
    assert 0 < np.abs(exact - lossy).mean() < 0.1
    file = io.BytesIO()
    Image.fromarray(quantise(exact, 8)).save(file, "JPEG")
    theirs = np.asarray(Image.open(io.BytesIO(file.getvalue())), np.int16)
    assert np.abs(theirs - quantise(lossy, 8)).max() <= 3
    assert np.abs(theirs - unjpeg(jpeg(quantise(exact, 8)))).mean() < 0.2


@pytest.mark.parametrize("shape", [(40, 52), (300, 500), (16, 90)])
def test_resizing_is_pillow_s_to_a_level(shape):
    from PIL import Image

    image = picture(3, shape)
    theirs = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR), np.int16)
    assert np.abs(theirs - fitted(image, 64, crop=False)).max() <= 1
    whole = np.asarray(Image.fromarray(image).resize((64, 64), Image.Resampling.BILINEAR))[4:60, 4:60]
    assert np.abs(whole.astype(np.int16) - fitted(image, 56, crop=True)).max() <= 1


def test_the_official_table_is_written_and_read_back(folder, tmp_path, diorama):
    out = tmp_path / "out"
    done = diorama("render", f"mosaic(source={folder}, cell=16)", "-n", "6", "-o", out, "--layout", "mosaic")
    assert done.returncode == 0 and done.stdout.strip() == str(out / "mosaics.csv")
    rows = list(csv.DictReader((out / "mosaics.csv").read_text().splitlines()))
    numbered = [f"{head}_{i}" for head in ("filename", "label") for i in range(4)]
    assert list(rows[0]) == ["filename", *numbered, "target_class"]
    first, again = mosaic(folder), Mosaic(str(out / "mosaics.csv"))
    assert len(again) == 6 and again.size == 32
    for i in range(6):
        (name, scene), (old_name, old) = again.scene(i), first.scene(i)
        assert name == old_name == Path(rows[i]["filename"]).stem
        assert [rows[i][f"filename_{k}"] for k in range(4)] == [file for _, file in shown(old)]
        frame, original = again.render([scene])[0], first.render([old])[0]
        assert np.array_equal(frame.image, original.image) and frame.truth["label"] == original.truth["label"]
        assert frame.truth["cells"]["labels"] == original.truth["cells"]["labels"]
    swapped = again.render([again.do(again.scene(0)[1], cell=1)])[0]
    differs = (swapped.image != again.render([again.scene(0)[1]])[0].image).any(axis=2)
    assert differs[:16, 16:].any() and not differs[16:].any() and not differs[:, :16].any()


def test_a_recompressed_table_reads_back_as_the_same_pixels(folder, tmp_path, diorama):
    out = tmp_path / "out"
    spec = f"mosaic(source={folder}, cell=16, recompress=True)"
    assert diorama("render", spec, "-n", "2", "-o", out, "--layout", "mosaic").returncode == 0
    world, again = build("world", spec).object, Mosaic(str(out / "mosaics.csv"))
    for i in range(2):
        assert np.array_equal(again.render([again.scene(i)[1]])[0].image, world.render([world.scene(i)[1]])[0].image)


def test_official_tables_with_class_names_and_missing_files(folder, tmp_path):
    data = tmp_path / "mit670_mosaic" / "data"
    for name in ("a.png", "b.png"):
        write_png(data / name, picture(5, (32, 32)))
    head = "filename,filename_0,filename_1,filename_2,filename_3,label_0,label_1,label_2,label_3,target_class"
    lines = ["a.png,1.jpg,2.jpg,3.jpg,4.jpg,bakery,bar,bakery,attic,bakery", "b.png,1,2,3,4,bar,bar,attic,attic,bar"]
    table = data.parent / "mit670.csv"
    table.write_text("\n".join([head, *lines]) + "\n")
    world = Mosaic(str(table))
    assert [world.class_name(i) for i in range(3)] == ["attic", "bakery", "bar"]
    assert world.render([world.scene(0)[1]])[0].truth["cells"]["labels"] == [1, 2, 1, 0]
    assert np.array_equal(quantise(world.render([world.scene(1)[1]])[0].image, 8), picture(5, (32, 32)))
    with pytest.raises(InputError, match="write grid=2"):
        Mosaic(str(table), grid=3)
    (data / "b.png").unlink()
    with pytest.raises(InputError, match=r"b\.png and 0 more"):
        Mosaic(str(table))


def test_the_layouts_of_mame_and_mit67(folder, tmp_path):
    data = tmp_path / "mame"
    write_folder(data / "data", {"x": 4, "y": 3})
    head = "Image file,Medium,Museum,Museum-based instance ID,Subset,Width,Height,Product size,Aspect ratio"
    rows = [f"x/0{i}.png,Oil on canvas,M,{i},{'val' if i else 'train'},5.0,6.0,30.0,0.8" for i in range(4)]
    rows += [f"y/0{i}.png,Graphite,M,{i},val,5.0,6.0,30.0,0.8" for i in range(3)]
    (data / "MAMe_dataset.csv").write_text("\n".join([head, *rows]) + "\n")
    world = Photos(str(data / "MAMe_dataset.csv"), subset="val", size=16)
    assert world.classes == ("Graphite", "Oil on canvas") and len(world) == 6
    assert world.label(Scene("photos", {"image": "x/01.png"})) == 1
    assert build("world", f"mosaic(source='photos(source={data}/MAMe_dataset.csv, size=16)')").object.size == 32
    (tmp_path / "mit67").mkdir()
    folder.rename(tmp_path / "mit67" / "Images")
    (tmp_path / "mit67" / "TestImages.txt").write_text("cat/00.png\ncat/01.png\ndog/03.png\n")
    test = Photos(str(tmp_path / "mit67" / "TestImages.txt"), size=16)
    assert [test.scene(i)[0] for i in range(3)] == ["cat__00.png", "dog__03.png", "cat__01.png"]
    assert [frame.truth["label"] for frame in test.render([test.scene(i)[1] for i in range(3)])] == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("filename,class\na.png,cat\n", "needed are filename and label"),
        ("filename,label\nnone.png,cat\n", "none.png and 0 more of .* are missing"),
        ("filename,label,subset\na.png,cat,train\n", "lists no photo of subset 'val'"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        Photos(str(tmp_path / "t.csv"), subset="val" if "subset" in text else None)


def test_labels_in_the_order_of_a_model(folder):
    world = Photos(str(folder), size=16, labels="dog, cow, cat, hen")
    assert world.label(Scene("photos", {"image": "dog/00.png"})) == 0
    with pytest.raises(InputError, match="does not name the class 'cow'"):
        Photos(str(folder), labels="dog, cat")


@pytest.mark.parametrize("how", ["truncated", "empty", "text"])
def test_a_damaged_photo_is_excluded_by_name(tmp_path, how):
    import io

    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture(1, (200, 200))).save(file, "JPEG")
    whole = file.getvalue()
    path = tmp_path / "bad.jpg"
    path.write_bytes({"truncated": whole[: len(whole) // 2], "empty": b"", "text": b"no image"}[how])
    with pytest.raises(Excluded, match=r"bad\.jpg"):
        read_photo(path)
    path.write_bytes(whole + b"what some phones append" * 9)
    assert read_photo(path).shape == (200, 200, 3)


def test_the_pool_of_real_photos():
    root = DATA / "dogs_vs_cats"
    if not root.is_dir():
        pytest.skip(f"the photos are not in {root} (set DIORAMA_DATA)")
    world = Mosaic(str(root), train=100, per_class=100)
    assert len(world) == 200 and {len(scenes) for scenes in world.pool.values()} == {50}
    assert Counter(Counter(n for _, cells in all_shown(world) for _, n in cells).values()) == {8: 100}
    frame = world.render([world.scene_at(0, 0)[1]])[0]
    assert frame.image.shape == (448, 448, 3) and frame.image.std() > 0.1


def test_accuracy_on_mosaics_says_that_they_show_other_classes_too(tmp_path):
    from diorama.api import run
    from diorama.report.write import write_report

    run(["mosaic(source=birds(size=64), per_class=1)"], [], ["accuracy"], ["birds_cnn"], 4, out=tmp_path / "run")
    assert "of which a good model may name any" in str(write_report([tmp_path / "run"], None, "text"))
