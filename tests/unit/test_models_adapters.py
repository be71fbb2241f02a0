"""Networks by name, checkpoints, modules and functions as models: what they fill in, refuse and leave alone."""

import copy
import textwrap

import numpy as np
import pytest

from diorama import api
from diorama.adapt.classifying import Classifier, adapt, state_digest
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.plan import Plan, expand
from diorama.testing.check import check_component

torch = pytest.importorskip("torch", reason="models need torch")

SMALL = "torchvision:resnet18(size=64, classes=50)"


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((4, 64, 64, 3), np.float32)


def zoo(library):
    from diorama.adapt.torchvision_ops import make_importable

    pytest.importorskip(library, reason="networks by name need diorama[zoos]") if library == "timm" else None
    make_importable()
    return __import__(library)


def checkpoint_of(net, path, prefix="", **beside):
    torch.save({"state_dict": {prefix + k: v for k, v in net.state_dict().items()}, **beside}, path)
    return path


def test_a_torchvision_network_is_the_library_s_behind_its_normalisation(images):
    torchvision = zoo("torchvision")
    model = build("model", SMALL).object
    assert (model.classes, model.size, model.cam_layer) == (50, 64, "net.layer4")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torchvision.models.resnet18(num_classes=50).eval()
    mean, std = (torch.tensor(v)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    with torch.no_grad():
        expected = net((torch.from_numpy(images.transpose(0, 3, 1, 2)) - mean) / std).numpy()
    np.testing.assert_allclose(model.logits(images), expected, rtol=0, atol=1e-4)
    assert "random" in model.note and check_component(build("model", SMALL), lambda line: None)


@pytest.mark.slow
def test_families_keep_their_name_and_random_weights_are_the_same_every_time():
    zoo("timm")
    first, second = (build("model", "timm:resnet18(size=64, normalise=none)") for _ in range(2))
    assert first.label == "timm:resnet18(size=64, normalise=none)" and first.name == "timm:resnet18"
    assert first.digest == second.digest and first.object.cam_layer == "layer4"
    assert first.params["name"] == "resnet18"


def test_transformers_have_no_layer_for_grad_cam():
    zoo("timm")
    model = build("model", "timm:vit_tiny_patch16_224(size=32, classes=3)").object
    assert model.cam_layer is None and model.size == 32 and model.classes == 3


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("timm:resnet5", "did you mean 'resnet50'"),
        ("torchvision:resnet5", "did you mean 'resnet50'"),
        ("torchvision:resnet18(clases=3)", "did you mean 'classes'"),
        ("torchvision:resnet18(checkpoint=/absent.pth)", "there is no checkpoint /absent.pth"),
        ("torchvision:resnet18(size=64, cam_layer=layr4)", "did you mean 'net.layer4'"),
        ("torchvision:resnet18(normalise=x)", "not one of 'own', 'none', 'half'"),
        ("checkpoint(path=/absent.pth)", "there is no checkpoint"),
    ],
)
def test_mistakes_are_one_line(spec, said):
    zoo("timm")
    with pytest.raises(InputError, match=said) as caught:
        build("model", spec)
    assert "\n" not in str(caught.value)


def test_pretrained_weights_that_cannot_be_fetched_are_one_line(monkeypatch):
    torchvision = zoo("torchvision")

    def offline(*args, **options):
        raise OSError("no network\nhere")

    monkeypatch.setattr(torchvision.models, "get_model", offline)
    with pytest.raises(InputError, match=r"could not fetch the weights \(OSError: no network here\); give checkpoint"):
        build("model", "torchvision:resnet18(pretrained=True)")


@pytest.mark.parametrize("prefix", ["", "module.", "model.", "module.model."])
def test_a_funnybirds_checkpoint_is_recognised(tmp_path, images, prefix):
    net = zoo("torchvision").models.resnet18(num_classes=50).eval()
    path = checkpoint_of(
        net, tmp_path / "best.pth.tar", prefix, epoch=3, optimizer={"lr": 0.1}, best_acc1=torch.tensor(0.9)
    )
    model = build("model", f"checkpoint(path={path}, size=64)").object
    with torch.no_grad():
        expected = net(torch.from_numpy(images.transpose(0, 3, 1, 2))).numpy()  # FunnyBirds does not normalise
    np.testing.assert_allclose(model.logits(images), expected, rtol=0, atol=1e-4)
    assert (model.arch, model.classes, model.cam_layer) == ("resnet18", 50, "layer4")


def test_the_same_weights_in_safetensors_under_another_name_are_the_same_model(tmp_path):
    from safetensors.torch import save_file

    net = zoo("torchvision").models.resnet18(num_classes=50)
    checkpoint_of(net, tmp_path / "a.pth")
    save_file(net.state_dict(), tmp_path / "b.safetensors")
    a, b = (build("model", f"checkpoint(path={tmp_path / name}, size=64)") for name in ("a.pth", "b.safetensors"))
    assert a.digest == b.digest


def test_a_transformer_gets_its_images_resized_by_nearest_neighbours(tmp_path):
    timm = zoo("timm")
    net = timm.create_model("vit_tiny_patch16_224", num_classes=5).eval()
    path = checkpoint_of(net, tmp_path / "vit.pth", model="vit_b_16")
    model = build("model", f"checkpoint(path={path}, arch='timm:vit_tiny_patch16_224')").object
    x = np.random.default_rng(1).random((1, 256, 256, 3), np.float32)
    with torch.no_grad():
        small = torch.nn.functional.interpolate(torch.from_numpy(x.transpose(0, 3, 1, 2)), (224, 224))
        expected = net(small).numpy()
    np.testing.assert_allclose(model.logits(x), expected, rtol=0, atol=1e-4)


def test_checkpoints_that_do_not_fit_are_refused(tmp_path):
    net = zoo("torchvision").models.resnet18(num_classes=50)
    whole = checkpoint_of(net, tmp_path / "whole.pth")
    with pytest.raises(InputError, match="did you mean 'resnet18'"):
        build("model", f"checkpoint(path={whole}, arch=resnet17)")
    with pytest.raises(InputError, match=r"lacks 'layer1.2.conv1.weight' and \d+ more"):
        build("model", f"checkpoint(path={whole}, arch=resnet34)")
    with pytest.raises(InputError, match="classes=10, but the checkpoint was trained for 50 classes"):
        build("model", f"checkpoint(path={whole}, classes=10)")
    torch.save({"odd.weight": torch.zeros(3)}, tmp_path / "odd.pth")
    with pytest.raises(InputError, match="is not recognised"):
        build("model", f"checkpoint(path={tmp_path / 'odd.pth'})")
    torch.save({"state": 3}, tmp_path / "none.pth")
    with pytest.raises(InputError, match="holds no state dict"):
        build("model", f"checkpoint(path={tmp_path / 'none.pth'})")


def test_a_file_that_would_run_code_is_not_run(tmp_path):
    torch.save({"state_dict": Hostile()}, tmp_path / "hostile.pth")
    with pytest.raises(InputError, match="no weights that can be read safely"):
        build("model", f"checkpoint(path={tmp_path / 'hostile.pth'})")


class Hostile:
    """An object that runs code when it is loaded the usual way."""

    def __reduce__(self):
        return (print, ("this must not run",))


MINE = """
    import numpy as np, torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, width: int = 4):
            super().__init__()
            torch.manual_seed(0)
            self.conv, self.relu = nn.Conv2d(3, width, 5, 4), nn.ReLU(inplace=True)
            self.pool, self.head = nn.AdaptiveAvgPool2d(2), nn.Linear(4 * width, 50)
        def forward(self, x):
            return self.head(self.pool(self.relu(self.conv(x))).flatten(1))

    def build(width: int = 6): return Net(width)
    net = Net()
    def predict(images): return images.mean(axis=(1, 2)) @ np.arange(150.0).reshape(3, 50)
    def make(): return predict
    class Ours:
        classes = 50
        def logits(self, images): return predict(images)
    ours = Ours()
    three = 3
    def number(): return 3
    class Pair(nn.Module):
        def forward(self, x): return x, x
    def scalar(images): return images.mean()
"""


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE))
    return f"{tmp_path}/mine.py:"


@pytest.mark.parametrize("name", ["build", "build(width=3)", "net", "Net", "predict", "make", "Ours", "ours"])
def test_any_module_function_factory_or_model_of_a_file(mine, name):
    component = build("model", mine + name)
    assert component.object.classes == 50
    assert check_component(component, lambda line: None)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("build(wdth=3)", "did you mean 'width'"),
        ("build(width=x)", "should be int"),
        ("three", "is int, not a class or function"),
        ("number", "is int, not a model"),
        ("Pair", "gave tuple for one image"),
        ("scalar", r"logits are \(n, classes\)"),
        ("bulid", "did you mean 'build'"),
    ],
)
def test_what_is_no_model_is_said(mine, name, said):
    with pytest.raises(InputError, match=said) as caught:
        build("model", mine + name)
    assert "\n" not in str(caught.value)


def test_a_user_s_module_is_copied_and_its_weights_are_the_key(images):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 2, 3), torch.nn.ReLU(inplace=True), torch.nn.Flatten(), torch.nn.Linear(2 * 62 * 62, 3)
    )
    net.size = 64
    before, training = copy.deepcopy(net.state_dict()), net.training
    model = adapt(net, "mine")
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).requires_grad_()
    model.module(x)[:, 1].sum().backward()
    assert net.training == training and net[1].inplace and all(p.requires_grad for p in net.parameters())
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
    assert x.grad.abs().sum() > 0 and not any(p.requires_grad for p in model.module.parameters())
    assert model.fingerprint() == state_digest(net)
    with torch.no_grad():
        net[3].bias += 1
    assert model.fingerprint() != adapt(net, "mine").fingerprint()


def test_half_precision_becomes_float32_and_the_device_is_that_of_the_process(images):
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2)).half()
    model = adapt(net, "mine")
    assert model.logits(images).dtype == np.float32 and next(model.module.parameters()).device.type == "cpu"


def test_wrong_images_and_layers_are_refused(images):
    net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    model = Classifier(net, "mine", size=64)
    with pytest.raises(InputError, match=r"takes \(n, 64, 64, 3\)"):
        model.logits(images[:, :32])
    with pytest.raises(InputError, match="no layer 'x'"):
        model.features(images, "x")
    assert model.features(images, "0").shape == (4, 3, 1, 1)


def test_gradient_methods_are_skipped_for_a_function_and_others_are_not(mine):
    plan = Plan(["birds(size=64)"], ["input_x_gradient", "occlusion"], ["single_deletion"], [mine + "predict"], cases=1)
    expansion = expand(plan)
    assert [cell.labels["method"] for cell in expansion.cells] == ["occlusion"]
    assert "needs gradients" in expansion.skipped[0]["reason"]


def test_a_network_of_another_number_of_classes_is_skipped():
    zoo("torchvision")
    with pytest.raises(InputError, match=r"torchvision:resnet18 has 1000 classes, birds has 50"):
        expand(Plan(["birds(size=64)"], [], ["accuracy"], ["torchvision:resnet18(size=64)"], cases=1))


def test_objects_are_refused_in_plans_with_the_way_out():
    with pytest.raises(InputError, match=r"diorama.evaluate takes live objects"):
        api.run(["birds"], ["grad_cam"], ["single_deletion"], [torch.nn.Identity()])


def test_a_run_with_random_weights_says_so_beside_every_value(tmp_path):
    zoo("torchvision")
    found = api.run(["birds(size=64)"], [], ["accuracy"], [SMALL], cases=8, out=tmp_path / "run")
    assert found["cells"][0]["model"] == SMALL
    rows = [line for file in (tmp_path / "run").rglob("*.jsonl") for line in file.read_text().splitlines()]
    assert len(rows) == 8 and all("the weights are random" in row for row in rows)
