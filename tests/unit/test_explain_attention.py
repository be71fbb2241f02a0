"""Rollout, Chefer, Grad-CAM and LRP on transformers: against hand-written loops, closed forms, timm's own maps; manners."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="explanations need torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from diorama.adapt.classifying import Classifier  # noqa: E402
from diorama.adapt.methods import explain  # noqa: E402
from diorama.core.catalogue import build  # noqa: E402
from diorama.methods.explain.attention import RecordedAttention, attention, with_gradients  # noqa: E402
from diorama.models.families.vit import VisionTransformer  # noqa: E402
from tests.reference import transformer_loops as slow  # noqa: E402
from tests.tiny_models import Tiny  # noqa: E402

SIDE, PATCH = 32, 8
GRID = SIDE // PATCH
#: Classes that attention speaks for in both images.
CLASSES = (2, 2)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


def transformer(seed=0):
    torch.manual_seed(seed)
    net = VisionTransformer(5, SIDE, PATCH, width=24, depth=3, heads=3)
    for p in net.parameters():
        nn.init.normal_(p, std=0.3)
    return net.eval().requires_grad_(False)


@pytest.fixture(scope="module")
def model():
    return Classifier(transformer(), "small", SIDE)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((2, SIDE, SIDE, 3), np.float32)


def maps(spec, model, images, targets=(3, 1)):
    found = explain(build("method", spec).object, model, images, np.array(targets))
    return np.stack([answer.values for answer in found])[..., 0]


def coarse(found):
    """One value for each patch, all pixels of which must agree."""
    cells = found.reshape(-1, GRID, PATCH, GRID, PATCH)
    assert np.ptp(cells, axis=(2, 4)).max() == 0
    return cells[:, :, 0, :, 0].reshape(len(found), -1)


def tokens_of(net, image):
    with torch.no_grad():
        patches = net.patch_embed(torch.from_numpy(image.transpose(2, 0, 1).copy())[None])
        return (torch.cat([net.cls_token, patches], 1) + net.pos_embed)[0].double().numpy()


@pytest.mark.parametrize("skip", [0, 1])
def test_rollout_is_the_slow_product_and_its_rows_sum_to_1(model, images, skip):
    found = coarse(maps(f"rollout(skip={skip})", model, images))
    for image, row in zip(images, found, strict=True):
        product = slow.rollout(slow.attention_maps(model.module, tokens_of(model.module, image)), skip)
        assert np.allclose(product.sum(axis=1), 1, atol=1e-12)
        assert np.allclose(row, product[0, 1:], atol=1e-6)
    assert np.array_equal(maps("rollout", model, images, (0, 0)), maps("rollout", model, images, (4, 4)))


def test_maps_are_those_that_timm_and_torchvision_compute():
    timm = (
        pytest.importorskip("timm", reason="needs timm (diorama[zoos])")
        if build("model", "timm:vit_tiny_patch16_224(size=32, classes=3)")
        else None
    )
    net = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=3).eval().requires_grad_(False)
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, found = net(x), attention(net, x)[0]
        with RecordedAttention():
            assert torch.allclose(net(x), expected, atol=1e-5)
    seen = []
    for block in net.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_hook(lambda _, __, out: seen.append(out))
    net(x)
    assert len(found) == 12 and all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, seen, strict=True))


def test_torchvision_s_transformer_gives_the_same_logits_while_it_is_watched():
    model = build("model", "torchvision:vit_b_16(size=32, classes=3)").object
    net, x = model.module, torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    nn.init.normal_(net.get_submodule("net.heads.head").weight)
    with torch.no_grad():
        plain = net(x)
        with RecordedAttention() as seen:
            watched = net(x)
    assert plain.abs().max() > 0.1 and torch.allclose(plain, watched, atol=1e-4) and len(seen.maps) == 12


class OneLayer(nn.Module):
    """Tokens, one head of attention without biases, a skip, the class token's logits."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.patch = nn.Conv2d(3, 6, PATCH, PATCH, bias=False)
        self.cls = nn.Parameter(torch.randn(1, 1, 6))
        self.q, self.k, self.v = (nn.Linear(6, 6, bias=False) for _ in range(3))
        self.head = nn.Linear(6, 5, bias=False)

    def tokens(self, x):
        patches = self.patch(x).flatten(2).transpose(1, 2)
        return torch.cat([self.cls.expand(len(x), -1, -1), patches], 1)

    def forward(self, x):
        t = self.tokens(x)
        q, k, v = (f(t)[:, None] for f in (self.q, self.k, self.v))
        return self.head((t + functional.scaled_dot_product_attention(q, k, v)[:, 0])[:, 0])


def test_chefer_on_one_layer_with_one_head_is_the_closed_form(images):
    model = Classifier(OneLayer(), "one", SIDE)
    net, found = model.module, coarse(maps("chefer(skip=0)", model, images, CLASSES))
    w = {k: v.double().numpy() for k, v in net.state_dict().items()}
    for image, target, row in zip(images, CLASSES, found, strict=True):
        x = net.tokens(torch.from_numpy(image.transpose(2, 0, 1).copy())[None])[0].double().numpy()
        expected = slow.chefer_one_layer(x, w["q.weight"], w["k.weight"], w["v.weight"], w["head.weight"][target])
        assert np.allclose(row, expected[1:], rtol=1e-3, atol=1e-5 * found.max())
    assert (found.max(axis=1) > 0).all()


def test_grad_cam_of_attention_is_funnybirds(model, images):
    found = coarse(maps("grad_cam", model, images))
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    seen, slopes, _ = with_gradients(model.module, x, torch.tensor([3, 1]))
    for n in range(2):
        cam = np.zeros(GRID**2)
        for head in range(3):
            cam += seen[-1][n, head, 0, 1:].numpy() * float(slopes[-1][n, head, 0, 1:].mean()) / 3
        cam = np.maximum(cam, 0)
        expected = (cam - cam.min()) / (cam.max() - cam.min()) if np.ptp(cam) else cam
        assert np.allclose(found[n], expected, atol=1e-5)
    assert found.max() == 1


def test_grad_cam_reads_a_layer_of_tokens_on_their_grid(model, images):
    found = coarse(maps("grad_cam(layer=blocks.2.norm1, relu=False)", model, images))
    net, kept = model.module, []
    with net.blocks[2].norm1.register_forward_hook(lambda _, __, out: kept.append(out.requires_grad_(True))):
        logits = net(torch.from_numpy(images.transpose(0, 3, 1, 2).copy()))
    slope = torch.autograd.grad(logits[0, 3] + logits[1, 1], kept[0])[0]
    expected = (kept[0][:, 1:] * slope[:, 1:].mean(1, keepdim=True)).sum(2).detach().numpy()
    assert np.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("spec", ["rollout", "chefer", "grad_cam", "lrp_attention"])
def test_maps_follow_tokens_that_change_places_with_their_positions(spec, model, images):
    """Patches in another order, their positions too: the same network to the class token, and the same map, moved."""
    order = np.random.default_rng(1).permutation(GRID**2)
    moved = transformer()
    with torch.no_grad():
        moved.pos_embed[:, 1:] = moved.pos_embed[:, 1:][:, order].clone()
    cells = images.reshape(2, GRID, PATCH, GRID, PATCH, 3).swapaxes(2, 3).reshape(2, GRID**2, PATCH, PATCH, 3)
    shuffled = cells[:, order].reshape(2, GRID, GRID, PATCH, PATCH, 3).swapaxes(2, 3).reshape(images.shape)
    before, after = maps(spec, model, images), maps(spec, Classifier(moved, "moved", SIDE), shuffled)
    parts = before.reshape(2, GRID, PATCH, GRID, PATCH).swapaxes(2, 3).reshape(2, GRID**2, PATCH, PATCH)
    expected = parts[:, order].reshape(2, GRID, GRID, PATCH, PATCH).swapaxes(2, 3).reshape(before.shape)
    assert np.abs(before).max() > 0 and np.allclose(after, expected, atol=1e-4 * np.abs(expected).max())


class MeanOfTokens(nn.Module):
    """A transformer block without biases on patches alone, the mean of the tokens, a linear head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.patch, self.norm = nn.Conv2d(3, 8, PATCH, PATCH, bias=False), nn.LayerNorm(8, bias=False)
        self.qkv, self.head = nn.Linear(8, 24, bias=False), nn.Linear(8, 5, bias=False)
        self.up, self.act, self.down = nn.Linear(8, 16, bias=False), nn.GELU(), nn.Linear(16, 8, bias=False)

    def forward(self, x):
        t = self.patch(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(t)).chunk(3, 2)
        t = t + functional.scaled_dot_product_attention(q, k, v)
        t = t + self.down(self.act(self.up(t)))
        return self.head(t.mean(1))


def test_relevance_through_attention_is_conserved_without_biases(images):
    pytest.importorskip("zennit", reason="needs zennit (diorama[lrp])") if build("method", "lrp") else None
    model = Classifier(MeanOfTokens(), "mean", SIDE)
    spec = "lrp_attention(conv=epsilon, epsilon=0)"
    found = explain(build("method", spec).object, model, images, np.array([3, 1]))
    logits = model.logits(images)[[0, 1], [3, 1]]
    assert np.allclose([a.values.sum() for a in found], logits, rtol=2e-2, atol=1e-3)


def test_what_has_no_attention_is_told_before_the_run(model):
    plain = Tiny(32)
    for name in ("rollout", "chefer"):
        assert "needs a transformer with a class token" in build("method", name).object.refuses(plain)
        assert build("method", name).object.refuses(model) == ""
    assert "give one with grad_cam(layer=" in build("method", "grad_cam").object.refuses(
        Classifier(MeanOfTokens(), "m", SIDE)
    )


def test_a_batch_changes_nothing_and_the_model_is_left_alone(model, images):
    before = {k: v.clone() for k, v in model.module.state_dict().items()}
    for spec in ("rollout", "chefer", "grad_cam"):
        both, single = maps(spec, model, images), maps(spec, model, images[1:], (1,))
        assert np.allclose(both[1:], single, rtol=1e-4, atol=1e-6)
    assert all(torch.equal(before[k], v) for k, v in model.module.state_dict().items())
    assert not any(m._forward_hooks for m in model.module.modules())
