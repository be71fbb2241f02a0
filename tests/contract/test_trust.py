"""One method cannot touch another's score: frames are read-only, models are watched, the truth is kept from methods."""

from pathlib import Path

import numpy as np
import pytest

from diorama.api import run
from diorama.core.catalogue import build
from diorama.core.run import open_run

WORLD = "mondrian(size=32, patches=4)"
CHEAT = """
import numpy as np
from diorama import Layers


class Cheat:
    given_truth = {declared}

    def decompose(self, frames):
        truth, image = frames[0].truth, frames[0].linear()
        found = truth.get("reflectance"), truth.get("shading")
        assert (found[0] is not None) == self.given_truth
        assert bool(set(frames[0].scene.params) - {{"light"}}) == self.given_truth
        return Layers(*found) if self.given_truth else Layers(image, np.ones_like(image))
"""


def errors_of(folder: Path) -> list[str]:
    """The reasons of all error rows of a run."""
    made = open_run(folder)
    return [row.reason for cell in made.cells for row in made.rows(cell) if row.status == "error"]


def test_a_method_gets_neither_truth_nor_the_parameters_of_a_scene(tmp_path):
    (tmp_path / "cheat.py").write_text(CHEAT.format(declared=False))
    document = run([WORLD], [f"{tmp_path}/cheat.py:Cheat"], ["lmse"], cases=2, out=tmp_path / "out")
    assert (
        document["cells"][0]["summary"]["lmse"]["n_ok"] == 2 and document["cells"][0]["summary"]["lmse"]["mean"] > 0.01
    )


def test_a_method_that_declares_it_is_shown_the_truth_and_every_row_says_so(tmp_path):
    (tmp_path / "cheat.py").write_text(CHEAT.format(declared=True))
    document = run([WORLD], [f"{tmp_path}/cheat.py:Cheat"], ["lmse"], cases=2, out=tmp_path / "out")
    assert document["cells"][0]["summary"]["lmse"]["mean"] < 1e-9
    made = open_run(tmp_path / "out")
    assert all("shown the truth" in row.reason for row in made.rows(made.cells[0]))


def test_an_encoder_and_a_loader_get_no_truth_and_no_bench(tmp_path):
    (tmp_path / "peek.py").write_text(
        "import numpy as np\nfrom diorama import Layers\n"
        "class Encode:\n"
        "    def encode(self, frames):\n"
        "        assert not any(f.truth or f.scene.params for f in frames)\n"
        "        return np.stack([f.srgb().mean((0, 1)) for f in frames])\n"
        "class Load:\n"
        "    def answers(self, bench, scene, target):\n        raise AssertionError('taken for a control')\n"
        "    def load(self, case, frame, target):\n"
        "        assert set(frame.truth) <= {'mask'} and not set(frame.scene.params) - {'light'}\n"
        "        return Layers(np.ones_like(frame.image), frame.linear())\n"
    )
    sprites = "sprites(counts=(3, 2, 3, 3, 3))"
    codes = run([sprites], [f"{tmp_path}/peek.py:Encode"], ["mig(frames=100)"], cases=1, out=tmp_path / "codes")
    layers = run([WORLD], [f"{tmp_path}/peek.py:Load"], ["lmse"], cases=1, out=tmp_path / "layers")
    assert errors_of(tmp_path / "codes") == errors_of(tmp_path / "layers") == []
    assert codes["cells"][0]["summary"]["mig"]["n_ok"] == layers["cells"][0]["summary"]["lmse"]["n_ok"] == 1


def test_the_key_and_the_mask_of_a_blind_frame_are_those_of_the_frame(mini_mit):
    world = build("world", f"mit_intrinsic(root={mini_mit}, objects=('box',))").object
    frame = world.render([world.scene_at(0, 0)[1]])[0]
    blind = frame.blind()
    assert blind.scene.key == frame.scene.key and np.array_equal(blind.mask, frame.mask) and not frame.mask.all()
    assert set(blind.truth) == {"mask"} and np.array_equal(blind.image, frame.image)


@pytest.mark.parametrize(
    "spoilt", ["frames[0].image[:] = 0", "frames[0].mask[:] = False", "frames[0].linear()[0] *= 2"]
)
def test_writing_into_a_frame_is_an_error_row_and_changes_no_other_score(tmp_path, spoilt):
    (tmp_path / "vandal.py").write_text(
        "import numpy as np\nfrom diorama import Layers\nclass Vandal:\n    def decompose(self, frames):\n"
        f"        {spoilt}\n        return Layers(np.ones_like(frames[0].image), frames[0].linear())\n"
    )
    world = "tabletop(size=24, samples=1, bounces=0)" if "mask" in spoilt else WORLD
    alone = run([world], ["constant"], ["lmse"], cases=2, out=tmp_path / "alone")
    after = run([world], [f"{tmp_path}/vandal.py:Vandal", "constant"], ["lmse"], cases=2, out=tmp_path / "after")
    assert after["cells"][1]["summary"] == alone["cells"][0]["summary"]
    assert after["cells"][0]["summary"]["lmse"]["n_error"] == 2 and "read-only" in errors_of(tmp_path / "after")[0]


def test_nothing_in_a_frame_can_be_written_to():
    world = build("world", "birds(size=64)").object
    frame = world.render([world.scene_at(0, 0)[1]])[0]
    for array in [frame.image, *(value for value in frame.truth.values() if isinstance(value, np.ndarray))]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError, match="cannot be written"):
        frame.truth["label"] = 3


NET = """
import numpy as np, os, torch
from torch import nn


class Net(nn.Module):
    size = 16

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm, self.drop = nn.Conv2d(3, 4, 3, 2), nn.BatchNorm2d(4), nn.Dropout(0.5)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.drop(self.norm(self.conv(x))).mean((2, 3)))


def build():
    return Net()


class Restless:  # a model of one's own that is left in training mode
    classes, size = 2, 16

    def __init__(self):
        self.module = Net().train()

    def logits(self, images):
        with torch.no_grad():
            return self.module(torch.from_numpy(images.transpose(0, 3, 1, 2).copy())).numpy()


class Gentle:
    def explain(self, model, images, targets):
        from diorama import Heatmap
        x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).requires_grad_()
        with torch.enable_grad():
            out = model.module(x).gather(1, torch.from_numpy(targets)[:, None]).sum()
            (found,) = torch.autograd.grad(out, x)
        images[:] = 0  # its own copy
        return [Heatmap(m, True) for m in found.numpy().transpose(0, 2, 3, 1)]


class Rude(Gentle):
    def explain(self, model, images, targets):
        found, module = super().explain(model, images, targets), model.module
        {rude}
        return found
"""
RUDE = {
    "module.train()": "training mode of the module",
    "module.norm.eval().momentum = 1; module.norm.eps = 1.0": "eps of norm",
    "module.conv.register_forward_hook(lambda m, i, o: o * 2)": "forward hooks of conv",
    "module.requires_grad_(True)": "requires_grad of conv.weight",
    "module.conv.weight.add_(1)": "the values of conv.weight",
    "module.conv.weight.data.mul_(2)": "the values of conv.weight",
    "module.norm.running_var.mul_(9)": "the values of norm.running_var",
    "module.head = nn.Linear(4, 2)": "layers of the module",
    "module.forward = lambda x: torch.zeros(len(x), 2)": "forward of the module",
    "torch.set_default_dtype(torch.float64)": "torch's default dtype",
    "torch.set_grad_enabled(False)": "torch's gradient mode",
    "np.seterr(all='raise')": "numpy's handling of errors",
    "os.chdir('/')": "the working directory",
    "nn.modules.module.register_module_forward_hook(lambda m, i, o: o)": "hooks on all of torch's modules",
}
PHOTOS = "mosaic(source={0}/photos, grid=2, cell=8, per_class=2)"


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> str:
    """Mosaics of two classes of noise, 16 pixels wide."""
    from diorama.io.images import write_png

    folder, chance = tmp_path_factory.mktemp("mosaics"), np.random.default_rng(0)
    for name in ("cat", "dog"):
        for i in range(6):
            write_png(folder / "photos" / name / f"{i}.png", chance.integers(0, 255, (12, 12, 3), dtype=np.uint8))
    return PHOTOS.format(folder)


@pytest.fixture(scope="module")
def untouched(photos, tmp_path_factory) -> dict:
    """The scores of a method that nobody disturbs."""
    folder = tmp_path_factory.mktemp("untouched")
    (folder / "net.py").write_text(NET.replace("{rude}", "pass"))
    found = run(
        [photos], [f"{folder}/net.py:Gentle"], ["confusion"], [f"{folder}/net.py:build"], cases=2, out=folder / "o"
    )
    return found["cells"][0]["summary"]


@pytest.mark.parametrize("rude", RUDE)
def test_a_method_that_changes_what_others_use_gets_error_rows_and_the_next_is_unharmed(
    tmp_path, photos, untouched, rude
):
    (tmp_path / "net.py").write_text(NET.replace("{rude}", rude))
    methods = [f"{tmp_path}/net.py:Rude", f"{tmp_path}/net.py:Gentle"]
    found = run([photos], methods, ["confusion"], [f"{tmp_path}/net.py:build"], cases=2, out=tmp_path / "out")
    first, second = (cell["summary"] for cell in found["cells"])
    assert second == untouched
    assert all(metric["n_ok"] == 0 and metric["n_error"] == 2 for metric in first.values())
    assert all(RUDE[rude] in reason and "restored" in reason for reason in errors_of(tmp_path / "out"))


def test_a_model_that_changes_itself_while_it_answers_is_an_error(tmp_path, photos):
    (tmp_path / "net.py").write_text(NET.replace("{rude}", "pass"))
    found = run([photos], [], ["accuracy"], [f"{tmp_path}/net.py:Restless"], cases=2, out=tmp_path / "out")
    assert found["cells"][0]["summary"]["accuracy"]["n_error"] == 2
    assert all("net.py:Restless changed" in r and "norm.running_mean" in r for r in errors_of(tmp_path / "out"))


def test_global_chance_is_a_function_of_the_question_and_left_as_it_was(tmp_path):
    (tmp_path / "dice.py").write_text(
        "import random\nimport numpy as np\nfrom diorama import Layers\n"
        "class Dice:\n    def decompose(self, frames):\n"
        "        random.random()\n"
        "        g = np.random.rand(*frames[0].image.shape[:2], 1) + 0.1\n        return Layers(g, g)\n"
    )
    np.random.seed(5)
    expected = np.random.rand()
    np.random.seed(5)
    args = ([WORLD], [f"{tmp_path}/dice.py:Dice"], ["lmse"])
    few, many = (run(*args, cases=n, out=tmp_path / f"{n}")["cells"][0] for n in (1, 3))
    assert np.random.rand() == expected
    values = [[row.value for row in open_run(tmp_path / n).rows(open_run(tmp_path / n).cells[0])] for n in ("1", "3")]
    assert few["key"] == many["key"] and values[1][: len(values[0])] == values[0]


@pytest.mark.parametrize("name", ["birds_cnn", "birds_resnet", "birds_vgg"])
def test_watching_a_bundled_network_costs_little_of_a_pass(name):
    import timeit

    from diorama.core.watch import Snapshot

    model = build("model", name).object
    watch, images = Snapshot(model.module), np.zeros((8, model.size, model.size, 3), np.float32)
    each = min(timeit.repeat(lambda: watch.put_back(thorough=False), number=20, repeat=5)) / 20
    assert watch.put_back(thorough=True) == []
    assert each < min(timeit.repeat(lambda: model.logits(images), number=1, repeat=3)) / 25


def test_a_model_that_changes_switches_while_tcav_asks_it_is_found(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(
        "import numpy as np\nimport torch\n\n\nclass Net(torch.nn.Module):\n    size = 64\n\n"
        "    def __init__(self):\n        super().__init__()\n        self.conv = torch.nn.Conv2d(3, 4, 8, 8)\n"
        "        self.head = torch.nn.Linear(4, 50)\n\n"
        "    def forward(self, x):\n        len(x) < 8 or np.seterr(all='ignore')\n"
        "        return self.head(self.conv(x).relu().mean((2, 3)))\n\n\n"
        "def build():\n    torch.manual_seed(0)\n    return Net()\n"
    )
    before = np.geterr()
    tcav = (
        "tcav(concept='birds(objects=0, size=64)', negatives='birds(size=64)', images=20, pool=24, tests=4, layer=conv)"
    )
    run(["birds(size=64)"], ["ridge"], [tcav], [f"{tmp_path}/net.py:build"], cases=1, out=tmp_path / "out")
    assert np.geterr() == before
    assert any("numpy's handling of errors" in reason for reason in errors_of(tmp_path / "out"))
