"""Learners by name: the weights of the world that is asked about, the usual judge of cg, what is said without weights."""

import numpy as np
import pytest

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.plan import Plan, expand
from diorama.data.traverse import traverse
from diorama.io.zoo import bundled_on
from diorama.training.autoencoders import VAE_RECIPES

pytest.importorskip("torch")

CANDLE = "candle(width=96, samples=1)"


def planned(worlds, methods, protocols, models=()):
    return expand(Plan(worlds, methods, protocols, list(models), cases=1))


def test_weights_are_those_of_the_world_and_the_name_in_tables_stays():
    found = planned(
        [CANDLE, "sprites"], ["beta_vae", "sprites_weights=beta_vae(learnt_on=sprites)"], ["irs(frames=20)"]
    )
    files = {(c.world.name, c.labels["method"]): c.asked.object.file.name for c in found.cells}
    assert files == {
        ("candle", "beta_vae"): "beta_vae_candle.safetensors",
        ("candle", "sprites_weights"): "beta_vae_sprites.safetensors",
        ("sprites", "beta_vae"): "beta_vae_sprites.safetensors",
    }
    assert [s["reason"] for s in found.skipped] == ["it is the same as beta_vae"]


def test_a_world_without_weights_is_left_out_and_the_line_names_the_training(tmp_path):
    method = build("method", "beta_vae")
    with pytest.raises(InputError, match=r'no weights for birds.*diorama train "beta_vae\(world=birds\)"') as caught:
        method.on("birds")
    assert "\n" not in str(caught.value)
    given = build("method", f"beta_vae(checkpoint={bundled_on('beta_vae')['sprites']})")
    assert given.on("birds") is given  # weights of one's own are used everywhere


def test_recorded_data_sets_have_the_weights_of_the_worlds_that_look_like_them():
    method = build("method", "beta_vae")
    assert method.on("candle_recorded").object.file == method.on("candle").object.file
    assert method.on("dsprites").object.file == method.on("sprites").object.file != method.on("candle").object.file


def test_cg_asks_the_usual_judge_of_the_world_unless_a_model_is_given():
    usual = planned(["sprites"], ["beta_vae"], ["cg(frames=20)", "irs(frames=20)"])
    assert {(c.protocol.name, c.model and c.model.name) for c in usual.cells} == {
        ("cg", "sprites_factors"),
        ("irs", None),
    }
    given = planned(["sprites"], ["beta_vae"], ["cg(frames=20)"], ["sprites_moments"])
    assert [c.model.name for c in given.cells] == ["sprites_moments"]
    with pytest.raises(InputError, match="cg needs a model"):
        planned(["mondrian"], ["pca"], ["cg(frames=20)"])


def test_the_judge_of_sprites_tells_all_but_the_orientation():
    world, judge = build("world", "sprites").object, build("model", "sprites_factors").object
    draw = np.random.default_rng(3)
    frames = world.render([world.sample(draw) for _ in range(100)])
    levels = world.levels
    parts = np.split(judge.logits(np.stack([f.srgb() for f in frames])), np.cumsum(judge.heads)[:-1], axis=1)
    right = {
        name: np.mean(
            [list(values)[k] == f.truth["factors"][name] for k, f in zip(part.argmax(1), frames, strict=True)]
        )
        for (name, values), part in zip(levels.items(), parts, strict=True)
    }
    assert all(right[name] >= 0.95 for name in levels if name != "orientation"), right


@pytest.fixture(scope="module")
def large_objects():
    world, draw = build("world", CANDLE).object, np.random.default_rng(5)
    scenes = [s for s in (world.sample(draw) for _ in range(60)) if s.params["size"] == 2.5][:14]
    return scenes, world.render(scenes)


@pytest.mark.slow  # renders candle
@pytest.mark.parametrize("learner", [name for name in VAE_RECIPES if "candle" in bundled_on(name)])
def test_learners_of_candle_see_the_object(learner, large_objects):
    """The object's place in the frame is nearer to its own decoding than to that of the other frames of its scene."""
    scenes, frames = large_objects
    vae = build("method", learner).on("candle").object
    seen = vae.tensor(frames).cpu().numpy().transpose(0, 2, 3, 1)
    decoded = vae.decode(vae.encode(frames))
    near = 0
    for i, frame in enumerate(frames):
        high, wide = frame.image.shape[:2]
        x0, y0, x1, y1 = (
            (np.array(frame.truth["boxes"]["object"]) * np.tile([64 / wide, 64 / high], 2)).round().astype(int)
        )
        part = np.s_[y0 : y1 + 1, x0 : x1 + 1]
        fellows = [j for j, s in enumerate(scenes) if j != i and s.params["scene"] == scenes[i].params["scene"]]
        errors = [np.square(decoded[j][part] - seen[i][part]).mean() for j in fellows]
        near += np.square(decoded[i][part] - seen[i][part]).mean() < np.median(errors)
    assert near >= 0.8 * len(frames), near


@pytest.mark.slow  # renders candle
def test_a_traversal_uses_the_weights_of_its_world():
    found = traverse("beta_vae", CANDLE, steps=2)
    assert found.images.shape[2:] == (64, 64, 3) and np.ptp(found.images, axis=-1).max() > 0.05  # coloured


def test_a_world_that_is_slow_to_render_has_smaller_draws_unless_frames_are_asked_for():
    world, fast = build("world", CANDLE).object, build("world", "sprites").object
    sizes = {name: build("protocol", name).object.size(world) for name in ("irs", "cg", "irs(frames=700)")}
    assert sizes == {"irs": 250, "cg": 250, "irs(frames=700)": 700}
    assert [build("protocol", name).object.size(fast) for name in ("irs", "cg")] == [10_000, 500]
