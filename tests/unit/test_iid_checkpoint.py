"""CGIntrinsics, BigTime and USI3D as released: outputs for weights made by a rule, layers, gradients, what is refused."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need torch")

from diorama.core.catalogue import build  # noqa: E402
from diorama.core.errors import InputError  # noqa: E402
from diorama.core.frame import Frame  # noqa: E402
from diorama.core.scene import Scene, rng  # noqa: E402
from tests.official_weights import golden, image, weights  # noqa: E402

FAMILIES = ("cgintrinsics", "bigtime", "usi3d")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def known():
    return golden()["decomposers"]


@pytest.fixture(scope="module")
def files(known, tmp_path_factory):
    """A released file of every family, its weights made by the rule; removed afterwards, they are large."""
    folder, found = tmp_path_factory.mktemp("released"), {}
    for family in FAMILIES:
        shapes = known[family]["shapes"]
        made = (
            {p: weights(s, f"{p}.") for p, s in shapes.items()} | {"best_result": 1.0}
            if family == "usi3d"
            else weights(shapes)
        )
        found[family] = folder / f"{family}.pth"
        torch.save(made, found[family])
    yield found
    for path in found.values():
        path.unlink()


def decomposer(path, **options):
    extra = "".join(f", {k}={v}" for k, v in options.items())
    return build("method", f"iid_checkpoint(path={path}{extra})").object


def frame(h=128, w=128):
    scene = Scene("test", {})
    return Frame(scene, rng(0, "checkpoint").uniform(0.2, 1, (h, w, 3)).astype(np.float32), "linear", {})


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_released_weights_give_the_released_outputs(family, files, known):
    method = decomposer(files[family])
    assert method.kind == family  # told by the names in the file
    x = torch.from_numpy(image(3, 256))[None]
    with torch.no_grad():
        if family == "bigtime":
            found = method.module.released(x)
        else:
            found = list(method.module(2 * x - 1 if family == "usi3d" else x).values())
    for output, theirs in zip(found, known[family]["outputs"], strict=True):
        ours, expected = output.numpy(), np.array(theirs.get("corner", theirs.get("values")))
        seen = ours[0] if ours.ndim == 2 else ours[0, 0, 100, 100:110]
        assert np.abs(seen - expected).max() <= 1e-4 * np.abs(expected).max()
        if ours.ndim == 4:
            assert list(ours.shape) == theirs["shape"]
            assert abs(ours.mean() - theirs["mean"]) <= 1e-4 * theirs["std"]
            assert ours.std() == pytest.approx(theirs["std"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_layers_are_linear_light_on_the_frame_s_grid(family, files):
    method, given = decomposer(files[family], family=family, size=128), frame(90, 120)
    layers = method.decompose([given])
    assert layers.reflectance.shape == (90, 120, 3) and (layers.reflectance >= 0).all()
    assert layers.shading.shape == (90, 120, 1 if family == "cgintrinsics" else 3)
    if family == "cgintrinsics":  # colour is the image's chromaticity
        chroma = given.linear() / given.linear().sum(axis=2, keepdims=True)
        shown = layers.reflectance / layers.reflectance.sum(axis=2, keepdims=True)
        assert np.abs(shown - chroma).max() < 2e-2  # clipped highlights


@pytest.mark.slow
def test_gradients_of_the_loss_are_those_of_the_closed_form(files):
    """The layer is c·exp(z): dL/dz = Σ_channels 2(c·exp(z) − truth)·c·exp(z) / N for the network's own output z."""
    method, given = decomposer(files["cgintrinsics"], size=128), frame()
    answer = method.decompose([given]).reflectance
    truth = np.full_like(answer, 0.3)
    last = 2 * (answer - truth) / answer.size
    found = method.loss_grad([given], "reflectance", "output", [truth])
    assert np.allclose(found, last.ravel()[None], rtol=1e-4, atol=1e-9)
    found = method.loss_grad([given], "reflectance", "decoder7", [truth])
    assert np.allclose(found, (last * answer).sum(axis=2).ravel()[None], rtol=1e-3, atol=1e-9)
    assert np.abs(method.loss_grad([given], "reflectance", "encoder7", [truth])).max() > 0


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_of_both_branches_can_be_read(family, files):
    method, given = decomposer(files[family], size=128), frame()
    truth = np.full((128, 128, 3), 0.3, np.float32)
    for branch in method.branches:
        found = method.features_at([given], branch, method.layers)
        slopes = method.loss_grads([given], branch, method.layers, [truth])
        for values, slope in zip(found, slopes, strict=True):
            assert values.shape == slope.shape and values.shape[0] == 1 and values.shape[1] > 0
            assert np.isfinite(slope).all() and slope.any()
    names = method.layers
    for layer in (names[0], names[6]):  # encoders serve both branches, decoders one
        both = [method.features([given], branch, layer) for branch in ("reflectance", "shading")]
        assert np.array_equal(*both)
    first, second = (method.features([given], branch, "decoder2") for branch in ("reflectance", "shading"))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("h", "w", "sides"),
    [(300, 300, (384, 384)), (200, 380, (256, 512)), (380, 250, (384, 256)), (250, 330, (384, 512))],
)
def test_u_nets_take_the_released_sizes(h, w, sides, files):
    assert decomposer(files["bigtime"]).network_input(frame(h, w)).shape[2:] == sides
    assert decomposer(files["usi3d"]).network_input(frame(h, w)).shape[2:][h > w] == 256


@pytest.mark.slow
def test_mistakes_are_one_line(files, tmp_path):
    state = torch.load(files["cgintrinsics"], weights_only=True)
    lacking = {k: v for k, v in state.items() if k != "model.upconv_model_1.1.bias"}
    renamed = {f"x{k}": v for k, v in state.items()}
    for name, content in {
        "lacking": lacking,
        "renamed": renamed,
        "foreign": {"a.weight": torch.ones(3)},
        "none": {"a": 1},
    }.items():
        torch.save(content, tmp_path / f"{name}.pth")
    (tmp_path / "damaged.pth").write_bytes(files["cgintrinsics"].read_bytes()[:5000])
    for spec, said in (
        (f"path={tmp_path}/absent.pth", "there is no checkpoint"),
        (f"path={tmp_path}/damaged.pth", "it is damaged"),
        (f"path={tmp_path}/none.pth", "holds no state dict of cgintrinsics, bigtime or usi3d"),
        (
            f"path={tmp_path}/foreign.pth",
            r"is not of cgintrinsics, bigtime or usi3d \(1 tensors, the first is 'a.weight'\)",
        ),
        (f"path={tmp_path}/renamed.pth", "is not of cgintrinsics"),
        (f"path={tmp_path}/lacking.pth", "lacks 'outer.upconv_model_1.1.bias'"),
        (f"path={files['cgintrinsics']}, family=bigtime", "checkpoint of another network"),
        (f"path={files['cgintrinsics']}, size=100", "size=100: cgintrinsics takes multiples of 128"),
        (f"path={files['cgintrinsics']}, family=unet", "family='unet'.*usi3d"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            build("method", f"iid_checkpoint({spec})").object.module  # noqa: B018 - made at first use
        assert "\n" not in str(caught.value)
