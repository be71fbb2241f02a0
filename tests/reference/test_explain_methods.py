"""Every explanation method: in closed form on a linear net, against slow loops, captum, zennit and lime; and its manners."""

import importlib
import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="torch is not installed (pip install 'diorama[torch]')")

import torch

from diorama.adapt.classifying import adapt
from diorama.adapt.methods import explain
from diorama.adapt.torchvision_ops import make_importable
from diorama.core.answers import Heatmap, Mask, check_answer
from diorama.core.catalogue import build, entries
from diorama.core.errors import InputError
from diorama.core.scene import rng
from diorama.methods.explain.passes import OnHost, batches
from tests.reference import explain_loops
from tests.tiny_models import Linear, Tiny

GRADIENTS = (
    "input_x_gradient",
    "saliency",
    "smoothgrad(samples=4)",
    "integrated_gradients(steps=4)",
    "integrated_gradients_abs(steps=4)",
    "integrated_gradients_acm(steps=4)",
    "grad_cam",
    "grad_cam_acm",
)
SAMPLED = ("rise(masks=60)", "occlusion", "lime(samples=60)", "lime_acm(samples=60)")
ALL = (*GRADIENTS, *SAMPLED, "lrp")
TARGETS = [3, 1, 4, 1]


def method(spec):
    """The method of a spec; skips where its library is not installed."""
    for name, library in (("lime", "skimage"), ("lrp", "zennit")):
        if spec.startswith(name) and importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed (pip install 'diorama[{name}]')")
    return build("method", spec).object


def maps(spec, model, images, targets=TARGETS):
    return np.stack([answer.values for answer in explain(method(spec), model, images, np.array(targets))])


@pytest.fixture(scope="module")
def images():
    """Smooth random images: superpixels need something to hold on to."""
    coarse = np.random.default_rng(0).random((4, 8, 8, 3), np.float32)
    return np.ascontiguousarray(coarse.repeat(8, axis=1).repeat(8, axis=2))


@pytest.fixture(scope="module")
def linear():
    """A linear model and its weights (4, h, w, 3) for TARGETS."""
    model = Linear()
    return model, model.module[1].weight.numpy()[TARGETS].reshape(4, 3, 64, 64).transpose(0, 2, 3, 1)


def test_the_catalogue_lists_every_method_with_a_line_and_a_reference():
    names = {name.rpartition("/")[2] for name in entries("method") if name.startswith("explain/")}
    assert names >= {spec.partition("(")[0] for spec in ALL} | {"captum", "random"}
    for spec in ALL:
        component = build("method", spec)
        assert component.object.cite, spec


def test_linear_gradients_are_the_weights(images, linear):
    model, weight = linear
    assert np.allclose(maps("saliency", model, images), np.abs(weight), atol=1e-5)
    assert np.allclose(maps("saliency(channels=max)", model, images)[..., 0], np.abs(weight).max(3), atol=1e-5)
    assert np.allclose(maps("smoothgrad", model, images), np.abs(weight), atol=1e-4)
    assert np.allclose(maps("smoothgrad(absolute=False)", model, images), weight, atol=1e-4)
    assert np.allclose(maps("input_x_gradient(absolute=True)", model, images), np.abs(images * weight), atol=1e-5)
    assert np.allclose(maps("integrated_gradients_abs", model, images), np.abs(images * weight), atol=1e-5)
    summed = (images * weight).sum(axis=3)
    assert np.allclose(maps("integrated_gradients_acm", model, images)[..., 0], summed, atol=1e-4)


def test_linear_occlusion_is_the_mean_of_the_window_sums(images, linear):
    model, weight = linear
    found = maps("occlusion(window=8, stride=8, baseline=0.5)", model, images)
    drops = ((images - 0.5) * weight).sum(axis=3).reshape(4, 8, 8, 8, 8).sum(axis=(2, 4))
    assert np.allclose(found, drops.repeat(8, axis=1).repeat(8, axis=2), atol=1e-3)


def test_linear_lime_finds_the_sum_of_each_superpixel(images, linear):
    model, weight = linear
    lime = method("lime_acm(output=logit, ridge=1e-6, features=1000)")
    (answer,) = lime.explain_targets(model, images[0], [TARGETS[0]])
    segments = lime.segments(images[0])
    sums = np.bincount(segments.ravel(), (images * weight)[0].sum(axis=2).ravel())
    assert np.allclose(answer.values, sums[segments], atol=1e-2 * np.abs(sums).max())


def test_linear_rise_approaches_its_expectation(images, linear):
    """E[f(x·m) m] = p·Σw·x·p + covariance of a cell with itself: with w·x constant the map is flat up to its error."""
    model, _ = linear
    rise = method("rise(masks=400, keep=0.5)")
    estimate = rise.estimates(model, np.zeros_like(images[0]), [3])[0]
    assert (estimate.mean == 0).all() and estimate.masks == 400
    half, whole = (method(f"rise(masks={n})").estimates(model, images[0], [3])[0] for n in (200, 800))
    assert np.median(half.error / whole.error) == pytest.approx(
        2, rel=0.2
    )  # the error falls with the root of the number
    other = method("rise(masks=800, seed=1)").estimates(model, images[0], [3])[0]
    z = (whole.mean - other.mean) / np.hypot(whole.error, other.error)
    assert 0.5 < np.sqrt(np.mean(z**2)) < 2  # two seeds differ by as much as the errors say


def test_linear_relevance_is_the_share_of_the_logit(images, linear):
    model, weight = linear
    found = maps("lrp(first=same, epsilon=0, start=one)", model, images)
    share = images * weight
    assert np.allclose(found, share / share.sum(axis=(1, 2, 3), keepdims=True), atol=1e-4 * np.abs(found).max())


@pytest.mark.parametrize("ours", ["integrated_gradients", "captum(name=IntegratedGradients)"])
def test_bias_free_network_integrated_gradients_equal_input_x_gradient(images, ours):
    model = Tiny(bias=False)
    ixg = maps("input_x_gradient", model, images)
    assert np.allclose(maps(ours, model, images), ixg, atol=1e-4 * np.abs(ixg).max())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("input_x_gradient", "captum(name=InputXGradient)"),
        ("saliency", "captum(name=Saliency)"),
        ("integrated_gradients(steps=7)", "captum(name=IntegratedGradients, options={'n_steps': 7})"),
        ("occlusion", "captum(name=Occlusion, options={'sliding_window_shapes': (3, 16, 16), 'strides': (3, 8, 8)})"),
        (
            "occlusion(window=10, stride=7)",
            "captum(name=Occlusion, options={'sliding_window_shapes': (3, 10, 10), 'strides': (3, 7, 7)})",
        ),
    ],
)
def test_equal_to_captum(images, ours, theirs):
    pytest.importorskip("captum", reason="captum is not installed (pip install 'diorama[torch]')")
    found, expected = maps(ours, Tiny(), images), maps(theirs, Tiny(), images)
    expected = expected[..., 0] if found.ndim == 3 else expected
    assert np.allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("relu", [True, False])
def test_grad_cam_is_captums(images, relu):
    attr = pytest.importorskip("captum.attr", reason="captum is not installed (pip install 'diorama[torch]')")
    model = Tiny()
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).requires_grad_(True)
    coarse = attr.LayerGradCam(model.module, model.module.conv).attribute(x, TARGETS, relu_attributions=relu)
    for mode in ("nearest", "bilinear"):
        expected = attr.LayerAttribution.interpolate(coarse, (64, 64), mode).detach().numpy()[:, 0]
        answers = explain(method(f"grad_cam(upsample={mode}, relu={relu})"), model, images, np.array(TARGETS))
        assert all(a.signed is not relu for a in answers)
        assert np.allclose([a.values[..., 0] for a in answers], expected, atol=1e-5)


def test_the_shift_of_grad_cam_reaches_0_and_1_and_leaves_a_zero_map_alone(images):
    shifted = maps("grad_cam_acm", Tiny(), images)
    plain = maps("grad_cam_acm(shift=False)", Tiny(), images)
    low, high = plain.min(axis=(1, 2, 3), keepdims=True), plain.max(axis=(1, 2, 3), keepdims=True)
    assert np.allclose(shifted, (plain - low) / (high - low), atol=1e-6)
    dark = Tiny()
    dark.module.head.weight.zero_()
    assert not maps("grad_cam_acm", dark, images).any()


def test_rise_equals_the_loop(images):
    pytest.importorskip("skimage", reason="scikit-image is not installed (pip install 'diorama[lime]')")
    model, rise = Tiny(), method("rise(masks=60, cells=5, keep=0.3)")
    cells = rise.generator("cells").random((60, 5, 5)) < 0.3
    shifts = np.stack([rise.generator(way).integers(0, 13, 60) for way in ("down", "right")], axis=1)
    for target in (0, 7):
        logit = lambda image, t=target: float(model.logits(image[None])[0, t])  # noqa: E731
        mean, error = explain_loops.rise(logit, images[0], cells, shifts, 0.3)
        estimate = rise.estimates(model, images[0], [target])[0]
        assert np.allclose(estimate.mean, mean, atol=1e-4 * np.abs(mean).max())
        assert np.allclose(estimate.error, error, atol=1e-3 * error.max())
        assert np.array_equal(rise.standard_error(model, images[0], target), estimate.error)


def test_rise_stops_on_its_standard_error_target_by_target(images):
    model = Tiny()
    full = method("rise(masks=900)").estimates(model, images[0], [0, 7, 30])
    limit = sorted(e.share for e in full)[1] * 1.2
    stopping = method(f"rise(masks=900, stop={limit})")
    together = stopping.estimates(model, images[0], [0, 7, 30])
    assert min(e.masks for e in together) < 900 and all(e.masks == 900 or e.share <= limit for e in together)
    for target, estimate in zip([0, 7, 30], together, strict=True):
        alone = stopping.estimates(model, images[0], [target])[0]
        assert alone.masks == estimate.masks and np.array_equal(alone.mean, estimate.mean)


def test_a_rise_map_says_how_exact_it_is(images):
    (answer,) = method("rise(masks=60)").explain_targets(Tiny(), images[0], [0])
    share = method("rise(masks=60)").estimates(Tiny(), images[0], [0])[0].share
    bound = float(answer.note.split("%")[0].split()[-1]) / 100
    assert share <= bound <= 3 * share


@settings(deadline=None, max_examples=20)
@given(grid=st.integers(2, 9), height=st.integers(8, 40), width=st.integers(8, 40), seed=st.integers(0, 5))
def test_masks_have_the_right_size_and_range_and_no_number_depends_on_the_others(grid, height, width, seed):
    rise = method(f"rise(cells={grid}, keep=0.5, seed={seed})")
    masks = rise.some_masks(range(30), (height, width))
    assert masks.shape == (30, height, width) and masks.min() >= -1e-6 and masks.max() <= 1 + 1e-6
    assert np.array_equal(rise.some_masks(range(10, 14), (height, width)), masks[10:14])


def test_occlusion_equals_the_loop(images):
    model = Tiny()
    logit = lambda image: float(model.logits(image[None])[0, 3])  # noqa: E731
    found = maps("occlusion(window=20, stride=12, baseline=0.3)", model, images[:1], [3])[0]
    assert np.allclose(found, explain_loops.occlusion(logit, images[0], 20, 12, 0.3), atol=1e-4)


@pytest.mark.filterwarnings("ignore")  # the lime package is of 2021
def test_lime_has_the_weights_of_the_lime_package(images):
    lime_image = pytest.importorskip("lime.lime_image", reason="lime is not installed (pip install lime)")
    model, ours = Tiny(), method("lime(samples=200)")
    segments, image = ours.segments(images[0]), images[0].astype(np.float64)
    shown = ours.shown_in(images[0], segments.max() + 1)
    explainer = lime_image.LimeImageExplainer()
    explainer.data_labels = lambda *_, **__: (
        shown,
        ours.outputs_of(OnHost(model), images[0], segments, shown, range(50)),
    )
    theirs = explainer.explain_instance(image, None, labels=(0, 7), top_labels=None, segmentation_fn=lambda _: segments)
    signed = method("lime_acm(samples=200)").explain_targets(model, images[0], [0, 7])
    masks = ours.explain_targets(model, images[0], [0, 7])
    for label, heat, mask in zip((0, 7), signed, masks, strict=True):
        ranked = theirs.local_exp[label]
        expected = np.zeros(segments.max() + 1)
        for feature, weight in ranked[:6]:
            expected[feature] = weight
        assert np.allclose(heat.values, expected[segments], atol=1e-6) and heat.signed
        assert np.array_equal(mask.values, theirs.get_image_and_mask(label)[1] == 1)


@pytest.mark.filterwarnings("ignore")
def test_lime_hides_what_the_lime_package_hides(images):
    lime_image = pytest.importorskip("lime.lime_image", reason="lime is not installed (pip install lime)")
    model, ours = Tiny(), method("lime(samples=20)")
    segments = ours.segments(images[0])
    shown = ours.shown_in(images[0], segments.max() + 1)

    class Fixed:
        def randint(self, *_):
            return shown.ravel().copy()

    explainer = lime_image.LimeImageExplainer()
    explainer.random_state = Fixed()
    _, expected = explainer.data_labels(
        images[0], np.zeros_like(images[0]), segments, lambda x: torch.softmax(torch.from_numpy(model.logits(x)), 1), 20
    )
    assert np.allclose(
        ours.outputs_of(OnHost(model), images[0], segments, shown, range(50)), np.stack(expected), atol=1e-6
    )


@pytest.mark.filterwarnings("ignore")
def test_lime_has_the_superpixels_of_the_lime_package_on_flat_pictures():
    """Toon pictures are flat: in single precision quickshift splits them into about twice as many pieces."""
    lime_image = pytest.importorskip("lime.lime_image", reason="lime is not installed (pip install lime)")
    ours = method("lime(seed=42)")  # the package leaves scikit-image's own seed, 42
    world, even = build("world", "birds").object, np.full((10, 50), 0.02)
    for frame in world.render([world.sample(rng("flat", i)) for i in range(3)]):
        image = frame.image
        theirs = lime_image.LimeImageExplainer().explain_instance(
            image.astype(np.float64), lambda x: even[: len(x)], num_samples=2
        )
        assert np.array_equal(ours.segments(image), theirs.segments)


def test_lime_marks_at_most_so_many_superpixels_and_none_that_speak_against(images):
    lime = method("lime(samples=100, features=3)")
    for answer in lime.explain_targets(Tiny(), images[0], list(range(10))):
        assert isinstance(answer, Mask) and len(np.unique(lime.segments(images[0])[answer.values])) <= 3
    flipped = lime.answer_of(-np.ones(lime.segments(images[0]).max() + 1), lime.segments(images[0]))
    assert not flipped.values.any()


def relevance_network(seed, normed):
    """Two convolutions and a linear layer without biases, small enough for explicit Jacobians; or with batch norms."""
    torch.manual_seed(seed)
    norms = [torch.nn.BatchNorm2d(4), torch.nn.BatchNorm2d(4)] if normed else []
    block = explain_loops.Residual(torch.nn.Conv2d(4, 4, 3, padding=1, bias=False), *norms[1:])
    layers = [
        torch.nn.Conv2d(3, 4, 3, 2, bias=False),
        *norms[:1],
        torch.nn.ReLU(),
        *([block, torch.nn.ReLU()] if normed else []),
        torch.nn.Conv2d(4, 5, 3, bias=False),
        torch.nn.ReLU(),
        torch.nn.AvgPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(5, 6, bias=False),
    ]
    for norm in norms:
        for tensor, low, high in ((norm.weight, -1.5, 1.5), (norm.running_var, 0.3, 2), (norm.bias, -1, 1)):
            torch.nn.init.uniform_(tensor, low, high)
        torch.nn.init.uniform_(norm.running_mean, -1, 1)
    return torch.nn.Sequential(*layers).double().eval().requires_grad_(False)


class Wrapped:
    """A torch module as a model."""

    def __init__(self, module):
        self.module, self.folded = module, None


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_relevance_equals_the_rules_written_out(seed, normed):
    net = relevance_network(seed, normed)
    image = np.random.default_rng(seed).random((1, 9, 9, 3))
    x = torch.from_numpy(image).permute(0, 3, 1, 2)
    expected = explain_loops.relevance([*net], x, 2, 0.25)[0].permute(1, 2, 0).numpy()
    found = maps("lrp", Wrapped(net), image, [2])[0]
    assert np.allclose(found, expected, atol=1e-3 * np.abs(expected).max())


FLAT = "lrp(first=flat, epsilon=1e-6, stabiliser=signed, batch_norm=merged)"


def zennit_relevance(net, x, targets, canonizers):
    """zennit's own composite and attributor, biases left out."""
    from zennit.attribution import Gradient
    from zennit.composites import EpsilonPlusFlat

    with Gradient(net, EpsilonPlusFlat(zero_params="bias", canonizers=canonizers)) as attributor:
        logits = net(x)
        start = torch.zeros_like(logits)
        start[range(len(targets)), targets] = logits.detach()[range(len(targets)), targets]
        return attributor(x, start)[1].detach().permute(0, 2, 3, 1).numpy()


def test_relevance_equals_zennit_on_its_own_ground(images):
    method("lrp")
    model = Tiny()
    found = maps(FLAT, model, images)
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    assert np.allclose(found, zennit_relevance(model.module, x, TARGETS, None), atol=1e-4 * np.abs(found).max())


def test_residual_sums_are_found_without_being_named(images):
    method("lrp")
    make_importable()
    import torchvision
    import zennit.torchvision

    torch.manual_seed(0)
    net = torchvision.models.resnet18().double().eval().requires_grad_(False)
    x = torch.from_numpy(images[:2].astype(np.float64).transpose(0, 3, 1, 2).copy())
    expected = zennit_relevance(net, x, TARGETS[:2], [zennit.torchvision.ResNetCanonizer()])
    found = maps(FLAT, Wrapped(net), images[:2].astype(np.float64), TARGETS[:2])
    assert np.allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def bias_free(net):
    """A network whose batch norms scale and do not shift, so that no relevance can go to a bias."""
    for m in net.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(m.weight, 0.5, 1.5)
            torch.nn.init.zeros_(m.bias)
            torch.nn.init.zeros_(m.running_mean)
            torch.nn.init.uniform_(m.running_var, 0.5, 1.5)
        if isinstance(m, torch.nn.Linear):
            torch.nn.init.zeros_(m.bias)
    return net.eval().requires_grad_(False)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_epsilon_rule_with_biases_is_input_x_gradient(seed):
    """Ancona et al. 2018: so it is in a network of ReLUs, whatever its convolutions' biases, here those of batch norms."""
    net = relevance_network(seed, normed=True)
    for m in net.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.eps = 0.0  # zennit keeps it beside the merged layer
    image = np.random.default_rng(seed).random((1, 9, 9, 3))
    rules = "first=same, conv=epsilon, epsilon=1e-9, stabiliser=signed"
    found = maps(f"lrp({rules}, batch_norm=merged)", Wrapped(net), image, [2])
    expected = maps("input_x_gradient", Wrapped(net), image, [2])
    assert np.allclose(found, expected, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["birds_cnn", "birds_vgg", "birds_resnet"])
@pytest.mark.parametrize("first", ["box", "flat", "same"])
def test_relevance_is_conserved(name, first):
    from diorama.models.birds.networks import network

    torch.manual_seed(1)
    net = bias_free(network(name, 50))
    images = np.random.default_rng(0).random((2, 64, 64, 3), np.float32)
    with torch.no_grad():
        logits = net(torch.from_numpy(images).permute(0, 3, 1, 2)).numpy()
    targets = logits.argmax(1)  # far from 0, where a share of the logit is well defined
    found = maps(f"lrp(first={first}, epsilon=1e-6, stabiliser=signed)", Wrapped(net), images, targets)
    assert np.allclose(found.sum(axis=(1, 2, 3)), logits[[0, 1], targets], rtol=2e-3)


def test_relevance_is_nearly_conserved_on_the_bundled_network():
    model = build("model", "birds_cnn").object
    images = np.random.default_rng(0).random((2, 128, 128, 3), np.float32)
    targets = model.logits(images).argmax(1)
    found = maps(FLAT, model, images, targets)
    assert np.allclose(found.sum(axis=(1, 2, 3)), model.logits(images)[[0, 1], targets], rtol=0.05)


def _clone(module, x, target):
    x = x.clone().requires_grad_()
    module(x).gather(1, target[:, None]).sum().backward()
    return x.grad * x


def _own_flag(module, x, target):
    x.requires_grad = True
    module(x).gather(1, target[:, None]).sum().backward()
    return x.grad * x


def _at_x(module, x, target):
    return x * torch.autograd.grad(module(x).gather(1, target[:, None]).sum(), x)[0]


def _as_arrays(module, x, target):
    seen, flat = x.numpy().copy(), x.view(len(x), -1).clone().requires_grad_()
    (found,) = torch.autograd.grad(module(flat.view(x.shape)).gather(1, target[:, None]).sum(), flat)
    return seen * found.view(x.shape).numpy()


@pytest.mark.parametrize("function", [_clone, _own_flag, _at_x, _as_arrays])
def test_a_users_function_may_treat_x_as_it_likes(function, images):
    found = np.stack([a.values for a in explain(function, Tiny(), images, np.array(TARGETS))])
    assert np.allclose(found, maps("input_x_gradient", Tiny(), images), atol=1e-6)


def test_a_failure_within_a_users_function_stays_what_it_was(images):
    def wrong(module, x, target):
        raise RuntimeError("no such thing")

    with pytest.raises(RuntimeError, match="no such thing"):
        explain(wrong, Tiny(), images, np.array(TARGETS))


class Viewing(torch.nn.Module):
    """Views its weights as B-cos layers do, or its activations as many classifiers do."""

    def __init__(self, what):
        super().__init__()
        torch.manual_seed(0)
        self.what, self.conv, self.head = what, torch.nn.Conv2d(3, 4, 3, stride=2), torch.nn.Linear(4 * 15 * 15, 5)

    def forward(self, x):
        weight = self.conv.weight
        if self.what == "weights":
            weight = weight / weight.view(4, -1).norm(dim=1).view(4, 1, 1, 1)
        if self.what == "memory":  # right only where a filter lies in one piece
            weight = torch.as_strided(weight, weight.shape, (27, 9, 3, 1))
        y = torch.relu(torch.nn.functional.conv2d(x, weight, self.conv.bias, 2))
        return self.head(y.view(len(y), -1) if self.what == "activations" else y.flatten(1))


@pytest.mark.parametrize("what", ["weights", "activations", "memory", "nothing"])
def test_a_module_that_cannot_take_channels_last_is_kept_as_it_is(what):
    net = Viewing(what).eval()
    net.size = 32
    images = np.random.default_rng(0).random((3, 32, 32, 3), np.float32)
    with torch.no_grad():
        expected = net(torch.from_numpy(images.transpose(0, 3, 1, 2).copy())).numpy()
    model = adapt(net, "net")
    assert np.allclose(model.logits(images), expected, atol=1e-5)
    assert model.module.conv.weight.is_contiguous() is (what != "nothing")
    assert np.isfinite(maps("integrated_gradients(steps=2)", model, images, [0, 1, 2])).all()


@pytest.mark.parametrize("spec", ALL)
def test_a_map_is_a_function_of_image_and_target(spec, images):
    """Whatever stands beside it, in whatever order, padded or alone; and a second time."""
    model = Tiny()
    whole = maps(spec, model, images)
    assert np.array_equal(maps(spec, model, images), whole)
    order = [2, 0, 3, 1]
    assert np.array_equal(maps(spec, model, images[order], [TARGETS[i] for i in order]), whole[order])
    padded = maps(spec, model, np.concatenate([images[:2], images[[1, 1]]]), [3, 1, 1, 1])
    assert np.array_equal(padded[:2], whole[:2])
    alone = maps(spec, model, images[3:], TARGETS[3:])[0]
    assert np.allclose(alone, whole[3], atol=1e-5 * max(np.abs(whole[3]).max(), 1e-3))  # other batch, other last bits


@pytest.mark.parametrize("spec", SAMPLED)
def test_all_targets_come_from_one_set_of_passes(spec, images):
    class Counting(Tiny):
        passed = 0

        def logits(self, images):
            self.passed += len(images)
            return super().logits(images)

    model, one = Counting(), Counting()
    answers = method(spec).explain_targets(model, images[0], [3, 0, 49])
    (single,) = method(spec).explain_targets(one, images[0], [0])
    assert model.passed == one.passed and np.array_equal(answers[1].values, single.values)
    model.passed = 0
    same = maps(spec, model, np.stack([images[0]] * 3), [3, 0, 49])
    assert model.passed == one.passed and np.array_equal(same, [a.values for a in answers])


@pytest.mark.parametrize("spec", ["rise(masks=60)", "lime(samples=60)", "smoothgrad(samples=3)"])
def test_the_seed_matters(spec, images):
    other = spec[:-1] + ", seed=1)"
    signed = spec.replace("lime", "lime_acm"), other.replace("lime", "lime_acm")
    first, second = (maps(s, Tiny(), images) for s in signed)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("spec", ALL)
@pytest.mark.parametrize("trainable", [False, True])
def test_a_model_is_left_as_it_was(spec, images, trainable):
    model = Tiny()
    model.module.conv = torch.nn.Sequential(model.module.conv, torch.nn.BatchNorm2d(8))
    model.module.eval().requires_grad_(trainable)
    before = {name: (t, t.clone()) for name, t in model.module.state_dict(keep_vars=True).items()}
    given = images.copy()
    for answer in explain(method(spec), model, given, np.array(TARGETS)):
        check_answer(answer, (64, 64))
    assert np.array_equal(given, images)
    after = model.module.state_dict(keep_vars=True)
    assert list(after) == list(before) and all(after[n] is t for n, (t, _) in before.items())
    assert all(torch.equal(after[n], value) for n, (_, value) in before.items())
    assert not model.module.training and torch.is_grad_enabled()
    assert all(p.requires_grad is trainable and p.grad is None for p in model.module.parameters())
    for m in model.module.modules():
        assert not (m._forward_hooks or m._forward_pre_hooks or m._backward_hooks or m._backward_pre_hooks)


@pytest.mark.parametrize("spec", ["grad_cam", "lrp"])
def test_hooks_go_away_when_the_model_fails(spec, images):
    class Failing(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("no")

    model = Tiny()
    model.module.append(Failing())
    with pytest.raises(RuntimeError, match="no"):
        maps(spec, model, images)
    assert all(not (m._forward_hooks or m._forward_pre_hooks) for m in model.module.modules())
    assert torch.overrides._get_current_function_mode_stack() == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("grad_cam(layer=cnv)", "has no layer 'cnv'; did you mean 'conv'"),
        ("grad_cam(layer=head)", r"layer 'head' gives \(4, 50\), not feature maps"),
    ],
)
def test_grad_cam_refuses_layers_that_do_not_fit(spec, message, images):
    with pytest.raises(InputError, match=message):
        maps(spec, Tiny(), images)


def test_grad_cam_needs_a_layer_and_gradients_need_a_module(images):
    class BlackBox:
        classes, logits = Tiny().classes, staticmethod(Tiny().logits)

    class Nameless(BlackBox):
        module = Tiny().module

    with pytest.raises(InputError, match=r"names no layer for it; give one with grad_cam\(layer=…\)"):
        maps("grad_cam", Nameless(), images)
    for spec in (*GRADIENTS, "lrp"):
        with pytest.raises(InputError, match="BlackBox has no torch module"):
            maps(spec, BlackBox(), images)
    for spec in SAMPLED:
        assert np.array_equal(maps(spec, BlackBox(), images), maps(spec, Tiny(), images))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("integrated_gradients(steps=0)", "steps=0"),
        ("smoothgrad(samples=0)", "samples=0"),
        ("rise(masks=1)", "masks=1"),
        ("rise(keep=1.5)", "keep=1.5"),
        ("rise(stop=0.0)", "stop=0.0"),
        ("occlusion(stride=20)", "stride=20"),
        ("lime(samples=1)", "samples=1"),
        ("lrp(epsilon=-1.0)", "epsilon=-1.0"),
        ("saliency(channels=mean)", "channels='mean' is not one of 'keep', 'sum', 'max'"),
    ],
)
def test_impossible_parameters_are_named_in_one_line(spec, message):
    with pytest.raises(InputError) as caught:
        build("method", spec)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("spec", "library", "extra"), [("lime", "skimage", "lime"), ("lrp", "zennit", "lrp")])
def test_a_missing_library_is_named_with_its_extra(spec, library, extra, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == library else found(name, *a))
    with pytest.raises(InputError, match=rf"^{spec} needs {library}: pip install 'diorama\[{extra}\]'$"):
        build("method", spec)


def test_the_note_of_a_map_is_kept_beside_its_value(tmp_path):
    pytest.importorskip("embreex", reason="the renderer is not installed (pip install 'diorama[render]')")
    from diorama.api import run
    from tests.conftest import REPOSITORY
    from tests.part_files import rows

    model = f"{REPOSITORY}/tests/tiny_models.py:Tiny"
    run(["birds(size=64)"], ["rise(masks=50)"], ["single_deletion"], [model], cases=3, out=tmp_path)
    assert "standard error at most" in str(rows(tmp_path))


def test_batches_depend_on_the_size_only_and_hold_few_large_images():
    assert [len(b) for b in batches(100, (64, 64, 3))] == [50, 50]
    assert max(len(b) for b in batches(100, (2000, 2000, 3))) == 8  # the fewest, which fill an engine's
    assert [k for b in batches(77, (128, 128, 3)) for k in b] == [*range(77)]


def test_torchvision_is_made_importable_once_and_stays_so():
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed (pip install 'diorama[lrp]')")
    make_importable()
    first = importlib.import_module("torchvision")
    make_importable()
    assert importlib.import_module("torchvision") is first and hasattr(first.models, "resnet18")


def test_a_users_file_may_import_torchvision(tmp_path):
    """In a process where nobody has imported it yet."""
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed (pip install 'diorama[lrp]')")
    (tmp_path / "mine.py").write_text("import torchvision\ndef build():\n    return torchvision.models.resnet18()\n")
    ask = f"from diorama.core.catalogue import find; print(find('model', '{tmp_path}/mine.py:build').target)"
    found = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    assert "function build" in found.stdout, found.stderr


def test_a_heat_map_knows_whether_it_is_signed(images):
    signed = {spec: explain(method(spec), Tiny(), images[:1], np.array([3]))[0] for spec in ALL}
    assert {s for s, a in signed.items() if isinstance(a, Heatmap) and not a.signed} == {
        "saliency",
        "smoothgrad(samples=4)",
        "integrated_gradients_abs(steps=4)",
        "grad_cam",
        "grad_cam_acm",
    }


def test_integrated_gradients_and_their_absolute_value_are_made_of_the_same_passes():
    import torch

    from diorama.methods.explain.integrated_gradients import IntegratedGradients
    from diorama.methods.explain.integrated_gradients_abs import IntegratedGradientsAbs

    module, calls = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64, 2)), []
    module.register_forward_hook(lambda *_: calls.append(1))

    class Model:
        folded = None

    Model.module = module
    images, targets = np.random.default_rng(0).random((2, 8, 8, 3), np.float32), np.array([0, 1])
    plain, magnitude = IntegratedGradients(steps=4), IntegratedGradientsAbs(steps=4)
    assert plain.shared == magnitude.shared != IntegratedGradients(steps=5).shared
    passed = plain.passes(Model, images, targets[None])[0]
    first, absolute = plain.maps(passed)[0].values, magnitude.maps(passed)[0].values
    assert len(calls) == 4
    np.testing.assert_array_equal(absolute, np.abs(first))
    with torch.no_grad():
        module[1].weight.mul_(2)
    again = IntegratedGradients(steps=4).explain(Model, images, targets)[0].values
    assert len(calls) == 8
    np.testing.assert_allclose(again, 2 * first, rtol=1e-5)


def counted(module):
    """Forward passes of a module, and gradients that come back to its input, as they happen."""
    seen = {"forward": 0, "backward": 0}

    def hook(_, given, out):
        seen["forward"] += 1
        if out.requires_grad:
            out.register_hook(lambda gradient: seen.update(backward=seen["backward"] + 1))

    module.register_forward_hook(hook)
    return seen


def test_targets_of_an_image_share_the_forward_passes_of_integrated_gradients(images):
    """Steps forward and steps × targets back; every map is what captum makes of that target alone."""
    import torch
    from captum.attr import IntegratedGradients as Captum

    from diorama.methods.explain.integrated_gradients import IntegratedGradients

    model, targets = Tiny(), np.array([[3, 7, 7], [0, 1, 2], [40, 3, 9], [5, 5, 5]])
    seen = counted(model.module)
    model.folded = None
    found = IntegratedGradients(steps=6).passes(model, images[:3], targets)
    assert seen == {"forward": 6, "backward": 6 * 4} and found.shape[:2] == (4, 3)
    x = torch.from_numpy(images[:3]).permute(0, 3, 1, 2)
    for ours, target in zip(found, targets, strict=True):
        theirs = Captum(model.module).attribute(x, target=torch.from_numpy(target), n_steps=6, method="gausslegendre")
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-5 * float(theirs.abs().max()))


def test_a_run_asks_about_all_targets_of_its_images_together(tmp_path):
    """FunnyBirds wants maps of several classes of every bird: the chunk passes forward once a step."""
    import torch

    from diorama.core.plan import Plan
    from diorama.core.run import create, work

    seen = {"forward": 0, "backward": 0}

    def hook(module, given, out):
        if isinstance(module, torch.nn.Conv2d) and module.in_channels == 3 and out.requires_grad:
            seen["forward"] += len(out)
            out.register_hook(lambda gradient: seen.update(backward=seen["backward"] + len(gradient)))

    plan = Plan(["birds"], ["integrated_gradients(steps=3)"], ["funnybirds"], ["birds_cnn"], cases=2)
    run = create(tmp_path / "run", plan)
    _ = run.cells[0].model.object.folded  # whose making passes images, too
    handle = torch.nn.modules.module.register_module_forward_hook(hook)
    try:
        work(run, 0, 1)
    finally:
        handle.remove()
    assert all(row.status != "error" for row in run.rows(run.cells[0]))
    rounds, rest = divmod(seen["backward"], 3 * 8)
    assert seen["forward"] == 3 * 8 and rounds >= 2 and rest == 0
