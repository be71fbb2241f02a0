"""Training: the loss against its paper, and that an interrupted training ends where an uninterrupted one does."""

import json
import math
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("numba", reason="birds are rendered with numba")

from diorama.core.errors import InputError  # noqa: E402
from diorama.core.examples import Order, targets_of  # noqa: E402
from diorama.core.scene import rng  # noqa: E402
from diorama.core.spec import parse  # noqa: E402
from diorama.training.blocks import BLOCK  # noqa: E402
from diorama.training.loop import batches, reduced, shifted  # noqa: E402
from diorama.training.losses import multi_target_loss  # noqa: E402
from diorama.training.recipes import RECIPES, seeded, train, train_recipe  # noqa: E402
from diorama.training.staged import staged  # noqa: E402
from diorama.worlds.birds.birds import Birds  # noqa: E402
from diorama.worlds.birds.classes import PARTS  # noqa: E402
from studies.funnybirds.bare import chance_interval  # noqa: E402


def silent(done, total, message):
    pass


def tiny(**schedule):
    recipe = RECIPES["birds_cnn"]
    changed = {"sizes": (16, 32, 32), "batch": 16, **schedule}
    return replace(recipe, size=32, birds=48, validation=16, test=24, schedule=replace(recipe.schedule, **changed))


def slow_loss(logits, birds, classes):
    """The paper in words: for every image, the mean over its compatible classes of −log p; then the mean over images."""
    per_image = []
    for scores, bird in zip(logits.tolist(), birds, strict=True):
        total = sum(math.exp(score) for score in scores)
        candidates = [
            i for i, known in enumerate(classes) if all(bird[p] is None or bird[p] == known[p] for p in PARTS)
        ]
        per_image.append(sum(-math.log(math.exp(scores[i]) / total) for i in candidates) / len(candidates))
    return sum(per_image) / len(per_image)


def aliased_loss(logits, birds, classes):
    """The defect of the first released script: one candidate list for the whole batch, divided by the batch size."""
    candidates, total = list(range(len(classes))), torch.zeros(())
    for scores, bird in zip(logits, birds, strict=True):
        for part in PARTS:
            if bird[part] is not None:
                candidates = [i for i in candidates if classes[i][part] == bird[part]]
        for i in candidates:
            total = total - scores.log_softmax(0)[i]
    return float(total / len(birds))


@pytest.fixture(scope="module")
def birds():
    world = Birds(split="train")
    return world, [world.sample(rng(3, "loss", i)) for i in range(24)]


def test_the_loss_is_the_papers(birds):
    world, scenes = birds
    logits = torch.randn(24, 50, generator=torch.Generator().manual_seed(0))
    targets = torch.from_numpy(np.stack([targets_of(world, frame) for frame in world.render(scenes)]))
    parts = [scene.params["parts"] for scene in scenes]
    assert targets.sum(1).max() > 1, "some birds lack parts"
    ours = float(multi_target_loss(logits, targets))
    assert ours == pytest.approx(slow_loss(logits, parts, world.classes), abs=1e-5)
    assert ours != pytest.approx(aliased_loss(logits, parts, world.classes), abs=0.1)


def test_one_birds_targets_do_not_depend_on_its_neighbours(birds):
    """With the aliased list, the loss of a bird changed with the birds before it in the batch."""
    world, scenes = birds
    logits = torch.randn(24, 50, generator=torch.Generator().manual_seed(1))
    targets = torch.from_numpy(np.stack([targets_of(world, frame) for frame in world.render(scenes)]))
    alone = [float(multi_target_loss(logits[i : i + 1], targets[i : i + 1])) for i in range(24)]
    assert float(multi_target_loss(logits, targets)) == pytest.approx(np.mean(alone), abs=1e-5)
    assert float(multi_target_loss(logits.flip(0), targets.flip(0))) == pytest.approx(np.mean(alone), abs=1e-5)


def test_the_loss_is_lowest_where_the_compatible_classes_share_the_mass():
    targets = torch.zeros(1, 50, dtype=torch.bool)
    targets[0, [2, 5, 11]] = True
    ideal = torch.where(targets, 0.0, -50.0)
    assert float(multi_target_loss(ideal, targets)) == pytest.approx(math.log(3), abs=1e-5)
    assert float(multi_target_loss(ideal + 3 * torch.eye(50)[2], targets)) > math.log(3)


@pytest.mark.slow
def test_half_of_the_training_birds_lack_parts_and_their_own_class_is_always_a_target(tmp_path):
    data = staged(Order(Birds(16, split="train"), 0, "train", 60), tmp_path, silent)
    assert data.targets[np.arange(60), data.labels].all()
    assert 0.15 < (data.targets.sum(1) > 1).mean() < 0.5


@pytest.mark.slow
def test_an_interrupted_rendering_is_continued(tmp_path):
    order = Order(Birds(16), 0, "train", BLOCK + 20)
    whole = staged(order, tmp_path / "whole", silent)

    def stop(done, total, message):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        staged(order, tmp_path / "cut", stop, processes=1)
    assert np.load(tmp_path / "cut" / "done.npy").tolist() == [True, False]
    again = staged(order, tmp_path / "cut", silent, processes=1)
    assert np.array_equal(whole.images, again.images) and np.array_equal(whole.targets, again.targets)
    with pytest.raises(InputError, match="another recipe"):
        staged(replace(order, seed=1), tmp_path / "cut", silent)


def test_bird_i_does_not_depend_on_how_many_are_asked(tmp_path):
    few = staged(Order(Birds(16), 0, "train", 5), tmp_path / "few", silent)
    more = staged(Order(Birds(16), 0, "train", 9), tmp_path / "more", silent)
    assert np.array_equal(few.images, more.images[:5])


def test_bare_birds_have_no_part(tmp_path):
    order = Order(Birds(16), 0, "bare", 3, bare=True)
    assert all(set(order.scene(i).params["parts"].values()) == {None} for i in range(3))
    assert staged(order, tmp_path, silent).targets.all()


KILLED = """
import os, signal, sys
import torch
from pathlib import Path
from diorama.training.recipes import RECIPES, train_recipe
from dataclasses import replace

def die(done, total, message):
    if done == 5 and "epoch 2:" in message:
        os.kill(os.getpid(), signal.SIGKILL)

torch.set_num_threads(1)
recipe = RECIPES["birds_cnn"]
how = replace(recipe.schedule, sizes=(16, 32, 32), batch=16)
train_recipe(replace(recipe, size=32, birds=48, validation=16, test=24, schedule=how), Path(sys.argv[1]), die)
"""


@pytest.mark.slow
def test_a_killed_training_ends_with_the_same_weights_when_it_is_started_again(tmp_path):
    seen = []
    path = train_recipe(tiny(), tmp_path / "whole", lambda *event: seen.append(event))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "cut")], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert json.loads(torch_metadata(tmp_path / "cut")["history"])[0]["size"] == 16
    resumed = train_recipe(tiny(), tmp_path / "cut", silent)
    assert resumed.read_bytes() == path.read_bytes()
    states = [torch_state(folder) for folder in (tmp_path / "whole", tmp_path / "cut")]
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][k], states[1][k]) for k in states[0])
    trained = [event for event in seen if "; epoch " in event[2]]
    assert trained[-1][0] == trained[-1][1] == 9
    card = json.loads(path.with_suffix(".json").read_text())
    assert card["accuracy"]["birds"] == 24 and len(card["history"]) == 3


def test_control_c_ends_a_training_and_leaves_the_last_epoch(tmp_path):
    def stop(done, total, message):
        if "epoch 2:" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_recipe(tiny(), tmp_path, stop)
    assert len(json.loads(torch_metadata(tmp_path)["history"])) == 1
    assert not list(tmp_path.glob("*.part"))


def test_a_folder_of_another_schedule_is_refused(tmp_path):
    train_recipe(tiny(sizes=(16,)), tmp_path, silent)
    with pytest.raises(InputError, match="another schedule"):
        train_recipe(tiny(sizes=(16,), rate=1.0), tmp_path, silent)


def torch_metadata(folder):
    from safetensors import safe_open

    with safe_open(folder / "state.safetensors", "pt") as file:
        return file.metadata()


def torch_state(folder):
    from safetensors.torch import load_file

    return load_file(folder / "state.safetensors")


def test_the_order_of_the_data_is_a_function_of_seed_and_epoch(tmp_path):
    recipe = tiny()
    data = staged(recipe.orders()["train"], tmp_path, silent)

    def first(epoch, seed=0):
        return next(batches(data, replace(recipe.schedule, seed=seed), epoch))[0]

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2)) and not torch.equal(first(1), first(1, seed=1))


def test_shifts_and_reductions():
    images = rng(0, "shift").integers(0, 255, (2, 8, 8, 3), dtype=np.uint8)
    assert np.array_equal(shifted(images, np.full((2, 2), 3), 3), images)
    moved = shifted(images, np.array([[3, 1], [3, 3]]), 3)
    assert np.array_equal(moved[0, :, 2:], images[0, :, :-2]) and np.array_equal(moved[1], images[1])
    assert np.array_equal(reduced(images, 8), images)
    by_area = images.reshape(2, 4, 2, 4, 2, 3).mean((2, 4))
    assert np.abs(reduced(images, 4) - by_area).max() <= 0.5


def test_a_second_training_has_another_seed_and_the_same_birds():
    first, second = (seeded(parse(name)) for name in ("birds_vgg", "birds_vgg(seed=1)"))
    assert first == RECIPES["birds_vgg"] and second.schedule.seed == 1
    assert {k: o.identity() for k, o in first.orders().items()} == {k: o.identity() for k, o in second.orders().items()}
    assert not first.half and seeded(parse("birds_vgg(half=True)")).half and seeded(parse("birds_vit(seed=1)")).half
    for wrong in ("birds_vgg(seed=-1)", "birds_vgg(seed=x)", "birds_vgg(epochs=3)"):
        with pytest.raises(InputError, match="seed"):
            seeded(parse(wrong))
    with pytest.raises(InputError, match="half=2: give True or False"):
        seeded(parse("birds_vgg(half=2)"))


def test_unknown_recipes_get_a_hint(tmp_path):
    with pytest.raises(InputError, match="did you mean 'birds_cnn'"):
        train("birds_cn", tmp_path, silent)


def test_chance_is_inside_its_interval():
    low, high = chance_interval(5000, 50)
    assert low < 0.02 < high
