"""`diorama.evaluate` as a notebook calls it: live objects of every kind, the user's own left as they were, mistakes."""

import copy
import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import diorama
from diorama import InputError
from diorama.core.scene import rng

torch = pytest.importorskip("torch")

BIRDS = "birds(size=64)"
QUIET = {"progress": False, "cases": 4}


def network(seed: int = 0) -> "torch.nn.Module":
    """A small convolutional network for 50 classes, random weights."""
    made = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 5, 2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(3),
        torch.nn.Flatten(),
        torch.nn.Linear(72, 50),
    )
    for p in made.parameters():
        torch.nn.init.normal_(p, std=0.3, generator=torch.Generator().manual_seed(seed))
    return made


def gradient(model, x, target):
    x = x.requires_grad_()
    return torch.autograd.grad(model(x).gather(1, target[:, None]).sum(), x)[0]


def scores(results, metric="sd") -> dict[str, list]:
    found = {}
    for row in results.rows.to_dict("records"):
        if row["metric"] == metric and not row["control"]:
            found.setdefault(row["method"], []).append(row["value"])
    return found


@pytest.mark.slow
def test_the_block_of_the_design(tmp_path):
    import captum.attr

    net = network()
    result = diorama.evaluate(
        {
            "ig": captum.attr.IntegratedGradients,
            "mine": lambda model, x, target: gradient(model, x, target) * x,
            "lime": "lime(samples=50)",
        },
        model=net,
        on=BIRDS,
        by=["funnybirds", "single_deletion"],
        cases=4,
        controls=True,
    )
    assert "<table" in result._repr_html_() and "oracle (control)" in repr(result)
    assert {"method", "metric", "mean", "lo", "hi"} <= set(result.table.columns)
    assert {"ig", "mine", "lime"} <= set(result.table["method"])
    assert len(result.rows) > len(result.table) and set(result.rows["case"]) == {f"0-{i:05d}" for i in range(4)}
    (line,) = (one for one in result.compare("ig", "mine") if one["protocol"] == "single_deletion")
    assert line["metric"] == "sd" and line["lo"] is not None and line["p"] is not None
    case = result.case("ig", 3, by="single_deletion")
    assert (
        case.frame.shape == (64, 64, 3) and case.truth["parts"].shape == (64, 64) and case.answer.shape[:2] == (64, 64)
    )
    assert case.show()._repr_png_().startswith(b"\x89PNG")
    assert result.report(tmp_path / "r.html").read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_the_rest_of_the_block_of_the_design():
    """Metrics on arrays, frames for a loop, a torch data set, and a network fitted to a staged world and then judged."""
    rng = np.random.default_rng(0)
    truth, scale = rng.random((40, 40)), 3.0
    assert (
        diorama.metrics.lmse(scale * truth, truth, np.ones((40, 40), bool)).value < 1e-12
    )  # each window has its scale
    factors = rng.integers(0, 4, (600, 2))
    assert diorama.metrics.mig(factors.astype(float), factors).value > 0.9
    assert diorama.metrics.irs(factors.astype(float), factors).value > 0.99
    heat = np.array([[1.0, 0.0], [0.0, -1.0]])
    assert diorama.metrics.confusion(heat, np.array([[True, True], [False, False]])).value == 1.0
    frames = [*diorama.world("candle", confounding="pairs", width=32, samples=2).frames(3, seed=0)]
    assert len(frames) == 3 and all(frame.image.shape[2] == 3 for frame in frames)
    birds = diorama.world("birds", classes=2, size=64)
    image, label, _ = birds.torch_dataset(n=2, split="train")[1]
    assert image.shape == (3, 64, 64) and int(label) in (0, 1)
    net = diorama.tune(network(), on="birds(classes=2, size=64)", minutes=0.3)
    result = diorama.evaluate("saliency", model=net, on="birds(classes=2, size=64)", by="single_deletion", cases=2)
    assert result.table["n_ok"].sum() + result.table["n_undefined"].sum() >= 2


def test_a_live_module_scores_as_the_same_network_from_a_file(tmp_path):
    torch.save(network().state_dict(), tmp_path / "weights.pt")
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom pathlib import Path\n"
        "def build():\n"
        "    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 5, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(3),"
        " torch.nn.Flatten(), torch.nn.Linear(72, 50))\n"
        "    net.load_state_dict(torch.load(Path(__file__).with_name('weights.pt'), weights_only=True))\n"
        "    return net\n"
    )
    methods = ["saliency", "input_x_gradient", "grad_cam"]
    asked = {"on": BIRDS, "by": "single_deletion", **QUIET}
    live = scores(diorama.evaluate(methods, model=network(), **asked))
    filed = scores(diorama.evaluate(methods, model=f"{tmp_path}/mine.py:build", **asked))
    assert live == filed and len(live["saliency"]) == 4
    other = scores(diorama.evaluate(methods, model=network(1), **asked))
    assert other != live


def test_a_network_that_takes_one_size_only_is_asked_at_the_world_s():
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 50))
    found = diorama.evaluate("saliency", model=net, on=BIRDS, by="single_deletion", **QUIET)
    assert found.rows["status"].tolist() == ["ok"] * 4


def test_specs_may_be_shared_by_processes():
    asked = {"on": "mondrian(size=32)", "by": "lmse", **QUIET}
    two = diorama.evaluate(["ours=baseline", "retinex_gray"], processes=2, **asked)
    assert scores(two, "lmse") == scores(diorama.evaluate(["ours=baseline", "retinex_gray"], **asked), "lmse")


def test_objects_and_classes_of_captum_and_zennit_agree_with_calling_them(tmp_path):
    import captum.attr

    from diorama.adapt.torchvision_ops import make_importable

    make_importable()
    from zennit.attribution import Gradient
    from zennit.composites import EpsilonPlus

    net = network()
    methods = {
        "class": captum.attr.Saliency,
        "object": captum.attr.Saliency(net),
        "by forward": captum.attr.IntegratedGradients(net.forward),
        "lrp": Gradient(net, EpsilonPlus()),
        "rules": EpsilonPlus(),
        "plain": gradient,
    }
    result = diorama.evaluate(methods, model=net, on=BIRDS, by="single_deletion", **QUIET)
    first = result.case("class", 2)
    x = torch.from_numpy(first.frame.transpose(2, 0, 1)[None].copy())
    target = torch.tensor([first.truth["label"]])
    direct = copy.deepcopy(net).eval()
    expected = captum.attr.Saliency(direct).attribute(x.clone().requires_grad_(), target=target)[0]
    for name in ("class", "object"):
        np.testing.assert_allclose(
            result.case(name, 2).answer, expected.permute(1, 2, 0).detach(), rtol=1e-3, atol=1e-6
        )
    paths = captum.attr.IntegratedGradients(direct).attribute(x.clone().requires_grad_(), target=target)[0]
    np.testing.assert_allclose(
        result.case("by forward", 2).answer, paths.permute(1, 2, 0).detach(), rtol=1e-3, atol=1e-5
    )
    with Gradient(direct, EpsilonPlus()) as attributor:
        relevance = attributor(x.clone(), torch.eye(50)[target])[1][0]
    for name in ("lrp", "rules"):
        np.testing.assert_allclose(
            result.case(name, 2).answer, relevance.permute(1, 2, 0).detach(), rtol=1e-3, atol=1e-6
        )


def test_an_attributor_made_for_another_network_is_refused():
    import captum.attr

    with pytest.raises(InputError, match="this Saliency was made for another network than Sequential"):
        diorama.evaluate(captum.attr.Saliency(network(1)), model=network(), on=BIRDS, by="single_deletion", **QUIET)


def test_answers_already_computed_are_scored_by_case(tmp_path):
    """Maps saved from one run score exactly as the method that made them; by order, by case, as tensors."""
    net, asked = network(), {"on": BIRDS, "by": "single_deletion", **QUIET}
    first = diorama.evaluate({"grad": gradient}, model=net, out=tmp_path / "run", keep="maps", **asked)
    maps = np.stack(list(first.maps["grad"].values()))
    assert maps.shape == (4, 64, 64, 3)
    saved = {"rows": maps, "dictionary": first.maps["grad"], "tensor": torch.from_numpy(maps.transpose(0, 3, 1, 2))}
    again = diorama.evaluate(saved, model=net, **asked)
    for values in scores(again).values():
        np.testing.assert_allclose(values, scores(first)["grad"], atol=0.051)  # half precision may swap two ranks
    few = diorama.evaluate({"few": maps[:2]}, model=net, **asked)
    assert (
        few.rows["status"].tolist() == ["ok", "ok", "error", "error"] and "no answer for case" in few.rows["reason"][3]
    )


def test_layers_codes_and_trainers_live():
    """The other three tracks: functions, arrays, a scikit-learn transformer, torch modules, a trainer."""
    from sklearn.decomposition import PCA
    from sklearn.linear_model import RidgeClassifier

    from diorama.worlds.mondrian import Mondrian

    world = Mondrian(size=32, patches=4)
    scenes = [world.sample(rng(0, "scene", i)) for i in range(4)]
    truth = [frame.truth for frame in world.render(scenes)]
    layers = {name: np.stack([one[name] for one in truth]) for name in ("reflectance", "shading")}

    class Split(torch.nn.Module):
        def forward(self, x):
            gray = x.mean(1, keepdim=True)
            return x / gray.clamp_min(1e-6), gray

    def flat(frames):
        image = frames[0].linear()
        gray = image.mean(axis=2, keepdims=True)
        return image / np.maximum(gray, 1e-6), gray

    found = diorama.evaluate(
        {"true": layers, "net": Split(), "function": flat, "spec": "baseline"},
        on={"paintings": world},
        by="lmse",
        **QUIET,
    )
    means = found.table[found.table.metric == "lmse"].set_index("method")["mean"]
    assert means["true"] < 1e-9 and abs(means["net"] - means["function"]) < 1e-6 and means["function"] > 0.01
    assert set(found.table["world"]) == {"paintings"}

    sprites = diorama.build("world", "sprites(counts=(3, 2, 4, 4, 4))").object
    frames = sprites.render([sprites.scene_at(0, i)[1] for i in range(100)])
    factors = np.array(
        [[levels.index(f.truth["factors"][n]) for n, levels in sprites.levels.items()] for f in frames], float
    )
    spec = {"on": "sprites(counts=(3, 2, 4, 4, 4))", "by": "mig(frames=50, nulls=1)", "cases": 2, "progress": False}
    spec["controls"] = True
    encoder = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten())
    coded = diorama.evaluate(
        {"factors": factors, "pca": PCA(4), "net": encoder, "function": lambda x: x.mean((1, 2))}, **spec
    )
    mig = coded.table[coded.table.metric == "mig"].set_index("method")["mean"]
    assert mig["factors"] == mig["oracle"] > 0.85 > mig["pca"] and coded.table["n_error"].sum() == 0
    case = coded.case("factors", 1)
    np.testing.assert_array_equal(case.answer, factors[50:])
    np.testing.assert_array_equal(case.truth["factors"], factors[50:])

    def ridge(grams, labels, seeds):
        """Ridge regression in the Gram space with an intercept, solved one problem at a time (scikit-learn's own)."""
        coefficients, intercepts = [], []
        for gram, label in zip(grams, labels, strict=True):
            values, vectors = np.linalg.eigh(gram)
            kept = values > 1e-9 * values.max()
            points = vectors[:, kept] * np.sqrt(values[kept])
            fitted = RidgeClassifier(alpha=1.0).fit(points, label)
            coefficients.append(vectors[:, kept] @ (fitted.coef_[0] / np.sqrt(values[kept])))
            intercepts.append(fitted.intercept_[0])
        return np.array(coefficients), np.array(intercepts)

    asked = {
        "by": f"tcav(concept={BIRDS}, do='beak=2', images=12, pool=24, tests=8, permutations=9, min_images=2)",
        "on": BIRDS,
        "model": network(),
        "cases": 2,
        "progress": False,
    }
    tcav = diorama.evaluate({"mine": ridge, "ours": "ridge(alpha=1.0)"}, **asked)
    shown = tcav.table[tcav.table.metric == "accuracy"].set_index("method")["mean"]
    assert tcav.table["n_error"].sum() == 0 and shown["mine"] == pytest.approx(shown["ours"], abs=0.13)


def test_a_live_world_and_protocol_are_keyed_as_their_specs(tmp_path):
    from diorama.protocols.parts.single_deletion import SingleDeletion
    from diorama.worlds.birds.birds import Birds

    asked = {"model": network(), "out": tmp_path / "run", **QUIET}
    spelt = diorama.evaluate("saliency", on="birds(size=64)", by="single_deletion", **asked)
    live = diorama.evaluate("saliency", on=Birds(size=64), by=SingleDeletion(), **asked)
    assert [c["key"] for c in spelt.document["cells"]] == [c["key"] for c in live.document["cells"]]


@pytest.mark.slow
def test_keys_follow_code_parameters_and_weights_and_results_are_taken_up(tmp_path, capsys):
    asked = {"on": BIRDS, "by": "single_deletion", "out": tmp_path / "run", **QUIET}
    calls = []

    def counted(factor):
        def method(model, x, target):
            calls.append(factor)  # a list: looked into, and its content is part of the key
            return factor * gradient(model, x, target)

        return method

    def key(method, net):
        return diorama.evaluate({"m": method}, model=net, **asked).document["cells"][0]["key"]

    one, net = lambda model, x, target: 2.0 * gradient(model, x, target), network()
    first = key(one, net)
    assert key(lambda model, x, target: 2.0 * gradient(model, x, target), network()) == first
    assert key(one, net.train()) == first  # it is asked in evaluation mode
    assert key(lambda model, x, target: 3.0 * gradient(model, x, target), net) != first
    assert key(one, network(1)) != first
    assert key(counted(1.0), net) != key(counted(2.0), net)
    assert "not reused" not in capsys.readouterr().err

    stream = (i for i in range(10))  # cannot be hashed, nor copied
    unknown = lambda model, x, target: gradient(model, x, target) + 0 * len(repr(stream))  # noqa: E731
    key(unknown, net)
    assert capsys.readouterr().err.count("m holds generator, which cannot be hashed") == 1
    script = f"""if True:
        import diorama, tests.contract.test_evaluate as t
        r = diorama.evaluate({{"m": t.gradient}}, model=t.network(), **{asked | {"out": str(tmp_path / "run")}!r})
        print(r.document["cells"][0]["key"])"""
    keys = {
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(keys) == 1  # in another process too


def test_the_user_s_module_is_left_exactly_as_it_was():
    net = network().train().to(memory_format=torch.channels_last)
    net[0].weight.requires_grad_(False)
    net(torch.rand(2, 3, 64, 64)).sum().backward()
    hook = net[1].register_forward_hook(lambda *_: None)
    before = [
        (p.detach().clone(), p.requires_grad, None if p.grad is None else p.grad.clone(), p.stride())
        for p in net.parameters()
    ]
    hooks = dict(net[1]._forward_hooks)

    def rude(model, x, target):
        for module in (model, net):  # reaches for the original too
            module.eval()
            for p in module.parameters():
                p.requires_grad_(True)
        net(x).sum().backward()
        with torch.no_grad():
            net[4].weight.mul_(2)
        net[1].register_forward_hook(lambda *_: None)
        return x

    polite = diorama.evaluate({"polite": gradient, "rude": rude}, model=net, on=BIRDS, by="single_deletion", **QUIET)
    assert all(module.training for module in net.modules()) and dict(net[1]._forward_hooks) == hooks
    for p, (value, wants, grad, stride) in zip(net.parameters(), before, strict=True):
        assert torch.equal(p, value) and p.requires_grad == wants and p.stride() == stride
        assert (p.grad is None) == (grad is None) and (grad is None or torch.equal(p.grad, grad))
    hook.remove()
    assert (
        scores(polite)["polite"]
        == scores(diorama.evaluate({"polite": gradient}, model=net, on=BIRDS, by="single_deletion", **QUIET))["polite"]
    )


def test_mistakes_are_one_line_each():
    asked = {"model": network(), "on": BIRDS, "by": "single_deletion", **QUIET}

    def message(methods="saliency", **changes) -> str:
        with pytest.raises(InputError) as caught:
            diorama.evaluate(methods, **{**asked, **changes})
        assert "\n" not in str(caught.value) and caught.value._render_traceback_() == [f"InputError: {caught.value}"]
        return str(caught.value)

    assert "did you mean 'birds'?" in message(on="brids")
    assert "is a live model, which 2 processes cannot share" in message(processes=2) and "./mine.py:build" in message(
        processes=2
    )
    assert "live method" in message({"mine": gradient}, model="birds_cnn", on="birds", processes=2)
    assert "Sequential cannot be used as a model" in message(model=network().to("meta"))
    assert "gave (1, 8, 110, 110) for one image" in message(model=network()[:1])
    assert "is no method" in message({"nothing": 3})
    assert "tuple" not in message(by=[]) and "by='single_deletion'" in message(by=[])
    assert "unknown device" in message(device="tpu")
    assert "keep='pictures'" in message(keep="pictures")
    assert "leave out the sign =" in message({"a=b": "saliency"})
    assert "two methods are called 'a'" in message(["a=saliency", "a=input_x_gradient"])
    assert "give it as model=" in message(network())
    assert "belong to one world" in message(
        {"saved": np.zeros((4, 64, 64))}, on=[BIRDS, "birds(size=64, seed=1)"] if False else [BIRDS, "birds"]
    )


def test_mistakes_about_results_are_one_line_each():
    found = diorama.evaluate("saliency", model=network(), on=BIRDS, by=["accuracy", "single_deletion"], **QUIET)
    for call, said in {
        lambda: found.compare("saliency", "salience"): "did you mean 'saliency'?",
        lambda: found.compare("nothing", "saliency"): "has no method 'nothing'",
        lambda: found.case("oracle", 0): "there is no method 'oracle'",
        lambda: found.case("saliency", 99): "there is no case 99: there are 4",
        lambda: found.case("saliency", 0, by="accuracy"): "saliency was not judged by accuracy",
        lambda: found.maps: "no answers were stored",
        lambda: found.report("r.docx"): "unknown format 'docx'",
    }.items():
        with pytest.raises(InputError, match=re.escape(said)):
            call()
    assert found.plot.doses()._repr_png_() and found.plot.cases()._repr_png_()  # without controls, and of a model alone


def test_what_fails_in_a_method_is_a_row_and_nothing_is_lost():
    def wrong(model, x, target):
        return x[:, :, ::2]

    def breaks(model, x, target):
        raise RuntimeError("no\nluck")

    found = diorama.evaluate(
        {"wrong": wrong, "breaks": breaks, "good": gradient}, model=network(), on=BIRDS, by="single_deletion", **QUIET
    )
    rows = found.rows.groupby("method")
    assert set(rows.get_group("good")["status"]) == {"ok"} and set(rows.get_group("wrong")["status"]) == {"error"}
    assert rows.get_group("wrong")["reason"].str.contains("heat map has shape").all()
    assert rows.get_group("breaks")["reason"].str.contains("RuntimeError: no luck").all()


def test_an_object_that_cannot_be_copied_or_pickled_is_used():
    class Held:
        def __init__(self):
            self.lock = __import__("threading").Lock()

        def attribute(self, x, target):
            return gradient(self.net, x, target)

        net = network()

    found = diorama.evaluate(Held(), model=network(), on=BIRDS, by="single_deletion", **QUIET)
    assert found.rows["status"].tolist() == ["ok"] * 4


def test_names_of_one_s_own_are_everywhere():
    found = diorama.evaluate(
        {"IG (ours)": "saliency", "theirs": "grad_cam"},
        model={"net": network()},
        on=BIRDS,
        by={"deletion": "single_deletion"},
        **QUIET,
    )
    assert set(found.table["method"]) == {"IG (ours)", "theirs"} and set(found.table["model"]) == {"net"}
    assert "IG (ours)" in repr(found) and "IG (ours)" in found._repr_html_() and "deletion" in repr(found)
    from diorama.report.words import plain

    figure = found.plot.methods()
    (axis,) = figure.axes
    assert (
        axis.get_yticklabels()[0].get_text()
        in (
            "IG (ours)",
            "theirs",
        )
        and axis.get_title() == "deletion on birds"
    )
    assert plain("IG (ours)") == "IG (ours)"
    same = diorama.evaluate(
        {"a": "saliency", "b": "saliency"}, model=network(), on=BIRDS, by="single_deletion", **QUIET
    )
    assert [pair["reason"] for pair in same.document["skipped"]] == ["it is the same as a"]


def test_results_are_read_again_without_building_anything(tmp_path):
    diorama.evaluate(
        {"mine": gradient},
        model=network(),
        on=BIRDS,
        by="single_deletion",
        out=tmp_path / "run",
        keep="maps",
        controls=True,
        **QUIET,
    )
    script = f"""if True:
        import sys, diorama
        r = diorama.Results.read({str(tmp_path / "run")!r})
        assert r.case("mine", 1).answer.shape == (64, 64, 3) and r.maps["mine"] and "mine" in r._repr_html_() and len(r.rows)
        assert r.case("oracle", 0).answer.shape == (64, 64)
        assert not any(m == "torch" or m.startswith(("diorama.worlds.", "diorama.methods.")) for m in sys.modules)
        print(r)"""
    read = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert read.returncode == 0, read.stderr
    assert "mine" in read.stdout
    again = diorama.Results.read(tmp_path / "run")
    for file in (tmp_path / "run").glob("cells/*/*/maps/*.npz"):
        file.unlink()
    with pytest.raises(InputError, match="object of another session"):
        again.case("mine", 1)
    with pytest.raises(InputError, match="no answers were stored"):
        _ = again.maps


@pytest.mark.slow
def test_maps_are_kept_by_the_command_line_and_by_processes(diorama, tmp_path):
    words = (
        "-w",
        "mondrian(size=32)",
        "-m",
        "ours=baseline",
        "-m",
        "retinex_gray",
        "-p",
        "lmse",
        "-n",
        "3",
        "-o",
        "run",
    )
    assert diorama("run", *words).returncode == 0
    kept = diorama("run", *words, "--keep", "maps", "--on", "local:2")  # the rows are there already, the maps are not
    assert kept.returncode == 0, kept.stderr
    from diorama import Results

    found = Results.read(tmp_path / "run")
    assert set(found.maps) == {"ours", "retinex_gray"} and len(found.maps["ours"]) == 3
    case = found.case("retinex_gray", 0)
    assert set(case.answer) == {"reflectance", "shading"} and case.answer["shading"].shape[:2] == (32, 32)
    assert case.show()._repr_png_() and "ours" in (tmp_path / "run" / "report.html").read_text()
    plan = json.loads(json.dumps((tmp_path / "run" / "plan.toml").read_text()))
    assert 'keep = "maps"' in plan and "ours=baseline" in plan


def test_a_plan_of_live_objects_says_so_on_the_command_line(diorama, tmp_path):
    import diorama as package

    package.evaluate({"mine": gradient}, model=network(), on=BIRDS, by="single_deletion", out=tmp_path / "run", **QUIET)
    result = diorama("run", "run/plan.toml", "-o", "run")
    assert result.returncode == 2 and "was an object of a Python session: call diorama.evaluate" in result.stderr
    page = package.Results.read(tmp_path / "run").report(tmp_path / "r.html").read_text()
    assert "objects of a Python session" in page and "Save the plan" not in page


def test_figures_are_fit_for_a_paper(tmp_path):
    found = diorama.evaluate(
        ["saliency", "input_x_gradient"], model=network(), on=BIRDS, by="single_deletion", controls=True, **QUIET
    )
    for name, figure in {
        "methods": found.plot.methods(),
        "doses": found.plot.doses(),
        "cases": found.plot.cases(),
    }.items():
        figure.savefig(tmp_path / f"{name}.pdf")
        figure.savefig(tmp_path / f"{name}.svg")
        text = (tmp_path / f"{name}.svg").read_text()
        assert "single deletion on birds" in text and "(size=64)" not in text and "saliency" in text  # text stays text
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    (axis,) = found.plot.doses().axes
    curve = axis.lines[0]
    assert list(curve.get_xdata()) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0] and curve.get_ydata()[0] == 1.0


@pytest.mark.parametrize("progress", [True, False])
def test_progress_goes_to_stderr_or_nowhere(progress, monkeypatch, capsys):
    from diorama import progress as bar

    monkeypatch.setattr(bar, "EVERY", 0.01)
    diorama.evaluate("baseline", on="mondrian(size=48)", by="lmse", cases=6, progress=progress)
    out, err = capsys.readouterr()
    assert out == "" and ("of 6 cases" in err) == progress


@pytest.mark.slow
def test_from_import_to_table_is_quick():
    """CPU seconds of a fresh interpreter, the renderer compiled: 16 birds, 3 gradient methods."""
    script = """if True:
        import diorama
        three = ["saliency", "input_x_gradient", "grad_cam"]
        print(diorama.evaluate(three, model="birds_cnn", on="birds", by="single_deletion", cases=16))"""
    diorama.evaluate(
        "saliency", model="birds_cnn", on="birds", by="single_deletion", cases=1, progress=False
    )  # compiles
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    assert spent < 15, f"{spent:.1f} CPU seconds, {time.perf_counter() - start:.1f} s"
