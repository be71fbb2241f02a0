"""The bundled bird classifiers: checkpoint, card, answers, and that nothing alters them."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from diorama.core.errors import InputError
from diorama.core.scene import rng
from diorama.models.birds.birds_cnn import BirdsCnn
from diorama.models.birds.birds_resnet import BirdsResnet
from diorama.models.birds.birds_vgg import BirdsVgg
from diorama.worlds.birds.birds import Birds

torch = pytest.importorskip("torch", reason="the classifier needs torch")


@pytest.fixture(scope="module", params=[BirdsCnn, BirdsVgg, BirdsResnet], ids=lambda kind: kind.name)
def model(request):
    return request.param()


@pytest.fixture(scope="module")
def frames():
    pytest.importorskip("numba", reason="birds are rendered with numba")
    world = Birds(size=128)
    return world.render([world.sample(rng(7, "test_models", i)) for i in range(200)])


@pytest.fixture(scope="module")
def images(frames):
    return np.stack([frame.image for frame in frames])


def test_the_card_agrees_with_the_file(model):
    card = json.loads(model.path.with_suffix(".json").read_text())
    assert card["bytes"] == model.path.stat().st_size < 4_000_000
    assert card["parameters"] == sum(p.numel() for p in model.module.parameters())
    assert card["digest"] == model.fingerprint()
    assert card["accuracy"]["interval"][0] < card["accuracy"]["value"] < card["accuracy"]["interval"][1]
    assert card["recipe"]["size"] == model.size
    assert len(card["history"]) == len(card["recipe"]["schedule"]["sizes"])


def test_fresh_birds_are_named(model, frames, images):
    labels = np.array([frame.truth["label"] for frame in frames])
    assert (model.logits(images).argmax(1) == labels).mean() >= 0.93  # 200 birds; the cards say .98 on 4,000


def test_a_removed_part_spreads_the_answer_over_the_classes_it_leaves(model, frames):
    """With all parts gone every class is a target, so the prediction is close to uniform."""
    world = Birds(size=128)
    bare = world.render([world.do(frame.scene, **dict.fromkeys(world.part_names)) for frame in frames[:16]])
    p = torch.from_numpy(model.logits(np.stack([frame.image for frame in bare]))).softmax(1)
    entropy = -(p * p.log()).sum(1).mean()
    assert entropy > 0.9 * np.log(50)


def test_logits_do_not_depend_on_the_batch(model, images):
    whole = model.logits(images[:16])
    assert whole.shape == (16, 50) and whole.dtype == np.float32
    assert np.array_equal(whole, model.logits(images[:16]))
    for batch in (4, 8):
        parts = [model.logits(images[i : i + batch]) for i in range(0, 16, batch)]
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=2e-6, atol=1e-5)  # processors round differently


def test_more_images_than_a_chunk(model, images):
    assert model.logits(images[:12]).shape == (12, 50)


def test_features(model, images):
    assert model.cam_layer in model.layers
    assert model.features(images[:4], model.cam_layer).shape[2] in (4, 8)
    last = model.features(images[:4], model.layers[-1]).reshape(4, -1)
    head = model.module.head
    np.testing.assert_allclose(
        last @ head.weight.numpy().T + head.bias.numpy(), model.logits(images[:4]), rtol=0, atol=1e-4
    )
    assert all(model.features(images[:4], layer).shape[0] == 4 for layer in model.layers)


def test_gradients_do_not_alter_the_model(model, images):
    before = {k: v.clone() for k, v in model.module.state_dict().items()}
    x = torch.from_numpy(images[:4].transpose(0, 3, 1, 2).copy()).requires_grad_()
    model.module(x)[:, 3].sum().backward()
    assert x.grad is not None and bool(x.grad.abs().sum() > 0)
    assert all(torch.equal(before[k], v) for k, v in model.module.state_dict().items())
    assert not model.module.training
    assert all(p.grad is None and not p.requires_grad for p in model.module.parameters())


def test_every_relu_is_used_once_and_not_in_place(model, images):
    calls = []
    relus = [m for m in model.module.modules() if isinstance(m, torch.nn.ReLU)]
    hooks = [m.register_forward_hook(lambda m, _, __: calls.append(id(m))) for m in relus]
    model.module(torch.from_numpy(images[:1]).permute(0, 3, 1, 2))
    for hook in hooks:
        hook.remove()
    assert sorted(calls) == sorted(map(id, relus)) and not any(m.inplace for m in relus)


@pytest.mark.parametrize(
    ("shape", "dtype", "said"),
    [
        ((2, 64, 64, 3), np.float32, r"\(2, 64, 64, 3\): this model takes \(n, 128, 128, 3\)"),
        ((128, 128, 3), np.float32, "this model takes"),
        ((2, 3, 128, 128), np.float32, "this model takes"),
        ((2, 128, 128, 3), np.uint8, "uint8: give a float32 array"),
    ],
)
def test_wrong_images_are_refused(model, shape, dtype, said):
    with pytest.raises(InputError, match=said) as caught:
        model.logits(np.zeros(shape, dtype))
    assert "\n" not in str(caught.value)


def test_no_images_give_no_logits(model):
    assert model.logits(np.zeros((0, 128, 128, 3), np.float32)).shape == (0, 50)


def test_unknown_layers_and_missing_checkpoints_are_refused(model, images, tmp_path):
    with pytest.raises(InputError, match=f"did you mean '{model.cam_layer}'"):
        model.features(images[:1], model.cam_layer + "4")
    with pytest.raises(InputError, match="there is no checkpoint"):
        BirdsCnn(checkpoint=str(tmp_path / "absent.safetensors"))
    (tmp_path / "bad.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(InputError, match="holds weights of another network"):
        _ = BirdsCnn(checkpoint=str(tmp_path / "bad.safetensors")).module


def test_another_file_with_the_same_weights_is_the_same_model(model, tmp_path):
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(model.path.read_bytes())
    assert type(model)(checkpoint=str(copy)).fingerprint() == model.fingerprint()


def test_without_torch_there_is_one_line(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^birds_cnn needs torch: pip install 'diorama\[torch\]'$"):
        _ = BirdsCnn().module


def test_all_checkpoints_together_are_small():
    assert sum(p.stat().st_size for p in BirdsCnn().path.parent.iterdir()) < 30_000_000


def test_importing_the_model_does_not_import_torch():
    code = "import sys, diorama.models.birds.birds_cnn as m; m.BirdsCnn().fingerprint(); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
