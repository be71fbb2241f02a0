"""Explainers in closed form and against captum; part importance and single deletion against slow versions; controls."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

pytest.importorskip("torch", reason="torch is not installed (pip install 'diorama[torch]')")
pytest.importorskip("embreex", reason="the renderer is not installed (pip install 'diorama[render]')")

from diorama.adapt import adapt
from diorama.adapt.methods import explain
from diorama.api import run
from diorama.core.answers import Heatmap
from diorama.core.bench import Bench
from diorama.core.catalogue import build
from diorama.core.memory import Memory
from diorama.core.plan import Plan
from diorama.core.run import create, work
from diorama.core.scene import rng
from diorama.protocols.parts.importance import dilation_at, elements, heatmap_with, part_importance
from tests.conftest import REPOSITORY
from tests.part_files import lose, rows
from tests.tiny_models import Linear, Tiny

TINY = f"{REPOSITORY}/tests/tiny_models.py"
WORLD = "birds(size=64)"


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((4, 64, 64, 3), np.float32)


def maps(spec, model, images, targets):
    return np.stack(
        [answer.values for answer in explain(build("method", spec).object, model, images, np.array(targets))]
    )


def test_linear_model_every_gradient_method_is_weight_times_input(images):
    model, targets = Linear(), [3, 1, 4, 1]
    weight = model.module[1].weight.numpy()[targets].reshape(4, 3, 64, 64).transpose(0, 2, 3, 1)
    assert np.allclose(maps("input_x_gradient", model, images, targets), images * weight, atol=1e-5)
    assert np.allclose(maps("integrated_gradients", model, images, targets), images * weight, atol=1e-5)
    assert np.allclose(
        maps("integrated_gradients(baseline=0.5)", model, images, targets), (images - 0.5) * weight, atol=1e-5
    )
    assert np.allclose(maps("captum(name=Saliency)", model, images, targets), np.abs(weight), atol=1e-5)


def test_bias_free_network_integrated_gradients_equal_input_x_gradient(images):
    model, targets = Tiny(bias=False), [0, 7, 7, 49]
    ixg, ig = (maps(m, model, images, targets) for m in ("input_x_gradient", "integrated_gradients"))
    assert np.allclose(ixg, ig, atol=1e-4 * np.abs(ixg).max())


def test_integrated_gradients_are_complete(images):
    model, targets = Tiny(), [0, 7, 7, 49]
    ig = maps("integrated_gradients(steps=200)", model, images, targets).sum(axis=(1, 2, 3))
    gain = (model.logits(images) - model.logits(np.zeros_like(images)))[range(4), targets]
    assert np.allclose(ig, gain, rtol=0.02, atol=0.02)


def test_grad_cam_is_the_weighted_sum_of_features(images):
    import torch

    model, targets = Tiny(), [0, 7, 7, 49]
    x = torch.from_numpy(images.transpose(0, 3, 1, 2).copy())
    features = model.module.conv(x).requires_grad_(True)
    rest = torch.nn.Sequential(model.module.relu, model.module.pool, model.module.flat, model.module.head)
    grad = torch.autograd.grad(rest(features)[range(4), targets].sum(), features)[0]
    coarse = torch.relu((grad.mean(dim=(2, 3), keepdim=True) * features).sum(1, keepdim=True))
    expected = torch.nn.functional.interpolate(coarse, (64, 64), mode="nearest").detach().numpy()[:, 0]
    assert np.allclose(maps("grad_cam", model, images, targets)[..., 0], expected, atol=1e-5)


def test_captum_objects_factories_and_plain_functions_are_accepted(images):
    import captum.attr

    model, targets = Tiny(), np.array([0, 7, 7, 49])
    expected = maps("input_x_gradient", model, images, targets)
    given = captum.attr.InputXGradient(model.module)

    def factory(module):
        return captum.attr.InputXGradient(module)

    def plain(module, x, target):
        import torch

        return x * torch.autograd.grad(module(x).gather(1, target[:, None]).sum(), x)[0]

    for method in (given, factory, plain):
        found = np.stack([answer.values for answer in explain(method, model, images, targets)])
        assert np.allclose(found, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Setting backward hooks")
def test_methods_leave_the_model_as_it_was(images):
    model = Tiny()
    before = {k: v.clone() for k, v in model.module.state_dict().items()}
    for spec in ("input_x_gradient", "integrated_gradients(steps=3)", "grad_cam", "captum(name=GuidedBackprop)"):
        maps(spec, model, images, [0, 1, 2, 3])
        assert all((v == before[k]).all() for k, v in model.module.state_dict().items())
        assert not model.module.training and not any(p.requires_grad for p in model.module.parameters())
        assert not any(m._forward_hooks or m._backward_hooks or m._forward_pre_hooks for m in model.module.modules())


@pytest.fixture(scope="module")
def bird():
    world = build("world", WORLD)
    scene = world.object.sample(rng(0, "test"))
    return world, scene, world.object.render([scene])[0]


def ids(world):
    return tuple(world.object.part_ids[name] for name in world.object.part_names)


def slow_importance(heat, parts, groups, width):
    """Pixel by pixel: a pixel counts for a sub-part if any pixel within the window belongs to it."""
    half, found = width // 2, []
    for group in groups:
        total = 0.0
        for sub in group:
            for y, x in np.ndindex(*parts.shape):
                if (parts[max(0, y - half) : y + half + 1, max(0, x - half) : x + half + 1] == sub).any():
                    total += heat[y, x].sum()
        found.append(total)
    return np.array(found)


@pytest.mark.parametrize("width", [1, 3, 5])
def test_part_importance_equals_the_loop(bird, width):
    world, _, frame = bird
    heat = np.random.default_rng(0).normal(size=(64, 64, 3))
    fast = part_importance(Heatmap(heat, signed=True), elements(frame.truth["parts"], ids(world), width))
    assert np.allclose(fast, slow_importance(heat, frame.truth["parts"], ids(world), width))


def test_a_painted_heat_map_has_the_importances_it_was_made_for(bird):
    world, _, frame = bird
    wanted = np.array([3.0, -1.0, 0.5, 2.0, 4.0])
    seen = elements(frame.truth["parts"], ids(world), 3)
    found = part_importance(heatmap_with(wanted, seen), seen)
    assert np.allclose(found, wanted)


def test_dilation_is_stated_at_256():
    assert [dilation_at(s, 5) for s in (256, 128)] == [5, 3] and dilation_at(128, 1) == 1


def test_single_deletion_equals_the_formula(tmp_path):
    document = run([WORLD], ["input_x_gradient"], ["single_deletion"], [f"{TINY}:Tiny"], cases=5, seed=3, out=tmp_path)
    assert document["cells"][0]["summary"]["sd"]["n_ok"] == 5
    world, model = build("world", WORLD), Tiny()
    expected = []
    for i in range(5):
        scene = world.object.sample(rng(3, "scene", i))
        variants = [scene, *(world.object.do(scene, **{p: None}) for p in world.object.part_names)]
        frames = world.object.render(variants)
        label = frames[0].truth["label"]
        logit = model.logits(np.stack([f.image for f in frames]))[:, label]
        heat = maps("input_x_gradient", model, frames[0].image[None], [label])[0]
        importance = slow_importance(heat, frames[0].truth["parts"], ids(world), dilation_at(64, 5))
        expected.append(0.5 + 0.5 * spearmanr(logit[0] - logit[1:], importance).statistic)
    assert document["cells"][0]["summary"]["sd"]["mean"] == pytest.approx(np.mean(expected))


@pytest.mark.slow
def test_controls_hold(tmp_path):
    document = run([WORLD], [], ["single_deletion"], [f"{TINY}:Tiny"], cases=48, controls=True, out=tmp_path)
    cells = {cell["control"]: cell for cell in document["cells"]}
    assert cells["oracle"]["summary"]["sd"]["mean"] > 0.99
    assert cells["random"]["summary"]["sd"]["lo"] < 0.5 < cells["random"]["summary"]["sd"]["hi"]
    curve = [point["mean"] for point in cells["dose"]["curve"]["sd"]]
    assert curve == sorted(curve, reverse=True) and curve[-1] == pytest.approx(0.5, abs=0.12)


def test_accuracy_takes_no_method_and_counts_right_answers(tmp_path):
    document = run([WORLD], [], ["accuracy"], [f"{TINY}:Tiny"], cases=20, out=tmp_path)
    (cell,) = document["cells"]
    world, model = build("world", WORLD).object, Tiny()
    frames = [world.render([world.sample(rng(0, "scene", i))])[0] for i in range(20)]
    right = model.logits(np.stack([f.image for f in frames])).argmax(1) == [f.truth["label"] for f in frames]
    assert cell["method"] is None and cell["summary"]["accuracy"]["mean"] == pytest.approx(right.mean())


@pytest.mark.slow
def test_shards_processes_and_resumption_give_the_same_bytes(tmp_path):
    plan = Plan(
        [WORLD], ["grad_cam", "input_x_gradient"], ["single_deletion", "accuracy"], [f"{TINY}:Tiny"], 19, controls=True
    )
    whole = create(tmp_path / "whole", plan)
    work(whole, 0, 1)
    parts = create(tmp_path / "parts", plan)
    for shard in (2, 0, 1):
        work(parts, shard, 3)
    assert rows(tmp_path / "parts") == rows(tmp_path / "whole")
    lose(tmp_path / "parts", lambda row: int(row["case"][-1]) % 2 != 0)  # as a crash might
    work(parts, 0, 1)
    assert rows(tmp_path / "parts") == rows(tmp_path / "whole")


def test_logits_pass_in_chunks_of_one_size_and_only_once(bird):
    world, scene, _ = bird
    calls = []

    class Counting(Tiny):
        def logits(self, images):
            calls.append(len(images))
            return super().logits(images)

    model = build("model", f"{TINY}:Tiny")
    model.__dict__["object"] = adapt("model", Counting(), "counting")
    memory = Memory()
    protocol = build("protocol", "accuracy").object
    bench = Bench(world, model, None, protocol, None, memory)
    scenes = list(world.object.subsets(scene).values())[:11]
    first = bench.logits(scenes)
    assert calls == [8, 8] and np.array_equal(bench.logits(scenes[::-1]), first[::-1]) and len(calls) == 2


@pytest.mark.slow
def test_a_wrong_size_a_missing_model_and_an_unused_model_are_refused(diorama, tmp_path):
    from tests.contract.test_cli import one_line

    common = ["-m", "grad_cam", "-n", "2"]
    one_line(diorama("run", "-w", "birds", "-p", "single_deletion", *common), 2, "single_deletion needs a model")
    result = diorama("run", "-w", "birds", "-M", f"{TINY}:Tiny", "-p", "single_deletion", *common)
    one_line(result, 2, "takes 64×64 images: write birds(size=64)")
    one_line(diorama("run", "-w", "mondrian", "-M", f"{TINY}:Tiny", "-m", "weiss", "-p", "lmse"), 2, "is not used")
    result = diorama("run", "-w", WORLD, "-M", f"{TINY}:Broken", "-p", "single_deletion", *common)
    one_line(result, 3, "2 cases failed")
    assert "NaN or infinite" in result.stdout
    wrong = ["-w", WORLD, "-M", f"{TINY}:Tiny", "-p", "single_deletion", "-m", "grad_cam(layer=cnv)", "-o", "wrong"]
    one_line(diorama("run", *wrong), 2, "has no layer 'cnv'")


@pytest.mark.slow
def test_an_explainer_from_a_users_file(diorama, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import captum.attr\ndef saliency(module):\n    return captum.attr.Saliency(module)\n"
    )
    result = diorama(
        "run",
        "-w",
        WORLD,
        "-M",
        f"{TINY}:Tiny",
        "-p",
        "single_deletion",
        "-m",
        "./mine.py:saliency",
        "-n",
        "3",
        "--json",
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["cells"][0]["summary"]["sd"]["n_ok"] == 3
    assert Path(tmp_path / "diorama-run" / "report.html").exists()
