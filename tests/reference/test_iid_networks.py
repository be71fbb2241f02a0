"""Decomposition networks: losses against slow references, gradients, layers, resumable training, the bundled weights."""

import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest

from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.io.digests import file_digest
from diorama.io.zoo import ZOO
from diorama.methods.decompose.iid.iid_supervised import IidSupervised
from diorama.methods.decompose.iid.iid_timelapse import IidTimelapse
from diorama.methods.decompose.iid.iid_translation import IidTranslation
from diorama.training.iid.data import LayerArrays, LayerOrder, held_out, layered, pairs, scenes_of, sequences
from diorama.training.iid.recipes import IID_RECIPES, Feed, baselines, errors, stacked, train_iid
from diorama.training.schedule import Schedule
from diorama.worlds.tabletop.tabletop import Tabletop
from tests.reference import iid_losses as slow

torch = pytest.importorskip("torch")
METHODS = (IidSupervised, IidTimelapse, IidTranslation)
TINY = Schedule((32, 64), batch=4, rate=1e-3, decay=1e-4, average=0.5, shift=0, flip=False)

#: Errors of the bundled weights on the fixture `unseen`, as they were when the weights were bundled.
UNSEEN = {
    "iid_supervised": {"reflectance": 0.0510, "shading": 0.0519},
    "iid_timelapse": {"reflectance": 0.1080, "shading": 0.1084},
    "iid_translation": {"reflectance": 0.0663, "shading": 0.0456},
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Layers of a tiny recipe, rendered once for all three."""
    out = tmp_path_factory.mktemp("layers")
    for order in tiny("iid_supervised").orders().values():
        layered(order, out / order.purpose, lambda done, total, what: None)
    return out


def tiny(name):
    return replace(IID_RECIPES[name], schedule=TINY, scenes=4, validate=2, test=2, views=2, images=8)


def frame(h=64, w=64, seed=0):
    """A smooth image of any size; its layers are given where a test needs some."""
    y, x = np.mgrid[:h, :w] / max(h, w)
    generator = rng(seed, "frame")
    paint = np.where((x > 0.5)[..., None], generator.uniform(0.1, 0.9, 3), generator.uniform(0.1, 0.9, 3))
    shading = (0.4 + 0.6 * y)[..., None] * np.ones(3)
    truth = {"reflectance": paint.astype(np.float32), "shading": shading.astype(np.float32)}
    return Frame(Scene("test", {"seed": seed}), (paint * shading).astype(np.float32), "linear", truth)


@pytest.fixture
def maps():
    """Logarithms r and s, a truth, images and a mask of two sequences of three: (2, 3, c, 12, 12)."""
    generator = np.random.default_rng(0)
    r, s, truth = (generator.normal(size=(2, 3, 1, 12, 12)) * 0.3 for _ in range(3))
    image = generator.uniform(0.2, 0.3, (2, 3, 3, 12, 12))
    valid = (generator.random((2, 1, 1, 12, 12)) < 0.8) * np.ones((2, 3, 1, 12, 12))
    return [torch.from_numpy(x) for x in (r, s, truth, image, valid)]


def test_all_pairs_of_a_sequence_without_the_double_sum(maps):
    from diorama.training.iid.losses import all_pairs

    x, y, p, _, q = maps
    expected = sum(slow.all_pairs(*(part[k].numpy() for part in (x, y, p, q))) for k in range(2))
    assert float(all_pairs(x, y, p, q)) == pytest.approx(expected, rel=1e-9)


def test_supervised_losses_are_those_of_the_slow_reference(maps):
    from diorama.training.iid import losses

    r, s, truth, _, valid = (x.flatten(0, 1) for x in maps)
    flat = [x[:, 0].numpy() for x in (r, truth, valid)]
    found = losses.scale_invariant_mse(r, truth, valid)
    assert float(found) == pytest.approx(slow.scale_invariant_mse(*flat), rel=1e-9)
    assert float(losses.gradient_matching(r, truth, valid)) == pytest.approx(slow.gradient_matching(*flat), rel=1e-9)
    assert float(losses.ordinal(r, truth, valid)) == pytest.approx(slow.ordinal(*flat, losses.FAR), rel=1e-9)
    assert float(losses.scale_invariant_mse(3 * truth, truth, valid)) == pytest.approx(0, abs=1e-12)
    assert float(losses.gradient_matching(truth + 2, truth, valid)) == pytest.approx(0, abs=1e-12)
    assert float(losses.smooth_shading(s, truth, valid)) > 0 == float(losses.smooth_shading(0 * s, truth, valid))


def test_losses_over_time_are_those_of_the_slow_reference(maps):
    from diorama.training.iid import losses

    r, s, _, image, valid = (x[:1] for x in maps)
    colour, inside = image[0].numpy().transpose(0, 2, 3, 1), valid[0, 0, 0].numpy() > 0
    found = losses.smooth_over_time(r, image, valid)
    assert float(found) == pytest.approx(
        slow.smooth_over_time(r[0, :, 0].numpy(), colour, inside, losses.FAR), rel=1e-6
    )
    found = losses.smooth_light(s, image, valid)
    assert float(found) == pytest.approx(slow.smooth_light(s[0, :, 0].numpy(), colour, inside), rel=1e-9)


def test_only_the_supervised_regime_sees_the_layers_of_its_images():
    from diorama.training.iid.regimes import REGIMES

    torch.manual_seed(0)
    batch = torch.rand(4, 10, 32, 32)
    blind = batch.clone()
    blind[:, 3:9] = float("nan")
    watching = REGIMES["iid_timelapse"](2)
    assert float(watching(batch).detach()) == float(watching(blind).detach())
    assert torch.isnan(REGIMES["iid_supervised"]()(blind))


def test_translation_gets_layers_of_other_scenes():
    scenes, (h, w) = 40, (8, 8)
    paint = np.arange(scenes)[:, None, None, None, None] / scenes * np.ones((scenes, 2, h, w, 3)) + 0.01
    light = np.ones((scenes, 2, h, w)) * np.linspace(0.5, 1, w)
    data = LayerArrays(paint.astype(np.float16), light.astype(np.float16), 0 * light, np.ones((scenes, h, w), bool))
    feed = Feed(tiny("iid_translation"), data)
    batch = feed.drawn(data, 200, rng(0, "test"))
    assert batch.image.shape == batch.reflectance.shape == (200, h, w, 3)
    assert np.allclose(batch.reflectance, 1, atol=1e-3)  # one flat paint over its brightest value
    assert batch.image.max() <= 1 and np.ptp(batch.shading[0]) > 0.3


def test_a_judge_learns_from_its_own_loss_and_the_maker_from_the_other():
    from diorama.training.iid.regimes import Discriminators, adversary

    torch.manual_seed(0)
    judge, real, made = Discriminators(), torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32, requires_grad=True)
    assert judge(real).shape == (2, 16 + 4)
    adversary(judge, real, made).backward()
    (wanted,) = torch.autograd.grad((judge(made) - 1).square().mean(), made)
    assert torch.allclose(made.grad, wanted)
    own = (judge(real) - 1).square().mean() + judge(made.detach()).square().mean()
    for weight, gradient in zip(judge.parameters(), torch.autograd.grad(own, list(judge.parameters())), strict=True):
        assert torch.allclose(weight.grad, gradient, atol=1e-7)


def test_a_product_is_fitted_to_each_image():
    from diorama.training.iid.regimes import fitted

    torch.manual_seed(0)
    product = torch.rand(3, 3, 8, 8)
    assert torch.allclose(fitted(product, torch.tensor([1.0, 2.0, 0.5]).view(3, 1, 1, 1) * product)[1], 2 * product[1])


def test_highlights_have_the_colour_of_the_lamp():
    """Gray paint with a highlight: image and shading have one colour, whatever the lamp."""
    shape = (4, 2, 8, 8)
    data = LayerArrays(np.full((*shape, 3), 0.5), np.ones(shape), np.full(shape, 0.3), np.ones((4, 8, 8), bool))
    batch = pairs(data, rng(0, "lamp"), 20)
    seen, lamp = (x[:, 4, 4] / x[:, 4, 4].sum(1, keepdims=True) for x in (batch.image, batch.shading))
    assert np.allclose(seen, lamp, atol=1e-3) and np.ptp(lamp[:, 2]) > 0.1


def test_images_are_products_of_layers_and_views_share_their_geometry(folder):
    order = tiny("iid_supervised").orders()["train"]
    data = layered(order, folder / "train", lambda done, total, what: None)
    assert data.reflectance.shape == (4, 2, 64, 64, 3) and data.views == 2
    batch = held_out(data)
    ratio = (batch.reflectance * batch.shading).sum((1, 2, 3)) / batch.image.sum((1, 2, 3))
    assert len(batch.image) == 12 and ratio.min() > 0.5  # exposed: divided by the 99th percentile
    assert np.array_equal(batch.reflectance[0], batch.reflectance[2])  # A0I0 and A0I1
    assert np.array_equal(batch.shading[0], batch.shading[1])  # A0I0 and A1I0
    first, second = scenes_of(order, 1)
    assert len(first.params["objects"]) == 3 and first.params["light"] != second.params["light"]
    assert [t["mesh"] for t in first.params["objects"]] == [t["mesh"] for t in second.params["objects"]]
    again = pairs(data, rng(0, "x"), 4), pairs(data, rng(0, "x"), 4)
    assert np.array_equal(again[0].image, again[1].image)
    lapse = sequences(data, rng(0, "y"), 3)
    assert np.array_equal(lapse.reflectance[::2], lapse.reflectance[1::2])
    assert data.at(16).shading.shape == (4, 2, 16, 16)
    with pytest.raises(InputError, match="another recipe"):
        layered(LayerOrder("train", 5, 2), folder / "train", lambda done, total, what: None)


class StopError(Exception):
    """What a test raises to interrupt a training."""


@pytest.mark.parametrize("method", METHODS)
def test_interrupted_training_is_the_same_and_its_file_decomposes(method, folder, tmp_path):
    recipe = tiny(method.name)
    for name in ("whole", "parts"):
        shutil.copytree(folder, tmp_path / name)
    whole = train_iid(recipe, tmp_path / "whole", lambda done, total, what: None)

    def stop(done, total, what):
        if "epoch 2:" in what and done == 4:  # the last of two epochs of two steps
            raise StopError

    with pytest.raises(StopError):
        train_iid(recipe, tmp_path / "parts", stop)
    parts = train_iid(recipe, tmp_path / "parts", lambda done, total, what: None)
    assert whole.read_bytes() == parts.read_bytes()
    card = json.loads(whole.with_suffix(".json").read_text())
    assert np.isfinite([*card["error"].values()]).all() and card["digest"] == file_digest(whole)
    answer = method(str(whole)).decompose([frame(48, 64)])
    assert answer.reflectance.shape == (48, 64, 3) and answer.shading.shape[:2] == (48, 64)


def activated(method, branch, layer, picture, push):
    """The loss when `push` is added to the activation of a layer."""
    module, answer = method.module, None
    hook = module.place(branch, layer).register_forward_hook(lambda *call: call[2] + push.reshape(call[2].shape))
    try:
        answer = getattr(method.decompose([picture]), branch)
    finally:
        hook.remove()
    truth = picture.truth[branch]
    truth = truth.mean(axis=2, keepdims=True) if answer.shape[2] == 1 else truth
    return float(np.mean((answer.astype(np.float64) - truth) ** 2))


@pytest.mark.parametrize("branch", ["reflectance", "shading"])
@pytest.mark.parametrize("place", [1, 4, 6, 9])
@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_finite_differences(method, place, branch):
    found, picture = method(), frame(40, 56)
    layer = found.layers[place]
    assert (
        found.features([picture], branch, layer).shape
        == found.loss_grad([picture], branch, layer, [picture.truth[branch]]).shape
    )
    gradient = found.loss_grad([picture], branch, layer, [picture.truth[branch]])[0].astype(np.float64)
    with torch.no_grad():
        c, h, w = found.activations_and_answers(picture, [(branch, [layer])])[0][0][layer].shape[1:]
    direction = gradient.reshape(h, w, c).transpose(2, 0, 1) / np.linalg.norm(gradient)
    scale = np.linalg.norm(found.features([picture], branch, layer))
    told = []
    for reach in (1e-2, 3e-3):  # kinks of ReLU spoil large steps, rounding small ones
        push = torch.from_numpy((direction * reach * scale / 10).astype(np.float32))
        change = activated(found, branch, layer, picture, push) - activated(found, branch, layer, picture, -push)
        told.append(change / (2 * reach * scale / 10))
    assert min(abs(t / np.linalg.norm(gradient) - 1) for t in told) < 0.03


@pytest.mark.parametrize("method", METHODS)
def test_output_is_a_layer_like_others(method):
    found, picture = method(), frame(40, 56)
    for branch in found.branches:
        answer, truth = getattr(found.decompose([picture]), branch), picture.truth[branch]
        # the answer comes from the twin, features from the network itself
        np.testing.assert_allclose(found.features([picture], branch, "output")[0], answer.ravel(), atol=1e-5)
        truth = truth.mean(axis=2, keepdims=True) if answer.shape[2] == 1 else truth
        gradient = found.loss_grad([picture], branch, "output", [picture.truth[branch]])[0]
        assert np.allclose(gradient, (2 / answer.size * (answer - truth)).ravel(), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_frames_of_any_size_and_exposure(method):
    found, pictures = method(), [frame(64, 64), frame(30, 90, seed=1), frame(100, 100, seed=2)]
    inner = found.features(pictures, "shading", found.layers[3])
    assert len(inner) == 3 and inner.dtype == np.float32
    assert np.array_equal(found.features(pictures[1:2], "shading", found.layers[3])[0], inner[1])
    brighter = Frame(pictures[0].scene, pictures[0].image * 2, "linear")
    once, twice = found.decompose(pictures[:1]), found.decompose([brighter])
    assert np.allclose(once.reflectance, twice.reflectance, rtol=1e-3, atol=1e-5)
    for picture in pictures:
        answer = found.decompose([picture])
        assert answer.reflectance.shape == picture.image.shape and answer.shading.min() >= 0


def test_mistakes_are_named(tmp_path):
    method, picture = IidSupervised(), frame()
    with pytest.raises(InputError, match=r"no layer 'decoder7'.*decoder"):
        method.features([picture], "shading", "decoder7")
    with pytest.raises(InputError, match="no branch 'shade'"):
        method.features([picture], "shade", "decoder1")
    with pytest.raises(InputError, match="diorama train iid_timelapse"):
        IidTimelapse(str(tmp_path / "none.safetensors"))
    with pytest.raises(InputError, match="another network"):
        IidTimelapse(str(method.path)).decompose([picture])
    with pytest.raises(InputError, match="frame's grid"):
        method.loss_grad([picture], "shading", "output", [np.ones((8, 8, 1), np.float32)])


@pytest.fixture(scope="module")
def unseen(tmp_path_factory):
    """24 images of base scenes that nothing was trained on."""
    order = LayerOrder("unseen", 8, 2)
    return held_out(layered(order, tmp_path_factory.mktemp("unseen"), lambda done, total, what: None))


@pytest.mark.parametrize("method", METHODS)
def test_bundled_weights_beat_answers_that_need_no_network(method, unseen):
    path = ZOO / f"{method.name}.safetensors"
    card = json.loads(path.with_suffix(".json").read_text())
    assert card["digest"] == file_digest(path)
    card["recipe"]["schedule"].setdefault("constant", False)  # the cards are older than this setting
    assert card["recipe"] == json.loads(json.dumps(asdict(IID_RECIPES[method.name])))  # what would be trained again
    found, simple = errors(method().module, unseen), baselines(unseen)
    for branch in method.branches:
        assert found[branch] < min(simple[branch].values())
        assert card["error"][branch] < min(card["error_of_baselines"][branch].values())
        assert found[branch] == pytest.approx(UNSEEN[method.name][branch], rel=0.02)


def test_checkpoints_are_small():
    assert sum((ZOO / f"{method.name}.safetensors").stat().st_size for method in METHODS) < 3e6


def test_tabletop_frames_go_through():
    world = Tabletop(size=48, samples=4)
    (picture,) = world.render([world.sample(rng(0, "iid"))])
    answer = IidTranslation().decompose([picture])
    assert answer.reflectance.shape == (48, 48, 3) and np.isfinite(answer.shading).all()
    assert stacked(held_out(LayerArrays(*_one(picture)))).shape == (3, 10, 48, 48)


def _one(picture):
    """The layers of a frame, twice, as a stack of one base scene."""
    r, s, c = (np.stack([picture.truth[n]] * 2)[None] for n in ("reflectance", "shading", "specular"))
    return r, s.mean(-1), c.mean(-1), picture.mask[None]


def test_several_layers_are_read_in_one_pass_and_are_the_same():
    found, layers, picture = IidSupervised(), ["encoder2", "decoder4", "output"], frame(40, 56)
    passes = []
    hook = found.module.register_forward_hook(lambda *call: passes.append(1))
    try:
        features = found.features_at([picture, picture], "shading", layers)
        truths = [np.zeros((*picture.image.shape[:2], 1), np.float32)] * 2
        gradients = found.loss_grads([picture, picture], "shading", layers, truths)
    finally:
        hook.remove()
    assert len(passes) == 4
    for layer, x, g in zip(layers, features, gradients, strict=True):
        np.testing.assert_array_equal(x, found.features([picture, picture], "shading", layer))
        np.testing.assert_array_equal(g, found.loss_grad([picture, picture], "shading", layer, truths))
