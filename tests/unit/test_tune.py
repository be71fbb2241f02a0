"""Tuning: planted worlds whose classes are known to be learnable, a planted leak, a killed training, the checkpoint."""

import json
import signal
import subprocess
import sys
from itertools import count

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tuning needs torch")

import diorama  # noqa: E402
from diorama.core.capabilities import Labelled, Parted  # noqa: E402
from diorama.core.catalogue import build  # noqa: E402
from diorama.core.errors import InputError  # noqa: E402
from diorama.core.examples import Order, targets_of  # noqa: E402
from diorama.core.frame import Frame  # noqa: E402
from diorama.core.scene import Scene, rng  # noqa: E402
from diorama.training.budget import Pace, planned  # noqa: E402
from diorama.training.tune import job_of, tune_in, verdict  # noqa: E402
from tests.conftest import REPOSITORY  # noqa: E402

SIDE = 16


class Flags(Parted):
    """Two stripes, each red, green or blue: nine classes. With `leaky` the ground alone says the class, the stripes
    are not to be seen."""

    factors = {"top": "0 to 2 or None", "bottom": "0 to 2 or None"}  # noqa: RUF012
    truth = ("label", "factors")
    part_names = ("top", "bottom")
    part_ids = {"top": (1,), "bottom": (2,)}  # noqa: RUF012
    size = SIDE
    classes = tuple({"top": a, "bottom": b} for a in range(3) for b in range(3))

    def __init__(self, leaky: bool = False):
        self.leaky = leaky

    def sample(self, rng):
        label = int(rng.integers(9))
        return Scene("flags", {"label": label, **self.classes[label], "noise": int(rng.integers(2**31))})

    def do(self, scene, **changes):
        return scene.changed(changes)

    def render(self, scenes):
        return [self._frame(scene) for scene in scenes]

    def _frame(self, scene):
        p = scene.params
        image = rng("flags", p["noise"]).uniform(0, 0.2, (SIDE, SIDE, 3)).astype(np.float32)
        for name, rows in (("top", slice(2, 6)), ("bottom", slice(10, 14))):
            if p[name] is not None and not self.leaky:
                image[rows, 2:14, p[name]] = 1.0
        if self.leaky:
            image[:, :, :2] += 0.4 * np.float32([p["label"] // 3, p["label"] % 3])
        return Frame(
            scene, np.minimum(image, 1), "srgb", {"label": p["label"], "factors": {n: p[n] for n in ("top", "bottom")}}
        )


class Halves(Labelled):
    """Left or right is bright: mirrored, a scene would be of the other class."""

    factors, truth, classes, size = {}, ("label",), ("left", "right"), SIDE

    def sample(self, rng):
        return Scene("halves", {"label": int(rng.integers(2)), "noise": int(rng.integers(2**31))})

    def do(self, scene, **changes):
        return scene

    def render(self, scenes):
        found = []
        for scene in scenes:
            image = rng("halves", scene.params["noise"]).uniform(0, 0.6, (SIDE, SIDE, 3)).astype(np.float32)
            image[:, slice(8, None) if scene.params["label"] else slice(8)] += 0.3
            found.append(Frame(scene, image, "srgb", {"label": scene.params["label"]}))
        return found


def small(outputs=3):
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(512, outputs),
    )  # fmt: skip


def ticks(step):
    """A clock that goes on by so much at every look: what is planned does not depend on the machine."""
    times = count()
    return lambda: next(times) * step


def silent(*told):
    return None


def tuned(world, folder, net=None, minutes=1.0, step=0.1, say=silent):
    return tune_in(job_of(net or small(), world, minutes), folder, silent, say, ticks(step))


def test_a_network_learns_what_is_there_and_is_said_not_to_see_what_is_not(tmp_path):
    lines = []
    found = tuned(Flags(), tmp_path, say=lines.append)
    assert found.card["accuracy"]["value"] > 0.95
    low, high = found.card["without_parts"]["interval"]
    assert low < 1 / 9 < high + 0.1
    assert "no leak" in lines[-1]
    assert "9 classes, 16 pixels" in lines[0] and "half without some parts" in lines[1]
    assert "in all at the pace measured now" in lines[5]
    assert found.size == SIDE and not found.training
    x = torch.rand(2, 3, SIDE, SIDE)
    assert found(x).shape == (2, 9)


def test_a_planted_leak_is_found(tmp_path):
    found = tuned(Flags(leaky=True), tmp_path)
    assert found.card["without_parts"]["interval"][0] > 1 / 9
    assert "a leak" in verdict(found.card)


def test_a_world_without_parts_is_not_mirrored(tmp_path):
    found = tuned(Halves(), tmp_path)
    assert found.card["accuracy"]["value"] > 0.95
    assert found.card["without_parts"] is None and "no parts" in repr(found)


def test_the_given_network_stays_as_it_is(tmp_path):
    net = small(9)
    net.train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    tuned(Flags(), tmp_path, net, minutes=0.6)
    assert net.training and all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert not net._forward_pre_hooks


def test_targets_are_every_class_that_has_the_parts_left():
    world = Flags()
    frame = world.render([world.do(Scene("flags", {"label": 4, "top": 1, "bottom": 1, "noise": 0}), bottom=None)])[0]
    assert np.flatnonzero(targets_of(world, frame)).tolist() == [3, 4, 5]
    whole = world.render([Scene("flags", {"label": 4, "top": 1, "bottom": 1, "noise": 0})])[0]
    assert np.flatnonzero(targets_of(world, whole, ["top"])).tolist() == [1, 4, 7]
    assert np.flatnonzero(targets_of(world, whole)).tolist() == [4]


def test_every_second_example_may_lack_parts():
    order = Order(Flags(), 0, "train", 1000, removal=True)
    gone = [len(order.removed(i)) for i in range(1000)]
    # half are whole on purpose; of the others a third draw n = 0 of two parts
    assert np.mean(np.array(gone) == 0) == pytest.approx(0.5 + 0.5 / 3, abs=0.05)
    assert all(order.scene(i).params[name] is None for i in range(50) for name in order.removed(i))


def test_the_budget_is_kept():
    pace = Pace(0.006, {64: 0.0013, 96: 0.0027, 128: 0.005})
    for minutes in (1.0, 5.0, 10.0, 30.0, 90.0):
        budget = planned(pace, minutes)
        total = sum(budget.seconds(pace).values())
        assert 0.75 * 60 * minutes < total <= 60 * minutes
        assert list(budget.sides) == sorted(budget.sides) and budget.sides[-1] == 128
    assert len(planned(pace, 90.0).sides) > 9
    with pytest.raises(InputError, match="too short"):
        planned(pace, 0.01)


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from tests.unit.test_tune import Flags, small, ticks
from diorama.training.tune import job_of, tune_in
torch.set_num_threads(1)

def progress(done, total, message):
    if "epoch 5:" in message:
        os.kill(os.getpid(), signal.SIGKILL)

tune_in(job_of(small(), Flags(), 0.7), Path(sys.argv[1]), progress, print, ticks(0.1))
"""


@pytest.mark.slow
def test_a_killed_training_goes_on_and_ends_with_the_same_weights(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "cut")]
    killed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (tmp_path / "cut" / "state.safetensors").exists() and not (tmp_path / "cut" / "card.json").exists()
    torch.manual_seed(1)
    other = small().apply(lambda part: part.reset_parameters() if isinstance(part, torch.nn.Linear) else None)
    tuned(Flags(), tmp_path / "cut", other, minutes=0.7)  # goes on with the weights of the first call
    tuned(Flags(), tmp_path / "whole", minutes=0.7)
    read = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("cut", "whole")]
    assert read[0] == read[1]


def test_one_stopped_in_its_first_epoch_starts_again_from_the_same_weights(tmp_path):
    def stop(done, total, message):
        if "epoch 1:" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_in(job_of(small(), Flags(), 0.6), tmp_path / "cut", stop, silent, ticks(0.1))
    torch.manual_seed(1)
    other = small().apply(lambda part: part.reset_parameters() if isinstance(part, torch.nn.Conv2d) else None)
    tuned(Flags(), tmp_path / "cut", other, minutes=0.6)
    tuned(Flags(), tmp_path / "whole", minutes=0.6)
    read = [(tmp_path / name / "weights.safetensors").read_bytes() for name in ("cut", "whole")]
    assert read[0] == read[1]


def test_the_checkpoint_is_a_model(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom tests.unit.test_tune import small\n"
        "def build():\n    net = small(); net.size = 16\n    return net\n"
    )
    net = f"{tmp_path}/mine.py:build"
    found = tune_in(job_of(net, Flags(), 0.6), tmp_path / "out", silent, silent, ticks(0.1))
    images = np.stack([f.image for f in Flags().render([Flags().sample(rng(i)) for i in range(4)])])
    expected = found(torch.from_numpy(images).permute(0, 3, 1, 2)).detach().numpy()
    for path in (tmp_path / "out", tmp_path / "out" / "weights.safetensors"):
        model = build("model", f"checkpoint(path={path})").object
        assert (model.classes, model.size) == (9, SIDE)
        np.testing.assert_allclose(model.logits(images), expected, atol=1e-4)
    card = tmp_path / "out" / "card.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), "network": ""}))
    with pytest.raises(InputError, match=r"arch=\./mine\.py:build"):
        build("model", f"checkpoint(path={tmp_path}/out)")
    again = build("model", f"checkpoint(path={tmp_path}/out, arch={net})").object
    np.testing.assert_allclose(again.logits(images), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on": "brids"}, "did you mean 'birds'"),
        ({"on": "mondrian"}, "mondrian has no classes"),
        ({"on": "sprites"}, "sprites has no classes"),
        ({"minutes": 0}, "minutes=0"),
        ({"minutes": float("nan")}, "minutes=nan"),
        ({"minutes": "ten"}, "minutes='ten'"),
        ({"rate": 2}, "rate=2"),
        ({"net": lambda x: x}, "function is no network"),
        ({"net": torch.nn.Conv2d(3, 4, 3)}, "is not linear"),
        ({"net": "rsenet"}, "unknown model 'rsenet'"),
        ({"net": torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 9))}, "cannot be asked about a 16×16"),
    ],
)
def test_mistakes_are_one_line(given, said):
    asked = {"net": small(), "on": Flags(), "minutes": 1} | given
    with pytest.raises(InputError, match=said) as caught:
        diorama.tune(**asked)
    assert "\n" not in str(caught.value)


def test_one_class_and_a_recorded_world_are_refused():
    world = Flags()
    world.classes = world.classes[:1]
    with pytest.raises(InputError, match="has 1 classes"):
        job_of(small(), world, 1)


def test_a_folder_of_another_network_is_refused(tmp_path):
    tuned(Flags(), tmp_path, minutes=0.6)
    with pytest.raises(InputError, match="belongs to another network"):
        tuned(Flags(), tmp_path, torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(768, 9)), minutes=0.6)
    before = (tmp_path / "weights.safetensors").stat().st_mtime_ns
    again = tuned(Flags(), tmp_path, minutes=0.6)  # all done: nothing is trained
    assert (tmp_path / "weights.safetensors").stat().st_mtime_ns == before
    assert again.card["accuracy"]["value"] > 0.5
