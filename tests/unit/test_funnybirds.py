"""The published metadata, the folder layout, and the recorded world that reads it back."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.scene import Scene, rng
from diorama.worlds.birds.birds import Birds
from diorama.worlds.birds.classes import PARTS
from diorama.worlds.birds.layout import CODES, decode_parts, encode_parts, read_image, write_funnybirds
from diorama.worlds.birds.metadata import from_record, published_params, to_record
from diorama.worlds.recorded.funnybirds_recorded import FunnybirdsRecorded

world = Birds(size=32, objects=6)


# Metadata


def test_the_published_test_split_is_500_whole_birds() -> None:
    birds = list(published_params("test"))
    assert [bird["label"] for bird in birds] == [label for label in range(50) for _ in range(10)]
    assert all(bird["parts"] == world.classes[bird["label"]] for bird in birds)
    counts = [len(bird["background"]) for bird in birds]
    assert min(counts) == 0 and max(counts) == 34
    assert [s.params for s in islice(Birds().published(), 3)] == birds[:3]


def test_train_follows_the_classes_in_one_stream_and_test_does_not() -> None:
    train, test = next(published_params("train")), next(published_params("test"))
    assert (test["camera"]["distance"], test["camera"]["pitch"]) == (298, 4.7623679680665845)
    assert train["camera"] != test["camera"]


def test_half_of_the_train_birds_lose_parts() -> None:
    gone = [sum(v is None for v in bird["parts"].values()) for bird in islice(published_params("train"), 1200)]
    assert 0.53 < np.mean(np.array(gone) == 0) < 0.64  # 7/12


def test_a_record_has_the_published_keys_and_spelling() -> None:
    bird = next(b for b in published_params("train") if None in b["parts"].values() and b["background"])
    record = to_record(bird, world.classes)
    views = [f"{name}_{key}" for name in ("camera", "light") for key in ("distance", "pitch", "roll")]
    looks = [
        "beak_model",
        "beak_color",
        "eye_model",
        "foot_model",
        "tail_model",
        "tail_color",
        "wing_model",
        "wing_color",
    ]
    places = [f"bg_{key}" for key in ("objects", "radius", "pitch", "roll")]
    spans = [f"bg_{key}_{axis}" for key in ("scale", "rot") for axis in "xyz"]
    assert list(record) == ["class_idx", *views, *looks, *places, *spans, "bg_color"]
    gone = next(part for part in PARTS if bird["parts"][part] is None)
    assert record[f"{gone}_model"] == "placeholder"
    assert record["bg_color"].endswith(",") and record["bg_color"].count(",") == len(bird["background"])
    assert json.loads(json.dumps(record)) == record


@given(st.integers(0, 10**6))
def test_records_give_the_scene_back(seed: int) -> None:
    scene = Birds(split="train").sample(rng(seed))
    assert from_record(to_record(scene.params, world.classes)) == scene.params


def test_a_lamp_elsewhere_has_no_record() -> None:
    with pytest.raises(InputError, match="cannot be recorded"):
        to_record(world.do(world.sample(rng(0)), light={"distance": 77}).params, world.classes)


def test_a_broken_record_is_one_line() -> None:
    with pytest.raises(InputError, match="not a FunnyBirds record"):
        from_record({"class_idx": 1})
    with pytest.raises(InputError, match="not a FunnyBirds record"):
        from_record(to_record(next(published_params("test")), world.classes) | {"beak_model": "beak09.glb"})


# Part maps


def test_codes_are_the_published_ones_and_invert() -> None:
    assert CODES[[3, 4, 5, 6, 8, 9]].tolist() == [
        [255, 255, 253], [255, 255, 254], [255, 0, 1], [255, 0, 2], [0, 255, 1], [0, 255, 2],
    ]  # fmt: skip
    ids = np.arange(62, dtype=np.uint8).reshape(2, 31)
    assert np.array_equal(decode_parts(encode_parts(ids)), ids)


# The folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("birds") / "FunnyBirds"
    train = Birds(size=32, objects=6, split="train")
    write_funnybirds(root, world, [train.sample(rng(1, i)) for i in range(3)], staged_scenes())
    return root


def staged_scenes() -> list[Scene]:
    return [world.do(world.sample(rng(2, i)), label=7 * i) for i in range(2)]


def test_the_layout_is_the_published_one(folder: Path) -> None:
    scenes = staged_scenes()
    assert {p.name for p in folder.iterdir()} == {
        "classes.json", "parts.json", "dataset_train.json", "dataset_test.json", "train", "train_part_map", "test",
        "test_part_map", "test_interventions",
    }  # fmt: skip
    one = folder / "test_interventions" / "7" / "000001"
    assert len(list(one.glob("body_*.png"))) == 32
    assert (one / "body_.png").is_file() and (one / "body_beak_eye_foot_tail_wing.png").is_file()
    assert len(list(one.glob("background_interventions/*.png"))) == len(scenes[1].params["background"])
    assert json.loads((folder / "classes.json").read_text())[3] == {"class_idx": 3, "parts": world.classes[3]}


def test_images_are_opaque_rgba(folder: Path) -> None:
    import cv2

    image = cv2.imread(str(folder / "test" / "0" / "000000.png"), cv2.IMREAD_UNCHANGED)
    assert image.shape == (32, 32, 4) and (image[..., 3] == 255).all()


def test_recorded_frames_equal_staged_ones(folder: Path) -> None:
    recorded = FunnybirdsRecorded(root=str(folder))
    assert recorded.classes == world.classes
    assert len(recorded) == 2 and [recorded.scene(i)[0] for i in range(2)] == ["0/000000", "7/000001"]
    assert recorded.fingerprint() != FunnybirdsRecorded(root=str(folder), split="train").fingerprint()
    for index, scene in enumerate(staged_scenes()):
        copy = recorded.scene(index)[1]
        pairs = [(scene, copy)]
        pairs += list(zip(world.subsets(scene).values(), recorded.subsets(copy).values(), strict=True))
        pairs += list(zip(world.removals(scene).values(), recorded.removals(copy).values(), strict=True))
        staged = world.render([a for a, _ in pairs])
        for a, b in zip(staged, recorded.render([b for _, b in pairs]), strict=True):
            assert np.array_equal(a.image, b.image)
            assert a.truth["label"] == b.truth["label"] and a.truth["factors"] == b.truth["factors"]
            if "parts" in b.truth:
                assert np.array_equal(a.truth["parts"], b.truth["parts"]) and a.truth["boxes"] == b.truth["boxes"]


def test_the_train_split_is_recorded_without_interventions(folder: Path) -> None:
    recorded = FunnybirdsRecorded(root=str(folder), split="train")
    scene = recorded.sample(rng(0))
    assert recorded.render([scene])[0].image.shape == (32, 32, 3)
    kept = next((part for part, variant in scene.params["parts"].items() if variant is not None), None)
    if kept is not None:
        with pytest.raises(InputError, match="test split only"):
            recorded.render([recorded.do(scene, **{kept: None})])


def test_what_is_not_recorded_is_said_so(folder: Path) -> None:
    recorded = FunnybirdsRecorded(root=str(folder))
    scene = recorded.scene(0)[1]
    own = scene.params["parts"]["wing"]
    assert recorded.do(recorded.do(scene, wing=None), wing=own) == scene
    with pytest.raises(InputError, match=f"recorded are None .removed. and {own}"):
        recorded.do(scene, wing=(own + 1) % 6)
    with pytest.raises(InputError, match="no 'light'"):
        recorded.do(scene, light={"pitch": 1})
    with pytest.raises(InputError, match="give one index"):
        recorded.do(scene, background_without=99)
    if scene.params["background"]:
        with pytest.raises(InputError, match="at once"):
            recorded.do(scene, beak=None, background_without=0)
    with pytest.raises(InputError, match="samples 0 to 1"):
        recorded.scene(2)
    with pytest.raises(InputError, match="not one of 'train', 'test'"):
        build("world", f"funnybirds_recorded(root={folder}, split=val)")


def test_missing_and_broken_files_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no classes\.json"):
        FunnybirdsRecorded(root=str(tmp_path))
    (tmp_path / "classes.json").write_text("[")
    with pytest.raises(InputError, match="is not JSON"):
        _ = FunnybirdsRecorded(root=str(tmp_path)).classes
    with pytest.raises(InputError, match=r"dataset_test\.json is missing"):
        FunnybirdsRecorded(root=str(tmp_path)).scene(0)
    with pytest.raises(InputError, match="missing"):
        read_image(tmp_path / "none.png")
    (tmp_path / "bad.png").write_bytes(b"\x89PNG nonsense")
    with pytest.raises(InputError, match="not a PNG file"):
        read_image(tmp_path / "bad.png")
    recorded = FunnybirdsRecorded(root=str(folder))
    (folder / "test_interventions" / "0" / "000000" / "body_tail.png").unlink()
    with pytest.raises(InputError, match=r"body_tail\.png is missing"):
        recorded.render([recorded.do(recorded.scene(0)[1], beak=None, eye=None, foot=None, wing=None)])


def test_the_writer_wants_whole_test_scenes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="something removed"):
        write_funnybirds(tmp_path, world, [], [world.do(world.sample(rng(0)), beak=None)])
