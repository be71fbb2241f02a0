"""The networks of the papers as their authors released them: names, shapes and outputs for weights made by a rule."""

import importlib.util

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks need torch")

from diorama.core.catalogue import build  # noqa: E402
from diorama.core.errors import InputError  # noqa: E402
from diorama.models.checkpoint import recognise  # noqa: E402
from tests.official_weights import golden, image, weights  # noqa: E402

OURS = ("bagnet33", "x_resnet50", "bcos_resnet50", "protopnet_resnet50", "vit_b_16")
FAMILIES = ("resnet50", "vgg16", *OURS)
#: Our name of the architecture where it is not the file's.
NAMES = {"vit_b_16": "vit_base"}


def need_torchvision(reason):
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def known():
    return golden()["classifiers"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "parallel"), [*((f, False) for f in FAMILIES), ("resnet50", True), ("vit_b_16", True)]
)
def test_a_released_state_dict_gives_the_released_logits(family, parallel, known, tmp_path):
    """Alone, recognised by names and shapes; from nn.DataParallel as {"state_dict": …, "model": …}, where the name is taken
    of a ResNet, and passed over of a transformer.
    """
    if family in ("resnet50", "vgg16"):
        need_torchvision("ResNet-50 and VGG16 come from torchvision (diorama[zoos])")
    state, expected = weights(known[family]["shapes"]), np.array(known[family]["logits"])
    if parallel:
        state = {"state_dict": {f"module.{k}": v for k, v in state.items()}, "model": family, "epoch": 3}
    path = tmp_path / ("parallel.pth.tar" if parallel else "plain.pth")
    torch.save(state, path)
    side = known[family]["input"][2]
    x = np.ascontiguousarray(image(3, side).transpose(1, 2, 0))[None]
    model = build("model", f"checkpoint(path={path}, size={side})").object
    assert model.arch == NAMES.get(family, family) and model.classes == 50
    found = model.logits(x)[0]
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()
    if family == "bcos_resnet50":  # every logit is −4.595 and a little: the file's last digit is 1e-4 of that
        assert np.abs(found - expected).max() <= 5e-7 and np.ptp(expected) > 1e-3


def test_protopnet_s_distances_are_the_released_ones(known):
    from diorama.models.families.protopnet import ProtoPNet

    shapes = known["protopnet_resnet50"]["shapes"]
    net = ProtoPNet(50).eval()
    net.load_state_dict(weights(shapes))
    with torch.no_grad():
        nearest = net.distances(net.patches(torch.from_numpy(image(3, 256))[None])).amin((2, 3))[0, :20]
    expected = np.array(known["protopnet_resnet50"]["min_distances_head"])
    assert np.abs(nearest.numpy() - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda s: s.pop("layer4.2.conv3.weight"), r"nearest to bagnet33, but lacks 'layer4.2.conv3.weight'"),
        (lambda s: s.update({"odd": s["bn1.bias"]}), r"nearest to bagnet33, but has the unknown 'odd'"),
        (
            lambda s: s.update({"conv1.weight": s["conv2.weight"]}),
            r"'conv1.weight' is \(64, 64, 3, 3\), not \(64, 3, 1, 1\)",
        ),
        (
            lambda s: [s.update({f"trunk.{k}": s.pop(k)}) for k in list(s)],
            r"not recognised: \d+ tensors, the first is 'trunk",
        ),
    ],
)
def test_a_state_dict_that_does_not_fit_is_one_line(known, damage, said):
    """Networks are told apart by names and shapes alone: no weights are made."""
    need_torchvision("the nearest network is looked for in torchvision too")
    state = {name: torch.empty(shape, device="meta") for name, shape in known["bagnet33"]["shapes"].items()}
    damage(state)
    with pytest.raises(InputError, match=said) as caught:
        recognise(state, "x.pth")
    assert "\n" not in str(caught.value)


def test_other_mistakes_with_checkpoints_are_one_line(known, tmp_path):
    from diorama.models.families.bagnet import BagNet

    whole, damaged, good = tmp_path / "whole.pth", tmp_path / "damaged.pth", tmp_path / "good.pth"
    torch.save(BagNet(3, stem=4, widths=(2, 2, 2, 2), counts=(1, 1, 1, 1)), whole)
    torch.save(weights(known["bagnet33"]["shapes"]), good)
    damaged.write_bytes(good.read_bytes()[:100_000])
    for spec, said in (
        (f"path={whole}", r"a whole pickled network.*torch.save\(net.state_dict\(\), file\)"),
        (f"path={damaged}", "it is damaged, or"),
        (f"path={good}, classes=10", "classes=10, but the checkpoint was trained for 50 classes"),
        (f"path={good}, arch=bcos_resnet50", "lacks '0.fc.linear.weight'"),
        (f"path={good}, arch=vit_base", "lacks 'head.weight'"),
        (f"path={good}, arch=x_resnet50", "checkpoint of another network"),
    ):
        with pytest.raises(InputError, match=said) as caught:
            build("model", f"checkpoint({spec})")
        assert "\n" not in str(caught.value)
