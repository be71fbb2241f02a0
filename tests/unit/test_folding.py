"""Folded twins: the same logits and gradients as the original, and no twin where folding would change the network."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from diorama.adapt.classifying import Classifier  # noqa: E402
from diorama.adapt.folding import folded  # noqa: E402
from diorama.core.catalogue import build  # noqa: E402


def with_statistics(net: nn.Module) -> nn.Module:
    """Batch norms that do something: weights, shifts and statistics far from one and zero."""
    generator = torch.Generator().manual_seed(1)
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            for tensor in (part.weight.data, part.bias.data, part.running_mean):
                tensor.copy_(torch.randn(len(tensor), generator=generator))
            part.running_var.copy_(torch.rand(len(part.running_var), generator=generator) * 3 + 0.2)
    return net.eval().requires_grad_(False)


class Plain(nn.Module):
    """Convolution, batch norm, ReLU, transposed convolution, batch norm, head; nothing of it depends on our code."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.up = nn.Sequential(nn.ConvTranspose2d(8, 6, 2, 2), nn.BatchNorm2d(6), nn.ReLU())
        self.head = nn.Linear(6, 5)

    def forward(self, x):
        return self.head(self.up(torch.relu(self.norm(self.first(x)))).mean(dim=(2, 3)))


class UsedTwice(Plain):
    """The output of the first convolution is used beside its batch norm: folding would change the sum."""

    def forward(self, x):
        seen = self.first(x)
        return self.head(self.up(torch.relu(self.norm(seen) + seen)).mean(dim=(2, 3)))


class SharedWeights(Plain):
    """The first convolution runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.again = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.again.weight = self.first.weight
        self.up = nn.Sequential(nn.Conv2d(8, 6, 1), nn.ReLU())

    def forward(self, x):
        return self.head(self.up(self.norm(self.first(x)) + self.again(x)).mean(dim=(2, 3)))


def gradient(net, x, target=1):
    y = x.clone().requires_grad_(True)
    return torch.autograd.grad(net(y)[:, target].sum(), y)[0]


def test_a_twin_gives_the_same_logits_and_gradients_without_batch_norms():
    net = with_statistics(Plain())
    twin = folded(net, 20)
    x = torch.rand(4, 3, 20, 20)
    assert torch.allclose(twin.module(x), net(x), rtol=1e-5, atol=1e-6)
    assert torch.allclose(gradient(twin.module, x), gradient(net, x), rtol=1e-4, atol=1e-7)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in twin.module.modules())
    assert any(isinstance(part, nn.BatchNorm2d) for part in net.modules())  # the original stays as it was
    assert twin.altered == {"first", "up.0", "up.1"} and twin.gradients  # up.1 is written over by the ReLU behind it


def test_the_folded_weights_are_those_of_the_formula():
    net = with_statistics(Plain())
    scale = net.norm.weight / torch.sqrt(net.norm.running_var + net.norm.eps)
    found = folded(net, 20).module.first
    assert torch.allclose(found.weight, net.first.weight * scale[:, None, None, None], rtol=1e-6, atol=1e-7)
    assert torch.allclose(found.bias, net.norm.bias - net.norm.running_mean * scale, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [UsedTwice, SharedWeights])
def test_where_folding_would_change_the_network_it_is_left_as_it_is(kind):
    net = with_statistics(kind())
    twin, x = folded(net, 20), torch.rand(2, 3, 20, 20)
    assert twin is None or torch.allclose(twin.module(x), net(x), rtol=1e-5, atol=1e-6)
    assert twin is None or "first" not in twin.altered


class OfItsImage(Plain):
    """A ReLU takes the image itself, which nothing may write over."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, x):
        return super().forward(self.relu(x)) + x.mean(dim=(1, 2, 3))[:, None]


class UsedAfterReLU(Plain):
    """What the ReLU takes is used again afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, x):
        seen = self.norm(self.first(x))
        return self.head(self.up(self.relu(seen) + 0.5 * seen).mean(dim=(2, 3)))


class Forgetful(Plain):
    """The same numbers without its batch norm, but hardly any gradient."""

    def forward(self, x):
        return super().forward(x if isinstance(self.norm, nn.BatchNorm2d) else x.detach() + 0 * x)


def test_relus_write_over_what_was_made_for_them_and_nothing_else():
    twin = folded(with_statistics(Plain()), 20)
    assert twin.module.up[2].inplace and "up.1" in twin.altered
    net = with_statistics(OfItsImage())
    twin, x = folded(net, 20), torch.rand(2, 3, 20, 20) - 0.5
    before = x.clone()
    with torch.no_grad():
        assert torch.allclose(twin.module(x), net(x), rtol=1e-5, atol=1e-6)
    assert torch.equal(x, before) and not twin.module.relu.inplace and twin.module.up[2].inplace


def test_where_a_relu_may_not_write_the_twin_has_none_that_does():
    net = with_statistics(UsedAfterReLU())
    twin, x = folded(net, 20), torch.rand(2, 3, 20, 20)
    assert not any(part.inplace for part in twin.module.modules() if isinstance(part, nn.ReLU))
    assert twin.altered == {"first", "up.0"} and twin.gradients
    assert torch.allclose(twin.module(x), net(x), rtol=1e-5, atol=1e-6)
    assert torch.allclose(gradient(twin.module, x), gradient(net, x), rtol=1e-4, atol=1e-7)


def deep(layers=60, width=24):
    """So many layers that the last bit of some activation decides on its side of a ReLU in every image."""
    torch.manual_seed(0)
    body = [nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    for _ in range(layers):
        body += [nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
    net = nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 5))
    with torch.no_grad():
        for _ in range(30):
            net.train()(torch.rand(8, 3, 32, 32))  # statistics as a trained network has them
    return net.eval().requires_grad_(False)


@pytest.mark.slow
def test_a_deep_twin_serves_gradients_where_it_is_as_exact_as_the_original():
    net, x = deep(), torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(3))
    twin = folded(net, 32)
    exact = gradient(copy.deepcopy(net).double(), x.double())

    def off(found):
        return float(np.sqrt(np.mean([((a - b).norm() / b.norm()) ** 2 for a, b in zip(found, exact, strict=True)])))

    apart = [
        (a - b).abs().max() / b.abs().max() for a, b in zip(gradient(twin.module, x), gradient(net, x), strict=True)
    ]
    assert np.median(apart) > 1e-4  # gradients do differ here
    assert twin.gradients and off(gradient(twin.module, x)) < 4 * off(gradient(net, x))


def test_a_twin_with_other_gradients_serves_forward_passes_only():
    net = with_statistics(Forgetful())
    twin = folded(net, 20)
    assert twin is not None and not twin.gradients and twin.serves() and not twin.serves(gradients=True)


def test_a_network_without_batch_norms_or_with_norms_in_training_has_no_twin():
    assert folded(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()).eval(), 8) is None
    assert folded(with_statistics(Plain()).train(), 20) is None


def test_a_layer_that_was_folded_is_looked_at_in_the_original():
    """Grad-CAM at a convolution with a batch norm behind it, by captum on the untouched network."""
    from captum.attr import LayerGradCam

    net = with_statistics(Plain())
    model = Classifier(net, "plain", 20)
    assert "first" in model.folded.altered
    images = np.random.default_rng(0).random((2, 20, 20, 3), np.float32)
    found = build("method", "grad_cam(layer=first, relu=False)").object.explain(model, images, np.array([1, 2]))
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    expected = LayerGradCam(net, net.first).attribute(x, target=torch.tensor([1, 2]))
    for answer, map_ in zip(found, expected, strict=True):
        assert np.allclose(answer.values.squeeze(), map_.squeeze().detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["birds_cnn", "birds_resnet", "birds_vgg"])
def test_bundled_networks_have_a_twin_that_agrees_on_birds(name):
    model, world = build("model", name).object, build("world", "birds").object
    images = np.stack([f.srgb() for f in world.render([world.scene_at(3, i)[1] for i in range(4)])])
    x = torch.from_numpy(images).permute(0, 3, 1, 2)
    with torch.no_grad():
        expected = model.module(x)
    assert model.folded is not None and model.folded.gradients
    assert np.allclose(model.logits(images), expected.numpy(), rtol=1e-5, atol=1e-5 * float(expected.abs().max()))
    ours, theirs = gradient(model.folded.module, x), gradient(model.module, x)
    assert float((ours - theirs).abs().max() / theirs.abs().max()) < 1e-4


def test_a_method_that_writes_into_the_twin_is_found(tmp_path):
    from diorama.core.errors import AnswerError
    from diorama.core.watch import undisturbed

    component = build("model", "birds_resnet")
    weight = next(component.object.folded.module.parameters())
    before = weight.clone()
    with pytest.raises(AnswerError, match="changed shared state"), undisturbed("mine", component.watch, "x"):
        weight.add_(1.0)
    assert torch.equal(weight, before)


def decomposer():
    """A bundled decomposition network with batch norms, and a frame."""
    from diorama.worlds.mondrian import Mondrian

    world = Mondrian(size=64)
    return build("method", "iid_supervised").object, world.render([world.sample(np.random.default_rng(0))])[0]


class Halves(nn.Module):
    """A decomposition network of a user's: two layers from one convolution and batch norm."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = nn.Conv2d(3, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2)

    def forward(self, x):
        found = self.norm(self.first(x)).exp()
        return {"reflectance": found[:, :1], "shading": found[:, 1:]}


class Codes(nn.Module):
    """An encoder of a user's that is asked by `encode`, and gives means and log-variances."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = nn.Conv2d(3, 6, 4, 4, bias=False), nn.BatchNorm2d(6)

    def encode(self, x):
        found = torch.tanh(self.norm(self.first(x))).mean(dim=(2, 3))
        return found[:, :3], found[:, 3:]


def test_decomposers_and_encoders_answer_through_twins_that_give_the_same():
    from diorama.adapt.encoders import Network

    frame = decomposer()[1]
    split, encode = with_statistics(Halves()), with_statistics(Codes())
    splits, encodes = Network(split).for_track("decompose"), Network(encode).for_track("represent")
    layers, codes = splits.decompose([frame]), encodes.encode([frame])
    for asked in (splits, encodes):
        (twin,) = asked.twins.values()
        assert twin is not None and isinstance(twin.module.norm, nn.Identity)
    linear = torch.from_numpy(frame.linear().astype(np.float32)).permute(2, 0, 1)[None]
    found = split(linear)["reflectance"][0, 0].numpy()
    np.testing.assert_allclose(layers.reflectance[..., 0], found, rtol=1e-5)
    shown = torch.from_numpy(frame.srgb()).permute(2, 0, 1)[None]
    np.testing.assert_allclose(codes, encode.encode(shown)[0].numpy(), rtol=1e-4, atol=1e-6)


def test_a_bundled_decomposition_network_passes_once_through_its_twin():
    method, frame = decomposer()
    calls, own = [], []
    method.twin.module.register_forward_hook(lambda *_: calls.append(1))
    method.module.register_forward_hook(lambda *_: own.append(1))
    found = method.decompose([frame])
    assert (len(calls), len(own)) == (1, 0)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in method.twin.module.modules())
    with torch.no_grad():
        for branch in method.branches:
            expected = method.layer_of(frame, branch)[0].permute(1, 2, 0).numpy()
            difference = np.abs(getattr(found, branch) - expected).max()
            assert difference <= 1e-4 * np.abs(expected).max()
