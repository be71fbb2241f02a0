"""TCAV: against a slow loop, against captum with the same CAVs, planted and random concepts, messages."""

import json
import warnings

import numpy as np
import pytest

from benchmarks.concepts import false_positives
from diorama.adapt.classifying import adapt
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.plan import Plan
from diorama.core.record import record
from diorama.core.run import create, work
from diorama.io.images import write_png
from diorama.metrics.cav import draw_sets, fit_cavs, gram, load_cavs
from diorama.metrics.tcav import (
    gram_cosines,
    permutation_test,
    scores_of,
    share,
    sign_tests,
    t_test,
)
from diorama.protocols.concepts.tcav.activations import activations, layer_gradients, layer_name
from diorama.report.summary import document, read_results
from tests.reference import tcav_loop

torch = pytest.importorskip("torch")

MODEL = '''
"""A logit that a red patch in the upper left corner drives."""
import torch


class Patch(torch.nn.Module):
    size = 32

    def __init__(self, scale=6.0):
        super().__init__()
        self.scale = scale
        self.pool, self.wave, self.flat = torch.nn.AvgPool2d(8), torch.nn.Tanh(), torch.nn.Flatten()
        self.dead = torch.nn.ReLU()

    def forward(self, x):
        cells = self.flat(self.wave(self.pool(x)))
        patch = torch.sigmoid(self.scale * (cells[:, 0] - 0.4))
        self.dead(-cells - 1.0)
        return torch.stack([0.1 * cells[:, 20:].sin().sum(1), patch + 0.01 * cells[:, 5:].cos().sum(1)], 1)


class Cut(Patch):
    def forward(self, x):
        return super().forward(x).detach()


class Flat(Patch):
    def forward(self, x):
        return self.flat(self.pool(x))[:, :2]


class Area(torch.nn.Module):
    """Regresses how large a sprite is from its area: too low where `share` is below 1, else too high."""
    size = 64

    def __init__(self, share=0.5):
        super().__init__()
        self.share, self.pool, self.flat = share, torch.nn.AvgPool2d(4), torch.nn.Flatten()

    def forward(self, x):
        return self.share * (16 * self.flat(self.pool(x)).mean(1, keepdim=True)).sqrt()


def plain(images):
    return images[:, :8, :8].mean((1, 2))[:, :2]
'''


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Folders of noise: with the patch, without, to test on; one with too few images, one of gray; and the model."""
    folder, random = tmp_path_factory.mktemp("tcav"), np.random.default_rng(0)
    counts = {"patch": 30, "others": 80, "tests": 40, "few": 7, "gray": 30}
    for name, count in counts.items():
        (folder / name).mkdir()
        for i in range(count):
            image = random.integers(0, 160, (32, 32, 3)).astype(np.uint8)
            if name == "patch":
                image[:8, :8] = (250, 20, 20)
            if name == "gray":
                image[:] = 128
            write_png(folder / name / f"{i:03d}.png", image)
    (folder / "mine.py").write_text(MODEL)
    return folder


def run(place, out, protocol, methods=("mean_difference",), model="Patch", cases=6, controls=False):
    """The summary document of a run, and its folder."""
    plan = Plan(
        worlds=[f"photo_folder(root={place}/tests, size=32)"],
        methods=list(methods),
        protocols=[protocol],
        models=[f"{place}/mine.py:{model}"],
        cases=cases,
        controls=controls,
    )
    made = create(out, plan)
    work(made, 0, 1)
    record(made)
    return document(read_results(out))


def spec(place, **more):
    given = {"concept": f"{place}/patch", "negatives": f"{place}/others", "target": 1, "layer": "pool"} | more
    return "tcav(" + ", ".join(f"{k}={v!r}" for k, v in given.items()) + ")"


def test_scores_equal_the_slow_loop_for_both_signs():
    svm = pytest.importorskip("sklearn.svm")
    random = np.random.default_rng(0)
    concept, others = random.normal(size=(20, 60)) + 0.3, random.normal(size=(50, 60))
    gradients = random.normal(size=(31, 60)) + 0.1
    draws = draw_sets(20, 50, 6, random)
    found = fit_cavs("linear_svm", concept, others, draws, random, held_out=0)
    for sign in (1, -1):
        slow = tcav_loop.tcav(
            gradients, concept, [others[b] for _, b in draws], lambda: svm.SVC(kernel="linear", tol=1e-7), sign
        )
        assert np.array_equal(share(found.directions @ gradients.T, sign), slow)
    rows = np.concatenate([concept, others])
    dual = share(scores_of(found.coefficients, gram(gradients, rows)), 1)
    assert np.array_equal(dual, share(found.directions @ gradients.T, 1))
    both = gram_cosines(found.coefficients, gram(rows))
    unit = found.directions / np.linalg.norm(found.directions, axis=1, keepdims=True)
    assert np.allclose(both, unit @ unit.T, atol=1e-4)


def test_captum_gives_the_same_scores_with_the_same_cavs(tmp_path):
    captum = pytest.importorskip("captum.concept")
    from captum.concept import Classifier

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 5, 2), torch.nn.ReLU(), torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(54, 3)
    ).eval()
    net.size = 32
    model = adapt(net, "net")
    random = np.random.default_rng(1)
    concept, others, tests = (random.random((n, 32, 32, 3), np.float32) for n in (12, 12, 25))
    a, b = (activations(model, x, "1") for x in (concept, others))
    cavs = fit_cavs("ridge", a, b, [(np.arange(12), np.arange(12))], random, held_out=0)

    class Same(Classifier):
        def __init__(self):
            pass

        def train_and_eval(self, dataloader, **_):
            return {}

        def weights(self):
            return torch.from_numpy(np.stack([cavs.directions[0], -cavs.directions[0]]))

        def classes(self):
            return [0, 1]

    x = [torch.from_numpy(one.transpose(0, 3, 1, 2).copy()) for one in (concept, others, tests)]
    sets = [captum.Concept(i, name, [x[i]]) for i, name in enumerate(("concept", "others"))]
    for target in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = captum.TCAV(net, "1", classifier=Same(), save_path=str(tmp_path)).interpret(
                x[2], [sets], target=target
            )
        theirs = float(next(iter(peer.values()))["1"]["sign_count"][0])
        gradients = layer_gradients(model, tests, np.zeros(25), "1", lambda out, _, t=target: out[:, t])
        assert float(share(cavs.directions @ gradients.T, 1)[0]) == pytest.approx(theirs, abs=1e-6)


def test_a_planted_concept_is_found_by_every_trainer(place, tmp_path):
    methods = ["mean_difference", "ridge", "linear_svm", "logistic", "hinge_sgd"]
    found = run(place, tmp_path / "run", spec(place, permutations=39, vectors=True), methods)
    for cell in found["cells"]:
        shown = {m: s["mean"] for m, s in cell["summary"].items()}
        assert shown["tcav"] >= 0.95, cell["method"]
        assert shown["accuracy"] > 0.8 and shown["auc"] > 0.9 and shown["stability"] > 0.6, cell["method"]
        assert shown["permutation_p"] <= 0.05, cell["method"]
        assert cell["summary"]["agreement"]["n_undefined"] == 6
    kept = sorted((tmp_path / "run").rglob("keep/run-000.npz"))
    assert len(kept) == len(methods)
    cavs, meta = load_cavs(kept[0])
    assert meta["layer"] == "pool" and cavs.directions.shape == (1, 48)
    assert int(cavs.directions[0].argmax()) == 0  # the red of the first cell


def test_a_loss_counts_where_it_falls_and_relative_concepts_swap(place, tmp_path):
    loss = run(place, tmp_path / "loss", spec(place, gradient="loss", permutations=19))
    assert loss["cells"][0]["summary"]["tcav"]["mean"] >= 0.95
    swapped = spec(place, concept=f"{place}/others", negatives=f"{place}/patch", permutations=19)
    assert run(place, tmp_path / "swapped", swapped)["cells"][0]["summary"]["tcav"]["mean"] <= 0.05


@pytest.mark.parametrize(
    ("gradient", "share", "expected"), [("logit", 0.5, 1.0), ("loss", 0.3, 1.0), ("loss", 3.0, 0.0)]
)
def test_a_regression_by_its_output_and_by_its_error(place, tmp_path, gradient, share, expected):
    """Larger sprites raise the output; they lower the squared error of a model that says too little, and only of that."""
    truth = {"gradient": "loss", "factor": "scale"} if gradient == "loss" else {"target": 0}
    given = {"concept": "sprites", "do": "scale=1.0", "negatives_do": "scale=0.5", "layer": "pool", "permutations": 39}
    protocol = "tcav(" + ", ".join(f"{k}={v!r}" for k, v in (given | truth).items()) + ")"
    plan = Plan(["sprites"], ["mean_difference"], [protocol], [f"{place}/mine.py:Area(share={share})"], cases=3)
    made = create(tmp_path / "run", plan)
    work(made, 0, 1)
    record(made)
    (cell,) = document(read_results(tmp_path / "run"))["cells"]
    assert cell["summary"]["tcav"]["mean"] == pytest.approx(expected, abs=0.05)
    assert cell["summary"]["agreement"]["mean"] >= 0.95
    assert cell["summary"]["permutation_p"]["mean"] <= 0.05


def test_a_factor_that_is_not_there_or_no_number_is_said(place, tmp_path):
    def plan(factor):
        protocol = f"tcav(concept=sprites, do='scale=1.0', layer=pool, gradient=loss, factor={factor}, permutations=9)"
        return Plan(["sprites"], ["mean_difference"], [protocol], [f"{place}/mine.py:Area"], cases=1)

    with pytest.raises(InputError, match=r"no factor 'scal'; did you mean 'scale'"):
        create(tmp_path / "no", plan("scal"))
    made = create(tmp_path / "word", plan("shape"))
    work(made, 0, 1)
    (text,) = (path.read_text() for path in (tmp_path / "word").rglob("rows/*.jsonl"))
    assert "factor 'shape' is '" in text and "which is no number" in text


def test_wide_layers_go_through_a_file_and_give_the_same(place, tmp_path, monkeypatch):
    held = run(place, tmp_path / "held", spec(place, permutations=19), cases=2)
    monkeypatch.setattr("diorama.protocols.concepts.wide.IN_MEMORY", 1000)
    made = []
    room = np.memmap
    monkeypatch.setattr(np, "memmap", lambda *given, **more: made.append(more["shape"]) or room(*given, **more))
    filed = run(place, tmp_path / "filed", spec(place, permutations=19), cases=2)
    assert made == [(110, 48)]
    assert filed["cells"][0]["summary"] == held["cells"][0]["summary"]


def test_a_runs_cells_are_one_family_of_tests(place, tmp_path):
    """Adjusted p: never below p, and as SciPy adjusts all cells of the run together."""
    from scipy.stats import false_discovery_control

    found = run(
        place, tmp_path / "run", spec(place, permutations=39), ["mean_difference", "ridge", "logistic"], cases=3
    )
    p, q = ([cell["summary"][f"permutation_{k}"]["mean"] for cell in found["cells"]] for k in "pq")
    assert np.allclose(q, false_discovery_control(p))


def test_a_run_resumes_and_gives_the_same_rows(place, tmp_path):
    first = run(place, tmp_path / "a", spec(place, permutations=19), cases=3)
    again = run(place, tmp_path / "b", spec(place, permutations=19), cases=9)
    more = run(place, tmp_path / "a", spec(place, permutations=19), cases=9)
    assert first["cells"][0]["cases"] == 3

    def values(doc):
        return {m: s["mean"] for m, s in doc["cells"][0]["summary"].items()}

    assert json.dumps(values(again)) == json.dumps(values(more))


def test_what_cannot_be_is_said_in_one_line(place, tmp_path):
    def refused(match, **more):
        model = more.pop("model", "Patch")
        with pytest.raises(InputError, match=match) as caught:
            run(place, tmp_path / "no", spec(place, **more), model=model)
        assert "\n" not in str(caught.value)

    refused(r"no layer 'pol'; did you mean 'pool'\? It has: pool, wave, flat", layer="pol")
    refused(r"no layer 'xyz'; there are: dead, flat, pool, wave", layer="xyz")
    refused(r"few has 7 images, fewer than the 20 .* min_images=7", concept=f"{place}/few")
    refused(r"there is no folder .*nowhere", concept=f"{place}/nowhere")
    refused(r"mean_difference needs gradients, which .*plain.*, a function, does not have", model="plain")
    refused(r"images=1: give a number at least 2", images=1)
    refused(r"factor='x' is the truth of a loss", factor="x")


def test_what_has_no_score_is_a_row_with_a_reason(place, tmp_path):
    def reason(name, **more):
        model = more.pop("model", "Patch")
        out = tmp_path / name
        run(place, out, spec(place, permutations=9, **more), model=model, cases=1)
        lines = [json.loads(line) for path in out.rglob("rows/*.jsonl") for line in path.read_text().splitlines()]
        return next((row["status"], row["reason"]) for row in lines if row["metric"] == "tcav")

    same = {"concept": f"{place}/gray", "negatives": f"{place}/gray"}
    assert reason("gray", **same) == (
        "undefined",
        "activations are constant over the images of a CAV: no direction parts them",
    )
    assert reason("gray and linear", model="Flat", **same)[1].startswith("activations are constant")
    status, why = reason("cut", model="Cut")
    assert status == "error" and "does not depend on layer 'pool' in a differentiable way" in why
    status, why = reason("dead", layer="dead")
    assert status == "error" and "does not depend on layer 'dead'" in why


def test_the_contract_holds_where_do_tells_the_truth_and_lets_off_pictures():
    from diorama.testing import protocols

    small = "images=20, pool=20, tests=4, permutations=3"
    known = build("protocol", f"tcav(concept=birds, do='beak=2', negatives_do='beak=none', {small})")
    assert protocols.oracle_reaches_the_top(known) == protocols.random_is_worse_than_the_oracle(known) == ""
    pictures = build("protocol", f"tcav(concept=birds, {small})")
    assert pictures.object.no_oracle and protocols.oracle_reaches_the_top(pictures) == ""


def test_layers_by_default_and_by_name(place):
    torch.manual_seed(0)
    model = adapt(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 224 * 224, 2)), "net")
    assert layer_name(model, None) == "1" and layer_name(model, "0") == "0"


def test_random_concepts_are_rarely_significant_by_permutation_and_often_by_the_t_test(capsys):
    rates = false_positives("mean_difference", concepts=100)
    with capsys.disabled():
        print(f"\nfalse positives over 100 random concepts: {rates}")
    assert rates["permutation_false_positives_bh"] <= 0.05
    assert rates["permutation_false_positives"] <= 0.05 + 2 * (0.05 * 0.95 / 100) ** 0.5
    assert rates["t_test_false_positives"] > rates["permutation_false_positives"]


def test_the_permutation_test_finds_a_real_concept():
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 20)).astype(np.float32)
    rows[:20, 0] += 3
    gradients = (random.normal(size=(30, 20)) + 3 * np.eye(20)[0]).astype(np.float32)
    draws = [(a, 20 + b) for a, b in draw_sets(20, 40, 5, random)]
    found = permutation_test("ridge", gram(rows), gram(gradients, rows), draws, 1, random, 99)
    assert found.p == 0.01 and len(found.null) == 99
    exact = fit_cavs("ridge", rows[:20], rows[20:], [(a, b - 20) for a, b in draws], random, held_out=0.0)
    unit = exact.directions / np.linalg.norm(exact.directions, axis=1, keepdims=True)
    assert found.observed == pytest.approx((gradients @ unit.T).mean(), rel=1e-4)
    assert (share(exact.directions @ gradients.T, 1) > 0.95).all()


def test_one_cav_is_tested_by_its_signs_as_scipy_does():
    stats = pytest.importorskip("scipy.stats")
    random, found = np.array([0.3, 0.6, 0.4]), sign_tests(np.array([0.9, 0.5, 0.0]), np.array([0.3, 0.6, 0.4]), 10)
    pool = np.concatenate([np.arange(10) < round(10 * s) for s in random]).astype(float)
    theirs = [stats.ttest_ind((np.arange(10) < n).astype(float), pool).pvalue for n in (9, 5, 0)]
    np.testing.assert_allclose(found, theirs)
    np.testing.assert_array_equal(sign_tests(np.array([1.0, 0.0]), np.ones(3), 10), [np.nan, 0.0])


def test_a_t_test_of_constant_samples_is_certain_and_of_one_value_unknown():
    assert t_test(np.full(4, 0.9), np.full(4, 0.5)) == 0.0 and np.isnan(t_test(np.ones(1), np.ones(4)))
