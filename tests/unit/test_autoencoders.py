"""Recipes of learners: an interrupted training ends with the same weights, its file is an encoder, mistakes are one line."""

import json

import numpy as np
import pytest

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.core.spec import parse
from diorama.io.images import write_png

torch = pytest.importorskip("torch")

from diorama.training import autoencoders  # noqa: E402
from diorama.training.autoencoders import VAE_RECIPES, task_of, train_vae, vae_recipe  # noqa: E402
from diorama.training.gathered import Gathered, box_of, gathered  # noqa: E402

SMALL = "world=sprites, size=32, latents=6, steps=4, batch=8, images=40"


class StopError(Exception):
    """What a test raises to interrupt a training."""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """One cache for the module, and blocks of two steps."""
    monkeypatch.setenv("DIORAMA_CACHE", str(tmp_path_factory.getbasetemp() / "learners"))
    monkeypatch.setattr(autoencoders, "EVERY", 2)
    monkeypatch.setattr(autoencoders, "HELD", 20)
    torch.set_num_threads(1)


def quiet(done, total, what=""):
    """Progress that says nothing."""


def trained(text, out, progress=quiet):
    return train_vae(vae_recipe(parse(text)), out, progress)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["beta_tcvae", "ss_factor_vae"])
def test_interrupted_training_is_the_same_and_its_file_encodes(name, tmp_path):
    from diorama.methods.represent.burgess_vae import BurgessVae

    text = f"{name}({SMALL}, seed=1, half=True)"
    said = []
    whole = trained(text, tmp_path / "whole", lambda done, total, what: said.append(what))

    def stop(done, total, what):
        if done == 3 and "epoch" in what:  # in the second of two blocks of two steps
            raise StopError

    with pytest.raises(StopError):
        trained(text, tmp_path / "parts", stop)
    parts = trained(text, tmp_path / "parts")
    assert whole.read_bytes() == parts.read_bytes()
    assert any("reconstruction" in line and "KL" in line for line in said)
    card = json.loads(whole.with_suffix(".json").read_text())
    first, second = (block["reconstruction"] for block in card["history"])
    assert second < first and card["recipe"]["how"]["seed"] == 1 and card["bytes"] < 1_000_000
    assert card["reconstruction"] == pytest.approx(card["float32"]["reconstruction"], rel=1e-3)
    assert (tmp_path / "whole" / "traversals.png").stat().st_size > 1000
    world = build("world", "sprites").object
    vae = BurgessVae(str(whole))
    codes = vae.encode(world.render([world.scene(i)[1] for i in range(3)]))  # 64 pixels, squeezed to the 32 it learnt
    assert codes.shape == (3, 6) and vae.decode(codes).shape == (3, 32, 32, 3)


@pytest.mark.parametrize("name", VAE_RECIPES)
def test_every_learner_learns(name, tmp_path):
    card = json.loads(trained(f"{name}({SMALL})", tmp_path).with_suffix(".json").read_text())
    assert np.isfinite(card["reconstruction"]) and card["recipe"]["name"] == name


@pytest.mark.slow
def test_labels_pull_the_means_of_the_latents_they_are_given_to(tmp_path, monkeypatch):
    """With labels alone (their weight large) the first latents order held-out images by their factors."""
    from diorama.methods.represent.burgess_vae import BurgessVae

    world = build("world", "sprites")
    learnt = "size=32, latents=6, steps=150, batch=32, images=200, labels=1.0, weight=100, rate=0.003"
    text = f"ss_beta_vae(world=sprites, {learnt})"
    monkeypatch.setattr(autoencoders, "EVERY", 150)
    vae = BurgessVae(str(trained(text, tmp_path)))
    held = gathered(world, "val", 20, 0, quiet)
    frames = [
        Frame(Scene("sprites", {}), np.repeat(image / 255, 3, axis=2).astype(np.float32), "srgb", {})
        for image in held.images
    ]
    codes = vae.encode(frames)
    place = list(held.levels).index("x")
    assert np.corrcoef(codes[:, place], held.factors[:, place])[0, 1] > 0.5


def test_a_folder_of_images_is_learnt(tmp_path):
    generator = np.random.default_rng(0)
    for i in range(30):
        write_png(tmp_path / "mine" / f"{i}.png", generator.integers(0, 255, (70, 90, 3), np.uint8))
    found = trained(f"beta_vae(world={tmp_path / 'mine'}, steps=2, batch=8, size=32)", tmp_path / "out")
    card = json.loads(found.with_suffix(".json").read_text())
    assert "box_error" not in card and card["held_out"] == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("beta_vae(world=sprites, batch=64, images=40)", "batch=64 is larger than the 40 images"),
        ("ss_beta_vae(world={folder}, batch=4)", "has no factors with levels: write beta_vae"),
        (
            "ss_beta_vae(world=sprites, latents=3, batch=8, images=40)",
            "5 factors need as many latents: write latents=5",
        ),
        ("beta_vae(world=sprites, batch=8, images=40, box=3)", "does not tell where its objects are"),
        ("beta_vae(world=sprite)", "unknown world 'sprite'"),
        ("beta_vae(world=sprites, bata=3)", "has no parameter 'bata'"),
        ("beta_vae(world=sprites, labels=0.2)", "has no parameter 'labels'"),
        ("beta_tcvae(estimate=strat)", "estimate='strat'"),
        ("dip_vae(off=a)", "off='a' should be float"),
        ("beta_vae(size=48)", "size=48 is not one of 64, 32"),
        ("beta_vae(steps=0)", "steps=0: give a number at least 1"),
        ("beta_vae(rate=0)", "rate=0"),
        ("beta_vae(half=3)", "half=3 should be bool"),
        ("ss_beta_vae(labels=2)", "labels=2: give a number above 0, at most 1"),
    ],
)
def test_mistakes_are_one_line(text, words, tmp_path):
    for i in range(12):
        write_png(tmp_path / "mine" / f"{i}.png", np.full((64, 64, 3), i, np.uint8))
    with pytest.raises(InputError) as caught:
        trained(text.format(folder=tmp_path / "mine"), tmp_path / "out")
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_is_for_one_recipe(tmp_path):
    trained(f"beta_vae({SMALL})", tmp_path)
    with pytest.raises(InputError, match=r"holds a training with beta=4.0, asked is 6"):
        trained(f"beta_vae({SMALL}, beta=6)", tmp_path)


def test_a_loss_that_becomes_nan_is_one_line_and_keeps_the_last_state(tmp_path, monkeypatch):
    from diorama.training.learner import Criterion

    real, calls = Criterion.__call__, []

    def broken(self, seen, targets):
        calls.append(1)
        return real(self, seen, targets) * (float("nan") if len(calls) == 3 else 1.0)

    monkeypatch.setattr(Criterion, "__call__", broken)
    with pytest.raises(InputError, match=r"the loss became nan at step 3: .* lower rate") as caught:
        trained(f"beta_vae({SMALL})", tmp_path)
    assert "\n" not in str(caught.value)
    monkeypatch.setattr(Criterion, "__call__", real)
    whole = trained(f"beta_vae({SMALL})", tmp_path)  # goes on from the block before
    fresh = trained(f"beta_vae({SMALL})", tmp_path / "fresh")
    assert whole.read_bytes() == fresh.read_bytes()


@pytest.mark.slow
def test_images_are_kept_once_with_factors_and_boxes():
    world = build("world", "candle(width=64, samples=1)")
    said = []
    first = gathered(world, "val", 3, 0, lambda *what: said.append(what))
    again = gathered(world, "val", 3, 0, lambda *what: said.append(what))
    assert len(said) == 1 and np.array_equal(first.images, again.images) and first.channels == 3
    frames = world.object.render([world.object.sample(rng(0, "dataset", "val", i)) for i in range(3)])
    for frame, row, box in zip(frames, first.factors, first.boxes, strict=True):
        assert [list(v).index(frame.truth["factors"][n]) for n, v in world.object.levels.items()] == row.tolist()
        assert np.allclose(box, box_of(frame)) and 0 < box[2] - box[0] < 1
    assert first.boxed and (first.targets < 1).all() and first.targets.shape == (3, 6)


def test_a_constant_rate_is_the_same_at_every_step_and_is_written_down_only_where_it_is_asked_for():
    asked = vae_recipe(parse("beta_vae(steps=1000, rate=0.0005, constant=True)"))
    rates = {asked.schedule.rate_at(step, asked.block) for step in range(1000)}
    assert rates == {0.0005} and asked.described()["constant"] is True
    usual = vae_recipe(parse("beta_vae(steps=1000, rate=0.0005)"))
    rates = [usual.schedule.rate_at(step, usual.block) for step in range(1000)]
    assert max(rates) == rates[249] == 0.0005 and rates[-1] == 0 and "constant" not in usual.described()
    with pytest.raises(InputError, match="constant='yes' should be bool"):
        vae_recipe(parse("beta_vae(constant=yes)"))


def test_learning_begins_with_hes_weights_unless_pytorchs_are_asked_for():
    """He et al. 2015: uniform within ±√(6 / n), n the inputs of a unit; PyTorch's own bound is smaller by √6."""
    gray = Gathered(np.zeros((8, 64, 64, 1), np.uint8), np.zeros((8, 0), int), np.zeros((8, 4)), {})
    for init, bound in (("he", 6**0.5), ("torch", 1.0)):
        recipe = vae_recipe(parse(f"beta_vae(world=sprites, steps=1, batch=4, init={init})"))
        torch.manual_seed(0)
        net = task_of(recipe, {"train": gray, "val": gray}).net.get_submodule("net")
        for layer, inputs in ((net.encoder.conv2, 32 * 16), (net.encoder.lin1, 512), (net.decoder.lin3, 256)):
            largest = float(layer.weight.detach().abs().max())
            assert 0.97 * bound < largest * inputs**0.5 <= bound + 1e-5, init
    assert vae_recipe(parse("beta_vae")).described()["init"] == "he"
    assert "init" not in vae_recipe(parse("beta_vae(init=torch)")).described(), "as in the cards of earlier trainings"
