"""The bird world: scenes, interventions, rendering, truth."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, canonical, rng
from diorama.worlds.birds.birds import Birds, boxes
from diorama.worlds.birds.classes import CATALOGUE, PARTS
from diorama.worlds.birds.figures import part_gallery, sample_sheet
from diorama.worlds.birds.meshes import own_models
from diorama.worlds.birds.scenes import camera_eye, engulfs

world = Birds(size=64)
seeds = st.integers(0, 10**6)
THING = {
    "shape": "sphere", "radius": 120, "pitch": 0.5, "roll": 0.3, "scale": [12, 9, 8], "rotation": [0, 0, 0],
    "color": "red",
}  # fmt: skip


def scene_of(seed: int, of: Birds = world) -> Scene:
    return of.sample(rng(seed, "test"))


def same(a: Frame, b: Frame) -> bool:
    layers = all(np.array_equal(a.truth[name], b.truth[name]) for name in ("parts", "mask", "depth"))
    return np.array_equal(a.image, b.image) and layers and a.truth["boxes"] == b.truth["boxes"]


def dilate(mask: np.ndarray, by: int) -> np.ndarray:
    from scipy.ndimage import binary_dilation

    grown: np.ndarray = binary_dilation(mask, np.ones((3, 3)), iterations=by)
    return grown


# Scenes


@given(seeds)
def test_scenes_are_json_and_a_function_of_the_generator(seed: int) -> None:
    scene = scene_of(seed)
    assert Scene.from_json(json.loads(json.dumps(scene.to_json()))) == scene
    assert scene == scene_of(seed)
    assert not any(engulfs(thing, camera_eye(scene.params["camera"])) for thing in scene.params["background"])


def test_the_test_split_keeps_all_parts_and_the_train_split_removes_some_from_half() -> None:
    assert all(None not in scene_of(i).params["parts"].values() for i in range(100))
    train = Birds(split="train")
    gone = [sum(v is None for v in scene_of(i, train).params["parts"].values()) for i in range(2000)]
    # half are untouched, the other half lose n ~ U{0..5}: P(0) = 1/2 + 1/12, P(n) = 1/12 else
    expected = 2000 * np.array([7, 1, 1, 1, 1, 1]) / 12
    assert np.all(np.abs(np.bincount(gone, minlength=6) - expected) < 5 * np.sqrt(expected))


def test_classes_are_the_parts_of_a_test_bird() -> None:
    scene = scene_of(5)
    assert scene.params["parts"] == world.classes[scene.params["label"]]
    assert Birds(classes_seed=1).classes != world.classes


# do


@settings(deadline=None)
@given(seeds, st.sampled_from(PARTS), st.data())
def test_do_changes_only_what_it_names(seed: int, part: str, data: st.DataObject) -> None:
    scene = scene_of(seed)
    before = canonical(scene.params)
    variant = data.draw(st.none() | st.integers(0, len(CATALOGUE[part]) - 1))
    changed = world.do(scene, **{part: variant})
    assert canonical(scene.params) == before
    assert changed.params["parts"] == scene.params["parts"] | {part: variant}
    assert {k: v for k, v in changed.params.items() if k != "parts"} == {
        k: v for k, v in scene.params.items() if k != "parts"
    }
    assert world.do(changed, **{part: scene.params["parts"][part]}) == scene


def test_do_on_the_views_and_on_the_label() -> None:
    scene = scene_of(1)
    assert world.do(scene, camera={"pitch": 0.5}).params["camera"] == scene.params["camera"] | {"pitch": 0.5}
    assert world.do(scene, light={"distance": 300}).params["light"] == scene.params["light"] | {"distance": 300}
    other = world.do(scene, wing=None, label=7)
    assert other.params["parts"] == world.classes[7] | {"wing": None}
    assert other.params["label"] == 7


def test_do_on_the_background() -> None:
    scene = world.do(scene_of(2), background=[THING, THING | {"color": "blue"}, THING | {"shape": "box"}])
    assert [t and t["color"] for t in world.do(scene, background=[1]).params["background"]] == [None, "blue", None]
    assert world.do(scene, background=[1, 2]) == world.do(scene, background_without=0)
    assert world.do(scene, background=[]).params["background"] == []
    assert world.do(scene, background_without=[0, 2]) == world.do(scene, background=[1])
    assert list(world.removals(world.do(scene, background_without=1))) == [0, 2]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"beek": None}, "did you mean 'beak'"),
        ({"wing": 6}, "None (removed) or variant 0 to 5"),
        ({"wing": -1}, "variant 0 to 5"),
        ({"wing": "red"}, "variant 0 to 5"),
        ({"wing": True}, "variant 0 to 5"),
        ({"label": 50}, "class 0 to 49"),
        ({"camera": {"yaw": 1}}, "camera has no 'yaw'"),
        ({"camera": 3}, "distance, pitch, roll"),
        ({"camera": {"distance": 0}}, "more than 0 and at most 2000"),
        ({"light": {"pitch": float("nan")}}, "give a number"),
        ({"background_without": 99}, "allowed is object 0 to"),
        ({"background": 3}, "give a list"),
        ({"background": [99]}, "allowed is object 0 to"),
        ({"background": [{"shape": "box"}]}, "a background object has"),
        ({"background": [THING | {"shape": "torus"}]}, "box, cone, sphere, cylinder, capsule"),
        ({"background": [THING | {"color": "pink"}]}, "red, green, blue, yellow"),
        ({"background": [THING | {"scale": [0, 1, 1]}]}, "above 0"),
        ({"background": [THING] * 52}, "at most 51"),
    ],
)
def test_impossible_changes_are_one_line_errors(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        world.do(scene_of(3), **changes)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "bad", [{"size": 0}, {"size": 5000}, {"split": "val"}, {"objects": 52}, {"parts": "/no/such/folder"}]
)
def test_impossible_worlds_are_one_line_errors(bad: dict[str, Any]) -> None:
    (said,) = (f"{name}={value}" for name, value in bad.items())
    with pytest.raises(InputError, match="="):
        build("world", f"birds({said})")


def test_the_camera_may_not_be_inside_anything() -> None:
    scene = world.do(scene_of(4), background=[])
    with pytest.raises(InputError, match="inside"):
        world.render([world.do(scene, camera={"distance": 40, "pitch": 0.0, "roll": -0.5})])
    thing = THING | {"radius": 300, "pitch": 0.0, "roll": 0.0}
    view = {"distance": 300, "pitch": 0.0, "roll": 0.0}
    with pytest.raises(InputError, match=r"inside.*background 0"):
        world.render([world.do(scene, background=[thing], camera=view)])
    with pytest.raises(InputError, match="not a bird scene"):
        world.render([Scene("birds", {"label": 1})])


junk = st.none() | st.booleans() | st.integers(-3, 60) | st.floats() | st.text(max_size=4)
values = junk | st.lists(junk, max_size=3) | st.dictionaries(st.sampled_from([*PARTS, "pitch", "shape"]), junk)


@settings(deadline=None)
@given(st.sampled_from(["label", "parts", "camera", "light", "background"]), values, st.booleans())
def test_a_damaged_scene_is_an_input_error_or_renders(name: str, value: Any, nested: bool) -> None:
    params = world.do(scene_of(1), background=[THING]).params
    if nested and name != "label":
        inner = params[name]
        value = [inner[0] | {"scale": value}] if isinstance(inner, list) else inner | {next(iter(inner)): value}
    try:
        frames = Birds(size=8).render([Scene("birds", params | {name: value})])
    except InputError as error:
        assert "\n" not in str(error)
    else:
        assert np.isfinite(frames[0].image).all()


# Rendering


def test_a_frame_has_the_truth_it_promises() -> None:
    frame = world.render([scene_of(6)])[0]
    assert set(frame.truth) == set(Birds.truth)
    assert frame.image.shape == (64, 64, 3)
    assert np.array_equal(frame.image, np.round(frame.image * 255).astype(np.float32) / 255)
    parts = frame.truth["parts"]
    assert parts.dtype == np.uint8 and frame.truth["label"] == scene_of(6).params["label"]
    assert np.array_equal(np.isfinite(frame.truth["depth"]), parts > 0)
    assert np.array_equal(frame.mask, np.isin(parts, [i for ids in Birds.part_ids.values() for i in ids]))
    assert frame.truth["boxes"] == boxes(parts)


def test_pairs_are_numbered_from_the_viewers_left() -> None:
    view = {"distance": 240, "pitch": 0.0, "roll": 0.0}
    parts = world.render([world.do(scene_of(7), background=[], camera=view)])[0].truth["parts"]
    for left, right in ((3, 4), (5, 6), (8, 9)):
        assert np.nonzero(parts == left)[1].mean() < 32 < np.nonzero(parts == right)[1].mean()


@pytest.mark.parametrize("antialias", [True, False])
def test_every_intervention_equals_rendering_it_alone(antialias: bool) -> None:
    birds = Birds(size=48, antialias=antialias)
    scene = scene_of(8, Birds(objects=12))
    scenes = [scene, *birds.subsets(scene).values(), *birds.removals(scene).values()]
    scenes += [birds.do(scene, wing=i) for i in range(6)] + [birds.do(scene, background=[THING])]
    for one, many in zip((birds.render([s])[0] for s in scenes), birds.render(scenes), strict=True):
        assert one.scene == many.scene and same(one, many)


def test_the_subsets_are_all_32_and_come_back_in_order() -> None:
    scene = scene_of(9)
    subsets = world.subsets(scene)
    assert len(subsets) == 32 and subsets[PARTS] == scene
    assert subsets[()].params["parts"] == dict.fromkeys(PARTS)
    mixed = [scene_of(10), subsets[()], scene_of(11), subsets[PARTS]]
    assert [frame.scene for frame in world.render(mixed)] == mixed


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seeds, st.sampled_from(PARTS))
def test_removing_a_part_is_local(seed: int, part: str) -> None:
    """Ids change exactly where the part was; the image only there and under the hair of its outline."""
    scene = scene_of(seed)
    whole, without = world.render([scene, world.do(scene, **{part: None})])
    ids = Birds.part_ids[part]
    assert not np.isin(without.truth["parts"], ids).any()
    assert np.array_equal(whole.truth["parts"] != without.truth["parts"], np.isin(whole.truth["parts"], ids))
    fine = np.isin(Birds(size=512).render([scene])[0].truth["parts"], ids)
    near = dilate(fine, 5).reshape(64, 8, 64, 8).any((1, 3))
    assert not (np.any(whole.image != without.image, axis=2) & ~near).any()


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_removing_an_object_keeps_the_numbers_of_the_others(seed: int) -> None:
    scene = scene_of(seed)
    count = len(scene.params["background"])
    if count:
        whole, without = world.render([scene, world.do(scene, background_without=count // 2)])
        gone = Birds.background_id + count // 2
        assert gone not in without.truth["parts"]
        kept = whole.truth["parts"] != gone
        assert np.array_equal(whole.truth["parts"][kept], without.truth["parts"][kept])


@pytest.mark.parametrize("size", [8, 33, 100])
def test_any_size(size: int) -> None:
    assert Birds(size=size).render([scene_of(12)])[0].image.shape == (size, size, 3)


# The parts


def test_birds_are_light_and_their_meshes_sound() -> None:
    models = own_models()
    faces = {name: sum(len(piece.mesh.faces) for piece in model) for name, model in models.items()}
    pairs = {"beak": 1, "eye": 2, "foot": 2, "tail": 1, "wing": 2}
    heaviest = {p: max(n for name, n in faces.items() if name.startswith(p)) for p in pairs}
    assert faces["bird01"] + sum(times * heaviest[p] for p, times in pairs.items()) <= 20_000
    for model in models.values():
        for piece in model:
            v, f = piece.mesh.vertices.astype(float), piece.mesh.faces
            assert (np.cross(v[f[:, 0]], v[f[:, 1]]) * v[f[:, 2]]).sum() > 0  # closed and facing outwards


@pytest.mark.parametrize("part", PARTS)
def test_variants_differ_at_128_pixels(part: str) -> None:
    birds = Birds(size=128)
    scene = birds.do(
        birds.sample(rng(0)), label=0, background=[], camera={"distance": 280, "pitch": 0.4, "roll": -0.3},
        light={"distance": 280, "pitch": 0.5, "roll": -0.5},
    )  # fmt: skip
    frames = birds.render([birds.do(scene, **{part: i}) for i in range(len(CATALOGUE[part]))])
    for i, a in enumerate(frames):
        for b in frames[:i]:
            assert (np.abs(a.image - b.image).max(2) > 0.15).sum() > 25


def test_own_meshes_do_not_leak_the_label_when_all_parts_are_gone() -> None:
    bare = {canonical(world.do(scene_of(1), label=k, **dict.fromkeys(PARTS)).params["parts"]) for k in range(50)}
    assert len(bare) == 1
    images = [f.image for f in world.render([world.do(scene_of(1), label=k, **dict.fromkeys(PARTS)) for k in (0, 31)])]
    assert np.array_equal(*images)


# Figures


def test_figures() -> None:
    gallery = part_gallery(Birds(), tile=32)
    assert gallery.dtype == np.uint8 and gallery.shape == (6 * (32 + 4 + 18) + 4, 4 + 9 * 36, 3)
    sheet = sample_sheet(Birds(size=32), rows=2, columns=3, seed=1)
    assert sheet.shape == (2 * 36 + 4, 3 * 36 + 4, 3)
