"""Networks that explain themselves, and captum's further methods: slow loops, sums, homogeneity, what is refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="explanations need torch")

import cv2  # noqa: E402

from diorama.adapt.classifying import Classifier  # noqa: E402
from diorama.adapt.methods import explain  # noqa: E402
from diorama.core.answers import Boxes, Heatmap, Similarity  # noqa: E402
from diorama.core.catalogue import build  # noqa: E402
from diorama.methods.explain.prototypes import high_box  # noqa: E402
from diorama.models.families.bagnet import BagNet  # noqa: E402
from diorama.models.families.bcos import BcosNet, Uncentred  # noqa: E402
from diorama.models.families.protopnet import ProtoPNet  # noqa: E402
from diorama.models.families.xdnn import XNet  # noqa: E402
from diorama.protocols.parts.importance import elements, important_parts, part_importance  # noqa: E402
from tests.tiny_models import Tiny  # noqa: E402

SMALL = {"widths": (4, 6, 8, 8), "counts": (2, 1, 2, 1), "expansion": 2}
TARGETS = (3, 1)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


def random_statistics(net):
    """Weights and batch-norm statistics of a network that has seen something."""
    generator = torch.Generator().manual_seed(0)
    for name, values in net.state_dict().items():
        if name.endswith(("running_var", "square")):
            values.uniform_(0.5, 1.5, generator=generator)
        elif values.ndim < 2 and values.is_floating_point():
            values.normal_(1 if name.endswith("weight") else 0, 0.2, generator=generator)
        elif values.is_floating_point():
            values.normal_(0, (values[0].numel()) ** -0.5, generator=generator)
    return net.eval()


def ask(spec, model, images, targets=TARGETS):
    return explain(build("method", spec).object, model, images, np.array(targets))


@pytest.fixture(scope="module")
def images():
    coarse = np.random.default_rng(0).random((2, 10, 10, 3), np.float32)
    return np.ascontiguousarray(coarse.repeat(4, axis=1).repeat(4, axis=2))


@pytest.mark.parametrize(("kernels", "field"), [((1, 1, 1, 1), 33), ((1, 1, 1, 0), 17), ((2, 1, 0, 0), 13)])
def test_bagnet_s_dense_pass_is_the_loop_over_patches(images, kernels, field):
    """The loop of FunnyBirds: a black border of half a patch, then every patch by itself."""
    model = Classifier(random_statistics(BagNet(5, kernels, 4, **SMALL)), "bag", 40)
    net = model.module
    assert net.field == field
    found = np.stack([a.values for a in ask("bagnet", model, images)])
    half = (field - 1) // 2
    for n, target in enumerate(TARGETS):
        padded = np.pad(images[n], ((half, half), (half, half), (0, 0)))
        patches = np.stack([padded[i : i + field, j : j + field] for i in range(40) for j in range(40)])
        with torch.no_grad():
            logits = net(torch.from_numpy(patches.transpose(0, 3, 1, 2).copy()))[:, target].numpy()
        assert np.abs(found[n].ravel() - logits).max() <= 1e-5 * max(1, np.abs(logits).max())


def test_bagnet_s_logit_is_the_mean_of_its_patches_and_bands_change_nothing(images, monkeypatch):
    net = random_statistics(BagNet(5, (1, 1, 1, 0), 4, **SMALL))
    x, target = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()), torch.tensor(TARGETS)
    with torch.no_grad():
        dense = net.dense(x, target)
        mean = dense[:, :, ::8, ::8].mean((2, 3))  # the network's own grid of patches
        assert torch.allclose(mean, net(x)[:, list(TARGETS)], atol=1e-5)
        monkeypatch.setattr("diorama.models.families.bagnet.BAND", 1.0)
        assert torch.allclose(net.dense(x, target), dense, atol=1e-5)


@pytest.mark.parametrize("norm", [torch.nn.Identity, Uncentred])
def test_b_cos_contributions_sum_to_the_logit_above_its_constant(images, norm):
    net = BcosNet(5, (8, 5), **SMALL, norm=norm, gain=8.0)
    model = Classifier(random_statistics(net), "bcos", 40)
    found = ask("bcos", model, images)
    assert found[0].values.shape == (40, 40, 6)
    above = model.logits(images)[[0, 1], list(TARGETS)] - net.constant
    assert np.allclose([a.values.astype(np.float64).sum() for a in found], above, rtol=1e-3, atol=1e-5)
    assert np.ptp(above) > 1e-3


def test_a_b_cos_unit_is_the_paper_s_formula():
    """‖x‖·|cos|²·sign(cos) / scale for one patch, and of two units the larger."""
    from diorama.models.families.bcos import BcosConv

    torch.manual_seed(0)
    conv, x = BcosConv(3, 2, 3, pair=2).double(), torch.randn(1, 3, 3, 3, dtype=torch.float64)
    units = []
    for w in conv.linear.weight.detach():
        cos = float((w * x[0]).sum() / w.norm() / x.norm())
        units.append(float(x.norm()) * abs(cos) * cos / (3 * 3**0.5 / 100))
    expected = [max(units[:2]), max(units[2:])]
    assert np.allclose(conv(x).detach().ravel().numpy(), expected, rtol=1e-6)


def test_b_cos_weights_are_those_of_the_matrix_and_not_the_whole_gradient():
    """The matrix of a unit is ŵ·|cos| / scale; its gradient has more terms, which add up to the same sum."""
    from diorama.models.families.bcos import BcosConv, fixed_weights

    torch.manual_seed(0)
    conv, x = BcosConv(3, 1, 3, pair=1).double(), torch.randn(1, 3, 3, 3, dtype=torch.float64, requires_grad=True)
    w = conv.linear.weight.detach()[0] / conv.linear.weight.detach().norm()
    cos = (w * x.detach()[0]).sum() / x.detach().norm()
    with fixed_weights():
        (found,) = torch.autograd.grad(conv(x).sum(), x)
    assert torch.allclose(found[0], w * cos.abs() / conv.scale, rtol=1e-6)
    (plain,) = torch.autograd.grad(conv(x).sum(), x)
    assert not torch.allclose(plain, found, rtol=1e-2)


def test_x_dnn_is_homogeneous_and_input_x_gradient_is_integrated_gradients(images):
    model = Classifier(random_statistics(XNet(5, (8, 5), **SMALL)), "x", 40)
    logits = model.logits(images)
    assert np.allclose(model.logits(images * np.float32(0.3)), 0.3 * logits, rtol=1e-4, atol=1e-6)
    own, integrated = (np.stack([a.values for a in ask(s, model, images)]) for s in ("xdnn", "integrated_gradients"))
    assert np.allclose(own, integrated, atol=1e-4 * np.abs(own).max())
    assert np.allclose(own.sum(axis=(1, 2, 3)), logits[[0, 1], list(TARGETS)], rtol=1e-3, atol=1e-6)


class Trunk(torch.nn.Module):
    """A map of 5×5 places."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 6, 8, 8)

    def forward(self, x):
        return torch.relu(self.conv(x))


@pytest.fixture(scope="module", params=["log", "cosine"])
def prototyped(request):
    torch.manual_seed(2)
    return Classifier(ProtoPNet(5, Trunk(), 6, each=3, depth=4, similarity=request.param), "proto", 40)


def released_boxes(net, image, target):
    """FunnyBirds' explain of ProtoPNet, prototype by prototype: masks that end one pixel early, similarity, connection."""
    with torch.no_grad():
        x = torch.from_numpy(image.transpose(2, 0, 1).copy())[None]
        similar, weights = net.similarities(x)[0].numpy(), net.last_layer.weight.numpy()[target]
    for p in range(target * 3, target * 3 + 3):
        large = cv2.resize(similar[p], (40, 40), interpolation=cv2.INTER_CUBIC)
        high = large >= np.percentile(large, 95)
        rows, columns = np.where(high.any(axis=1))[0], np.where(high.any(axis=0))[0]
        mask = np.zeros((40, 40))
        mask[rows[0] : rows[-1], columns[0] : columns[-1]] = 1  # `upper − 1`
        yield mask, similar[p].max(), weights[p], large


def test_prototypes_boxes_give_the_released_importance_and_important_parts(prototyped, images):
    parts = np.zeros((40, 40), int)
    parts[4:20, 6:30], parts[25:36, 10:22], parts[25:36, 28:38] = 1, 2, 3
    seen, t = elements(parts, [(1,), (2, 3)], 5), np.linspace(0.01, 0.5, 80)
    for image, target, answer in zip(images, TARGETS, ask("prototypes", prototyped, images), strict=True):
        assert isinstance(answer, Boxes) and len(answer.weights) == 3
        heat, union = np.zeros((40, 40)), np.zeros((40, 40))
        for mask, similarity, connection, _ in released_boxes(prototyped.module, image, target):
            heat, union = heat + mask * similarity * connection, np.maximum(union, mask)
        expected = [heat[parts == 1].sum(), heat[parts >= 2].sum()]
        assert np.allclose(part_importance(answer, seen, True), expected, rtol=1e-4, atol=1e-4)
        covered = [[3 * union[parts == i].sum() > s * (parts == i).sum() for i in (1, 2, 3)] for s in t]
        found = important_parts(answer, seen, t, True)
        assert found.tolist() == [[a, b or c] for a, b, c in covered]


def test_prototypes_read_as_maps_are_similarities_times_connections(prototyped, images):
    maps, both = (
        ask("prototypes(reading=attribution)", prototyped, images),
        ask("prototypes(reading=similarity)", prototyped, images),
    )
    for image, target, answer, similar in zip(images, TARGETS, maps, both, strict=True):
        expected = sum(c * large for _, _, c, large in released_boxes(prototyped.module, image, target))
        assert isinstance(answer, Heatmap) and np.allclose(answer.values, expected, atol=1e-4)
        assert isinstance(similar, Similarity) and np.array_equal(similar.values, answer.values)


def test_similarity_s_important_parts_are_the_released_average():
    """The share of dilated pixels inside the boxes, whole boxes; the last sub-part overwrites those before."""
    parts = np.zeros((40, 40), int)
    parts[4:20, 6:30], parts[25:36, 10:22], parts[25:36, 28:38] = 1, 2, 3
    seen, t = elements(parts, [(1,), (2, 3)], 5), np.linspace(0.01, 0.5, 80)
    answer = Similarity(np.ones((40, 40), np.float32), np.array([[0, 0, 13, 30], [27, 25, 40, 33]]))
    union = np.zeros((40, 40))
    union[0:30, 0:13], union[25:33, 27:40] = 1, 1
    shares = {}
    for i, name in ((1, "a"), (2, "b"), (3, "b")):
        dilated = cv2.dilate((parts == i).astype(np.uint8), np.ones((5, 5), np.uint8))
        shares[name] = (union * dilated).sum() / dilated.sum()
    expected = [[shares["a"] > s, shares["b"] > s] for s in t]
    assert important_parts(answer, seen, t, True).tolist() == expected
    assert important_parts(answer, seen, t, False).tolist() != expected


def test_the_box_holds_exactly_what_is_above_the_percentile():
    heat = np.random.default_rng(0).random((30, 30))
    x0, y0, x1, y1 = high_box(heat)
    high = np.argwhere(heat >= np.percentile(heat, 95))
    assert [y0, x0] == high.min(axis=0).tolist() and [y1 - 1, x1 - 1] == high.max(axis=0).tolist()


@pytest.mark.parametrize("name", ["bagnet", "bcos", "xdnn", "prototypes"])
def test_other_networks_are_refused_before_the_run(name):
    assert f"{name} needs a" in build("method", name).object.refuses(Tiny(40))
    assert "\n" not in build("method", name).object.refuses(Tiny(40))


@pytest.mark.parametrize("model", [Tiny(40), Classifier(random_statistics(XNet(5, (8, 5), **SMALL)), "x", 40)])
def test_deep_lift_sums_to_the_change_from_black(model, images):
    pytest.importorskip("captum", reason="needs captum")
    found = ask("deep_lift", model, images)
    change = model.logits(images) - model.logits(np.zeros_like(images))
    assert np.allclose([a.values.sum() for a in found], change[[0, 1], list(TARGETS)], rtol=1e-3, atol=1e-4)


def test_deep_lift_refuses_a_network_that_uses_a_relu_twice():
    pytest.importorskip("captum", reason="needs captum")
    resnet = build("model", "torchvision:resnet18(size=64, classes=5)").object
    assert "uses 'net.layer1.0.relu' more than once" in build("method", "deep_lift").object.refuses(resnet)


def test_guided_backprop_stops_what_is_negative_at_every_relu(images):
    """On conv, ReLU, pool, linear: what is positive behind the ReLU, where it was open, goes back through conv."""
    pytest.importorskip("captum", reason="needs captum")
    model = Tiny(40)
    net, x = model.module, torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    with torch.enable_grad():
        hidden = net.conv(x).detach()
        after = hidden.relu().requires_grad_(True)
        logits = net.head(net.flat(net.pool(after)))
        slope = torch.autograd.grad(logits[0, TARGETS[0]] + logits[1, TARGETS[1]], after)[0]
    passed = slope.clamp(min=0) * (hidden > 0)
    expected = torch.nn.functional.conv_transpose2d(passed, net.conv.weight, stride=2, output_padding=1).numpy()
    found = np.stack([a.values for a in ask("guided_backprop", model, images)]).transpose(0, 3, 1, 2)
    assert np.allclose(found, expected, atol=1e-5)
    cam = np.stack([a.values for a in ask("grad_cam", model, images)]).transpose(0, 3, 1, 2)
    both = np.stack([a.values for a in ask("guided_grad_cam", model, images)]).transpose(0, 3, 1, 2)
    assert np.allclose(both, expected * cam, atol=1e-5)


def test_guided_grad_cam_is_captum_s(images):
    attr = pytest.importorskip("captum.attr", reason="needs captum")
    model = Tiny(40)
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).requires_grad_(True)
    with pytest.warns(UserWarning, match="hooks"):
        expected = attr.GuidedGradCam(model.module, model.module.conv).attribute(x, target=torch.tensor(TARGETS))
    found = np.stack([a.values for a in ask("guided_grad_cam", model, images)]).transpose(0, 3, 1, 2)
    assert np.allclose(found, expected.detach().numpy(), atol=1e-5)


def test_shapley_values_are_the_mean_over_all_orders_and_add_up():
    """Shapley 1953: what a part adds when parts come in a random order, order by order."""
    from itertools import permutations

    from diorama.methods.explain.part_shapley import shapley

    values = np.random.default_rng(0).standard_normal(2**4)
    expected, orders = np.zeros(4), list(permutations(range(4)))
    for order in orders:
        there = 0
        for part in order:
            expected[part] += (values[there | 1 << part] - values[there]) / len(orders)
            there |= 1 << part
    assert np.allclose(shapley(values), expected)
    assert shapley(values).sum() == pytest.approx(values[-1] - values[0])


def test_part_shapley_is_a_row_of_its_own_and_says_what_it_saw(tmp_path):
    from diorama import api

    found = api.run(
        ["birds(size=64)"],
        ["part_shapley"],
        ["single_deletion"],
        [f"{__file__}:SmallModel"],
        cases=2,
        out=tmp_path / "run",
    )
    (cell,) = found["cells"]
    assert cell["method"] == "part_shapley" and cell["summary"]["sd"]["mean"] > 0.8
    rows = [line for file in (tmp_path / "run").rglob("*.jsonl") for line in file.read_text().splitlines()]
    assert all("shown the truth" in row for row in rows)


class SmallModel(Tiny):
    """A network with random weights for birds of 64 pixels."""

    def __init__(self):
        super().__init__(64)


@pytest.mark.parametrize(
    ("fill", "shown"),
    [("mean", lambda im: im.mean(axis=(0, 1))), ("blur", lambda im: cv2.GaussianBlur(im, (0, 0), 2.5))],
)
def test_rise_with_another_filling_and_contrast_is_the_slow_sum(images, fill, shown):
    """Σ (f − mean f)·m / (N·p), mask by mask."""
    model, image = Tiny(40), images[0]
    rise = build("method", f"rise(masks=30, keep=0.5, fill={fill}, contrast=True, output=centred)").object
    masks = rise.some_masks(range(30), (40, 40))
    copies = np.stack([image * m[:, :, None] + shown(image) * (1 - m[:, :, None]) for m in masks]).astype(np.float32)
    logits = model.logits(copies)
    f = logits[:, 3] - logits.mean(axis=1)
    expected = sum((value - f.mean()) * m for value, m in zip(f, masks, strict=True)) / (30 * 0.5)
    (answer,) = rise.explain_targets(model, image, [3])
    assert answer.signed and np.allclose(answer.values, expected, atol=1e-4 * np.abs(expected).max())


def test_saved_boxes_are_read(tmp_path):
    from diorama.core.frame import Frame
    from diorama.core.scene import Scene

    (tmp_path / "0-00000").mkdir()
    np.save(tmp_path / "0-00000" / "3.npy", np.array([[1, 2, 5, 6, 0.5], [0, 0, 3, 3, -1.0]]))
    saved = build("method", f"explain/predictions(folder={tmp_path}, kind=boxes)").object
    frame = Frame(Scene("test", {}), np.zeros((8, 8, 3), np.float32), "srgb", {})
    answer = saved.load("0-00000", frame, 3)
    assert isinstance(answer, Boxes) and answer.weights.tolist() == [0.5, -1.0]
