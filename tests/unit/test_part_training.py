"""What training adds to a network and folds away: the same logits before and after, the part loss by hand, homogeneity."""

import json
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")

from safetensors.torch import load_file  # noqa: E402

from diorama.models.birds import small  # noqa: E402
from diorama.models.birds.networks import network  # noqa: E402
from diorama.training.folding import (  # noqa: E402
    PartHead,
    PartLoss,
    StandardisedConv,
    folded,
    quiet_branches,
    variants_of,
    with_part_head,
)
from diorama.training.losses import multi_target_loss  # noqa: E402
from diorama.training.recipes import RECIPES, train_recipe  # noqa: E402
from diorama.worlds.birds.birds import Birds  # noqa: E402

CLASSES = Birds().classes
NEW = ("birds_vit", "birds_bagnet", "birds_xdnn", "birds_bcos")


def test_the_table_has_a_variant_of_every_part_for_every_class():
    table, counts = variants_of(CLASSES)
    assert table.shape == (50, sum(counts)) and (table.sum(1) == 5).all() and len(counts) == 5


@pytest.mark.parametrize("bias", [True, False])
def test_a_part_head_is_one_linear_layer_afterwards(bias):
    torch.manual_seed(0)
    table, counts = variants_of(CLASSES)
    head, x = PartHead(7, table, bias), torch.randn(4, 7)
    torch.nn.init.normal_(head.free.weight)
    assert head(x).shape == (4, 50 + sum(counts))
    logits = head.eval()(x)
    assert torch.allclose(head.folded()(x), logits, atol=1e-5)
    scores, at = head.parts(x)[0], np.cumsum([0, *counts])
    by_hand = sum(scores[at[i] + v] for i, v in enumerate(CLASSES[3].values())) + head.free(x)[0, 3]
    assert torch.allclose(logits[0, 3], by_hand, atol=1e-5)


def test_the_part_loss_adds_the_cross_entropy_of_every_part():
    classes = [{"beak": 0, "eye": 0}, {"beak": 0, "eye": 1}, {"beak": 1, "eye": 1}]
    table, counts = variants_of(classes)
    torch.manual_seed(0)
    output, targets = torch.randn(1, 3 + 4), torch.tensor([[True, True, False]])
    beak, eye = output[0, 3:5].log_softmax(0), output[0, 5:7].log_softmax(0)
    expected = multi_target_loss(output[:, :3], targets) - beak[0] - (eye[0] + eye[1]) / 2
    assert torch.allclose(PartLoss(table, counts)(output, targets), expected)


def test_standardised_convolutions_fold_and_the_network_stays_homogeneous():
    torch.manual_seed(0)
    table, _ = variants_of(CLASSES)
    net = with_part_head(quiet_branches(small.xdnn(50, StandardisedConv)), table).eval()
    plain, x = folded(net).eval(), torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        assert torch.allclose(plain(x), net(x), atol=1e-5)
        assert torch.allclose(plain(0.25 * x), 0.25 * plain(x), atol=1e-6)
    assert set(plain.state_dict()) == set(network("birds_xdnn", 50).state_dict())


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """Few birds, rendered once for all recipes."""
    folder = tmp_path_factory.mktemp("birds")
    from diorama.training.staged import staged

    for purpose, order in tiny("birds_vit").orders().items():
        staged(order, folder / purpose, lambda *_: None, processes=1)
    return folder


def tiny(name):
    recipe = RECIPES[name]
    how = replace(recipe.schedule, sizes=(recipe.schedule.sizes[0], 128), batch=8)
    return replace(recipe, birds=16, validation=4, test=4, schedule=how)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEW)
def test_a_recipe_runs_stops_and_goes_on_to_the_same_weights(name, birds, tmp_path):
    torch.set_num_threads(1)
    whole, halted = tmp_path / "whole", tmp_path / "halted"
    for out in (whole, halted):
        out.mkdir()
        for purpose in ("train", "validation", "test"):
            (out / purpose).symlink_to(birds / purpose)
    path = train_recipe(tiny(name), whole, lambda *_: None)

    def stop(done, total, message):
        if "epoch 2" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_recipe(tiny(name), halted, stop)
    again = train_recipe(tiny(name), halted, lambda *_: None)
    assert again.read_bytes() == path.read_bytes()
    network(name, 50).load_state_dict(load_file(path))


@pytest.mark.slow
def test_a_protopnet_s_prototypes_are_real_patches_and_it_goes_on_where_it_stopped(birds, tmp_path):
    from diorama.training import prototypes
    from diorama.training.loop import to_tensor
    from diorama.training.staged import staged

    torch.set_num_threads(1)
    recipe = replace(
        tiny("birds_vit"),
        name="birds_protopnet",
        schedule=replace(prototypes.RECIPE.schedule, sizes=(128, 128), batch=8),
    )
    whole, halted = tmp_path / "whole", tmp_path / "halted"
    for out in (whole, halted):
        out.mkdir()
        for purpose in ("train", "validation", "test"):
            (out / purpose).symlink_to(birds / purpose)
    path = prototypes.train_protopnet(recipe, whole, lambda *_: None)
    calls = []

    def stop(done, total, message):
        calls.append(message)
        if "epoch 2" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prototypes.train_protopnet(recipe, halted, stop)
    assert prototypes.train_protopnet(recipe, halted, lambda *_: None).read_bytes() == path.read_bytes()
    net = network("birds_protopnet", 50)
    net.load_state_dict(load_file(path))
    data = staged(recipe.orders()["train"], birds / "train", lambda *_: None)
    where = json.loads(path.with_suffix(".json").read_text())["prototypes"]
    seen = [(p, w) for p, w in enumerate(where) if w["bird"] >= 0]  # classes among the few birds of this test
    assert seen and all(data.labels[w["bird"]] == net.owner[p] for p, w in seen)
    net.eval()
    for p, w in seen[:10]:
        with torch.no_grad():
            patch = net.patches(to_tensor(data.images[w["bird"]][None]))[0, :, w["row"], w["column"]]
        assert torch.allclose(net.prototype_vectors[p, :, 0, 0].detach(), patch, atol=5e-3)  # kept in half precision
    _looks_like_its_bird(path, data, *seen[0])


def _looks_like_its_bird(path, data, p, where):
    """The picture of a prototype is cut from its bird, and stands beside the box in the report's panel."""
    from diorama.adapt.methods import explain
    from diorama.methods.explain.prototypes import Prototypes
    from diorama.models.birds.birds_protopnet import BirdsProtopnet
    from diorama.protocols.parts.pictures import looks_like

    model, bird = BirdsProtopnet(str(path)), data.images[where["bird"]]
    top, left = (min(max(16 * where[way] - 8, 0), 96) for way in ("row", "column"))
    picture = model.module.pictures[p]
    np.testing.assert_allclose(picture, bird[top : top + 32, left : left + 32] / 255, atol=1e-6)
    image = bird.astype(np.float32)[None] / 255
    answer = explain(Prototypes(), model, image, data.labels[[where["bird"]]])[0]
    assert answer.examples.shape == (10, 32, 32, 3) and np.abs(answer.examples - picture).sum((1, 2, 3)).min() == 0
    shown = looks_like(answer, image[0])
    assert len(shown) == 7 and f"{answer.weights.max():.2f}" in shown[2].caption


def test_connections_are_the_sparsest_with_the_same_probabilities():
    from diorama.training.prototypes import sparsest

    torch.manual_seed(0)
    weight, others = torch.randn(5, 4) - 3, torch.arange(4) % 2 != torch.arange(5)[:, None]
    found, best = sparsest(weight, others), torch.rand(7, 4)
    torch.testing.assert_close((best @ found.T).softmax(1), (best @ weight.T).softmax(1))
    for p in range(4):  # no other number that is added to a prototype's connections gives a smaller sum
        sums = [float(((weight[:, p] + c) * others[:, p]).abs().sum()) for c in torch.linspace(-8, 8, 3201)]
        assert float((found[:, p] * others[:, p]).abs().sum()) <= min(sums) + 1e-3


def test_the_prototype_loss_by_hand():
    from diorama.training.prototypes import CLUSTER, SEPARATION, PrototypeLoss

    torch.manual_seed(0)
    output, targets = torch.randn(2, 3 + 6), torch.tensor([[True, False, False], [True, True, True]])
    best = output[:, 3:]
    near = (best[0, :2].max() + best[1].max()) / 2
    far = best[0, 2:].max() / 2  # the second bird belongs to every class
    expected = multi_target_loss(output[:, :3], targets) - CLUSTER * near + SEPARATION * far
    assert torch.allclose(PrototypeLoss(torch.tensor([0, 0, 1, 1, 2, 2]))(output, targets), expected)
