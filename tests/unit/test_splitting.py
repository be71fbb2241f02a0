"""A decomposition network of the user's own: R and S of a torch module, every part of it readable for CSM."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need torch")

from diorama.adapt.methods import method  # noqa: E402
from diorama.core.errors import InputError  # noqa: E402
from diorama.core.frame import Frame  # noqa: E402
from diorama.core.scene import Scene, rng  # noqa: E402

MINE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True))
        self.paint, self.light = nn.Conv2d(4, 3, 1), nn.Conv2d(4, 1, 1)

    def forward(self, x):
        y = self.shared(x)
        return {"shading": self.light(y).exp(), "reflectance": self.paint(y).sigmoid()}

def build():
    torch.manual_seed(0)
    return Net()
"""
FEW = "test='test_scenes(scenes=3, lights=1, samples=2)', negatives='random_scenes(count=12, samples=2)', runs=3"


@pytest.fixture
def made():
    namespace = {}
    exec(MINE, namespace)
    return namespace["build"]()


@pytest.fixture
def network(made):
    return method(made, "mine").for_track("decompose")


def frames(count=2, side=12):
    return [
        Frame(Scene("test", {"i": i}), rng(i, "mine").uniform(0.1, 1, (side, side, 3)).astype(np.float32), "linear", {})
        for i in range(count)
    ]


def test_the_layers_are_told_by_their_names(network):
    answer = network.decompose(frames())
    assert answer.reflectance.shape == (12, 12, 3) and answer.shading.shape == (12, 12, 1)
    assert (answer.shading > 0).all() and (answer.reflectance < 1).all()
    assert network.layers == ("shared", "shared.0", "shared.1", "paint", "light", "output")


def test_activations_are_those_of_the_parts(network, made):
    found = network.features_of(frames(), [("reflectance", ["shared.0", "paint", "output"]), ("shading", ["output"])])
    x = torch.from_numpy(np.stack([f.image for f in frames()]).transpose(0, 3, 1, 2).copy())
    with torch.no_grad():
        inner, answers = made.shared[0](x), made(x)
    flat = [one.permute(0, 2, 3, 1).flatten(1).numpy() for one in (inner, answers["reflectance"], answers["shading"])]
    np.testing.assert_allclose(found[0][0], flat[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[0][2], flat[1], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1][0], flat[2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer", ["shared", "shared.0", "light", "output"])
def test_gradients_are_finite_differences(network, layer):
    (given,), truth = frames(1, 4), np.full((4, 4, 3), 0.7, np.float32)
    found = network.loss_grad([given], "shading", layer, [truth])[0]
    module, chosen = network.module.double(), int(np.abs(found).argmax())
    images, losses = torch.from_numpy(given.linear().transpose(2, 0, 1)[None].astype(np.float64)), []
    for step in (1e-4, -1e-4):

        def nudge(part, given, out, step=step):
            moved = out.permute(0, 2, 3, 1).flatten().clone()
            moved[chosen] += step
            return moved.view(1, 4, 4, -1).permute(0, 3, 1, 2)

        hook = module.get_submodule(layer).register_forward_hook(nudge) if layer != "output" else None
        with torch.no_grad():
            answer = module(images)["shading"]
        if hook:
            hook.remove()
        else:
            answer = answer.clone()
            answer.view(-1)[chosen] += step
        losses.append(float((answer - 0.7).square().mean()))
    assert found[chosen] == pytest.approx((losses[0] - losses[1]) / 2e-4, rel=1e-3)


def test_both_branches_and_all_layers_come_from_one_pass(network):
    passes, (given,) = [], frames(1)
    network.module.register_forward_hook(lambda *call: passes.append(1))
    truth = np.full((12, 12, 3), 0.5, np.float32)
    asked = [("reflectance", ["shared", "paint"]), ("shading", ["shared.0", "light"]), ("shading", ["output"])]
    network.features_of([given], asked)
    assert len(passes) == 1
    found = network.loss_grads_of([given], asked, [[truth]] * 3)
    assert len(passes) == 2 and [len(rows) for rows in found] == [2, 2, 1]
    assert np.array_equal(found[1][0], network.loss_grad([given], "shading", "shared.0", [truth]))


class Odd(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.twice, self.both, self.never = torch.nn.ReLU(), torch.nn.Identity(), torch.nn.ReLU()

    def forward(self, x):
        return self.both((self.twice(x), self.twice(x)))


def test_layers_that_cannot_be_read_are_named(network):
    truth, given = np.full((12, 12, 3), 0.5, np.float32), frames(1)
    odd = method(Odd(), "odd").for_track("decompose")
    for asked, layer, said in (
        (network, "pain", "no layer 'pain'; did you mean 'paint'"),
        (network, "light", "the reflectance does not depend on layer 'light'"),
        (odd, "twice", "layer 'twice' runs 2 times in one pass"),
        (odd, "never", "layer 'never' runs 0 times in one pass"),
        (odd, "both", "layer 'both' gives tuple, not one tensor"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            asked.loss_grad(given, "reflectance", layer, [truth])
        assert "\n" not in str(caught.value)
    three = method(torch.nn.Conv2d(3, 3, 1), "three").for_track("decompose")
    three.module.forward = lambda x: (x, x, x)
    with pytest.raises(InputError, match=r"\(reflectance, shading\), not 3 tensors"):
        three.decompose(given)


@pytest.mark.slow
def test_a_network_of_the_user_s_enters_csm_at_any_layer(tmp_path, diorama):
    (tmp_path / "mine.py").write_text(MINE)
    protocols = [f"csm(layer={layer}, variant=published, p=1.01, {FEW})" for layer in ("shared", "shared.0", "output")]
    protocols.append(f"csm(layer=shared.0, {FEW})")
    asked = [word for protocol in protocols for word in ("-p", protocol)]
    done = diorama("run", "-w", "concepts(scenes=2, images=6, size=16, samples=2)", "-m", "./mine.py:build", *asked,
                   "-n", "2", "-o", "out", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "csm_r" in done.stdout and "log_csm_r" in done.stdout and json.loads(done.stdout)
    wrong = diorama("run", "-w", "concepts(size=16)", "-m", "./mine.py:build", "-p", "csm(layer=pain)", "-n", "1")
    assert wrong.returncode == 2 and "no layer 'pain'; did you mean 'paint'" in wrong.stderr
