"""CSM, planted leaks and response invariance: against slow loops, analytic cases, the paper's own arithmetic."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diorama.core.answers import Layers
from diorama.core.bench import Asked, Bench
from diorama.core.catalogue import build
from diorama.core.contracts import Layered
from diorama.core.controls import Oracle
from diorama.core.errors import InputError, Undefined
from diorama.core.frame import Frame
from diorama.core.memory import Memory
from diorama.core.plan import Cell, Plan, expand
from diorama.core.record import Record, record
from diorama.core.rows import Row
from diorama.core.run import create, work
from diorama.core.scene import Scene, rng
from diorama.core.spec import Spec
from diorama.core.summary import Settled
from diorama.methods.decompose.leak import Leak
from diorama.metrics.cav import draw_sets, split
from diorama.metrics.csm import log_ratio, mean_of_ratios, ratio_of_averages, resampled, smoothed
from diorama.protocols.concepts.csm.gram import chance_scores
from diorama.protocols.concepts.csm.summary import FLOORED, condense
from diorama.report.summary import CellResult, document, read_results
from studies.concepts import doses, tables
from studies.concepts import published as paper
from tests.reference import csm_loop

SETS = "concepts(scenes=2, images=6, size=16, samples=32, specular=False, fill=0.6)"
SMALL = {"test": "test_scenes(samples=8)", "negatives": "random_scenes", "tests": 5, "randoms": 14, "runs": 4}
shares = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def sets():
    return build("world", SETS)


def csm(variant="corrected", **params):
    """The protocol as the catalogue makes it."""
    return build("protocol", Spec("csm", {"variant": variant, **params})).object


def bench_of(world, method, protocol, index=0):
    """The bench and case of one set."""
    shown = build("protocol", "csm")
    cell = Cell(world, None, build("method", method), shown, 0, index + 1)
    case = protocol.case(world.object, 0, index)
    return Bench(world, None, cell.asked, protocol, case, Memory()), case


def scores(world, method, protocol, index=0):
    """Every metric of one set."""
    return {s.metric: s for s in protocol.score(*bench_of(world, method, protocol, index))}


# The formulas


@given(shares, st.integers(1, 200))
def test_smoothed_shares_stay_inside(values, n):
    found = smoothed(np.array(values), n)
    assert ((found > 0) & (found < 1)).all()
    assert log_ratio(np.array(values), np.array(values)[::-1], n) == pytest.approx(
        -log_ratio(np.array(values)[::-1], np.array(values), n), abs=1e-12
    )


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_a_draw_of_everything_once_is_the_share_itself(images, cavs, seed):
    negative = np.random.default_rng(seed).random((images, cavs)) < 0.5
    assert resampled(negative, np.ones((1, images)), np.ones((1, cavs)))[0] == pytest.approx(negative.mean())


def test_a_zero_denominator_has_no_ratio():
    assert np.isnan(ratio_of_averages(np.array([0.5]), np.array([0.0])))
    assert np.isnan(mean_of_ratios(np.array([0.5]), np.array([0.0])))
    assert np.isfinite(log_ratio(np.array([0.5]), np.array([0.0]), 10))


def test_the_papers_tables_are_ratios_of_averages_and_means_of_settings():
    """Spec 4.3: which arithmetic fits the printed tables, and where none does."""
    ratios = {}
    for model, (wild, stereo, overall) in paper.TABLE3.items():
        for (r, s, printed), name in ((wild, "wild"), (stereo, "stereo")):
            ratios[model, name] = abs(ratio_of_averages(np.array([s]), np.array([r])) - printed)
        assert np.mean([wild[2], stereo[2]]) == pytest.approx(overall, abs=1e-3)
    assert {at for at, off in ratios.items() if off > 2e-3} == {("USI3D", "wild")}
    for values in paper.TABLE2.values():
        for row in values:
            assert np.mean(row[:4]) == pytest.approx(row[4], abs=1.1e-3)
    assert [abs(np.mean(s[:4]) - s[4]) > 0.004 for s, *_ in paper.TABLE1.values()] == [True] * 3
    assert all(abs(np.mean(r[:4]) - r[4]) < 1e-3 for _, r, *_ in paper.TABLE1.values())


# Planted leaks


def staged(shape=(4, 5), seed=0):
    draw = np.random.default_rng(seed)
    reflectance, shading = (draw.uniform(0.1, 1, (*shape, 3)).astype(np.float32) for _ in range(2))
    truth = {"mask": np.ones(shape, bool), "reflectance": reflectance, "shading": shading}
    return Frame(Scene("made", {"seed": seed}), reflectance * shading, "linear", truth)


@given(st.floats(0, 1), st.sampled_from(["reflectance", "shading"]), st.floats(0.1, 10))
def test_a_leak_keeps_the_product(alpha, into, factor):
    frame = staged()
    layers = Leak(alpha, into, factor).decompose([frame])
    np.testing.assert_allclose(layers.reflectance * layers.shading, frame.image, rtol=1e-5)


def test_a_leak_is_what_it_says():
    frame = staged()
    r, s = frame.truth["reflectance"], frame.truth["shading"]
    none, some = Leak(0.0).decompose([frame]), Leak(0.3).decompose([frame])
    assert (none.reflectance == r).all()
    assert (none.shading == s).all()
    np.testing.assert_allclose(some.reflectance, r * s**0.3, rtol=1e-5)
    np.testing.assert_allclose(some.shading, s**0.7, rtol=1e-5)
    other = Leak(0.3, "shading").decompose([frame])
    np.testing.assert_allclose(other.shading, s * r**0.3, rtol=1e-5)
    np.testing.assert_allclose(other.reflectance, r**0.7, rtol=1e-5)


def test_a_leak_needs_truth_and_a_share():
    bare = Frame(Scene("photo", {}), np.ones((2, 2, 3), np.float32), "srgb")
    with pytest.raises(InputError, match="true reflectance and shading, which photo does not have"):
        Leak(0.5).decompose([bare])
    for wrong in ("alpha=1.5", "alpha=-0.1", "scale=0.0"):
        with pytest.raises(InputError, match="leak: "):
            _ = build("method", f"leak({wrong})").object


# Response invariance


@pytest.mark.parametrize(("into", "index"), [("reflectance", 1), ("shading", 0)])
def test_a_leak_of_alpha_has_an_invariance_of_alpha_squared(sets, into, index):
    """Where R̂ = R·S^α exactly and the image has no highlights; gray paint and light would make it exact."""
    protocol = build("protocol", "response_invariance").object
    for alpha in (0.0, 0.5, 1.0):
        found = scores(sets, f"leak(alpha={alpha}, into={into}, scale=3.0)", protocol, index)
        assert found[f"invariance_{into}"].value == pytest.approx(alpha**2, abs=0.05)
        other = {"reflectance": "shading", "shading": "reflectance"}[into]
        assert found[f"invariance_{other}"].status == "excluded"


def test_a_constant_answer_is_invariant_and_has_no_texture(sets):
    protocol = build("protocol", "response_invariance").object
    found = scores(sets, "constant", protocol, 1)
    assert found["invariance_reflectance"].value == pytest.approx(0, abs=1e-12)
    assert found["texture_reflectance"].value == pytest.approx(0, abs=1e-12)


def test_response_invariance_reads_saved_predictions(sets, tmp_path):
    protocol = build("protocol", "response_invariance").object
    name, concept = sets.object.scene(1)
    (tmp_path / name).mkdir()
    for i, frame in enumerate(sets.object.render(sets.object.members(concept))):
        layers = Leak(0.5).decompose([frame])
        np.savez(tmp_path / name / f"{i:03d}.npz", reflectance=layers.reflectance, shading=layers.shading)
    saved = scores(sets, f"decompose/predictions(folder={tmp_path})", protocol, 1)
    direct = scores(sets, "leak(alpha=0.5)", protocol, 1)
    assert saved["invariance_reflectance"].value == pytest.approx(direct["invariance_reflectance"].value)


def test_worlds_without_sets_are_refused():
    for name in ("csm", "response_invariance"):
        with pytest.raises(InputError, match="needs a world of concept sets, like concepts"):
            expand(Plan(["mondrian"], ["constant"], [name]))


# CSM against loops


@pytest.mark.parametrize("variant", ["published", "corrected"])
@pytest.mark.parametrize("index", [0, 1])
def test_sensitivities_are_those_of_the_loop(sets, variant, index):
    protocol = csm(variant, trainer="mean_difference", p=1.01, **SMALL)
    found = scores(sets, "leak(alpha=0.4)", protocol, index)
    bench, case = bench_of(sets, "leak(alpha=0.4)", protocol, index)
    method, world = Leak(0.4), sets.object
    concept = world.scene(index)[1]
    change, mark = concept.params["change"], {"albedo": "a", "light": "i"}[concept.params["change"]]
    others = (
        world.render(world.members(world.opposite(concept))) if variant == "corrected" else _frames("negatives", 14)
    )
    for branch in ("reflectance", "shading"):
        positives, negatives = (
            [getattr(method.decompose([f]), branch).ravel() for f in frames]
            for frames in (world.render(world.members(concept)), others)
        )
        gradients = [
            csm_loop.residual(getattr(method.decompose([f]), branch), f.truth[branch], f.mask, variant == "corrected")
            for f in _frames("test", 5)
        ]
        draw = rng(0, "csm", case.key, branch)
        drawn = draw_sets(len(positives), len(negatives), 4, draw)
        parts = [[split(side, 0.33, draw) for side in pair] for pair in drawn]
        expected = []
        for (train, _), (rest, _) in parts:
            direction = csm_loop.cav([positives[i] for i in train], [negatives[i] for i in rest])
            expected.append(csm_loop.sensitivity(gradients, direction))
        assert found[f"runs_{branch[0]}"].value == pytest.approx(expected, abs=1e-5), (branch, change)
        assert found[f"{branch[0]}_{mark}"].value == pytest.approx(np.mean(expected), abs=1e-5)
    assert bench.case == case


def _frames(which, count):
    world = build(
        "world", {"test": "test_scenes(samples=8, size=16)", "negatives": "random_scenes(size=16)"}[which]
    ).object
    return world.render([world.scene(i)[1] for i in range(count)])


def test_the_scale_of_an_answer_turns_the_published_score_and_not_the_corrected_one(sets):
    def both(variant, factor):
        protocol = csm(variant, trainer="mean_difference", p=1.01, **SMALL)
        found = scores(sets, f"leak(alpha=0.4, scale={factor})", protocol, 1)
        return [found["r_i"].value, found["s_i"].value]

    assert both("corrected", 1.0) == pytest.approx(both("corrected", 4.0), abs=1e-9)
    assert both("published", 1.0) != pytest.approx(both("published", 4.0), abs=0.3)


def test_the_truth_has_no_residual_and_no_sensitivity(sets):
    protocol = csm("corrected", **SMALL)
    bench, case = bench_of(sets, "leak(alpha=0.0)", protocol)
    with pytest.raises(Undefined, match="reflectance of all test images is the truth"):
        list(protocol.score(bench, case))
    oracle = Oracle(protocol)
    with pytest.raises(Undefined, match="no residual"):
        list(
            protocol.score(
                Bench(sets, None, Asked(oracle, "oracle", ({},), lambda p: oracle), protocol, case, Memory()), case
            )
        )


def test_every_cav_iteration_is_tested_and_those_that_pass_are_averaged(sets):
    """A set whose iterations disagree: one test of all takes the mean of twenty, the paper's text that of seventeen."""
    options = {**SMALL, "runs": 20, "trainer": "mean_difference", "p": 0.3}
    protocol = csm("published", **options)
    found, once = (
        scores(sets, "leak(alpha=0.4)", x) for x in (protocol, csm("published", **options, significance="set"))
    )
    space = protocol.spaces(*bench_of(sets, "leak(alpha=0.4)", protocol))["shading"]
    chance = chance_scores(space.table, "mean_difference", 6, 20)
    value, share = csm_loop.significant(found["runs_s"].value, chance, 5, 0.3)
    assert (found["s_a"].value, found["passed_s"].value) == pytest.approx((value, share)) and share < 1
    assert np.mean(found["draws_s"].value) == pytest.approx(value, abs=0.03)
    assert once["s_a"].value == pytest.approx(np.mean(found["runs_s"].value)) and once["s_a"].value > value + 0.05
    said = [x.settings(sets.object)["significance"] for x in (protocol, csm("published", significance="set"))]
    assert "every CAV" in said[0] and "one t-test of a set" in said[1]


def test_insignificant_sensitivities_are_left_out_or_floored(sets):
    left = scores(sets, "leak(alpha=0.4)", csm("published", p=0.0, **SMALL))["r_a"]
    floored = scores(sets, "leak(alpha=0.4)", csm("published", p=0.0, floor=0.01, **SMALL))["r_a"]
    assert (left.status, left.value) == ("undefined", None)
    assert (floored.status, floored.value) == ("ok", 0.01)
    assert floored.reason.startswith(FLOORED)


@dataclass
class Linear(Layered):
    """A network whose one inner layer is the image times a weight: reflectance w·I, shading 1 − w·I."""

    branches = ("reflectance", "shading")
    layers = ("scaled",)

    def decompose(self, frames):
        image = frames[0].linear()
        return Layers(0.5 * image, 1 - 0.5 * image)

    def features(self, frames, branch, layer):
        return np.array([0.5 * f.linear().ravel() for f in frames], np.float32)

    def loss_grad(self, frames, branch, layer, truths):
        sign = 1 if branch == "reflectance" else -1
        answers = [getattr(self.decompose([f]), branch) for f in frames]
        pairs = zip(answers, truths, strict=True)
        return np.array([(sign * 2 / a.size * (a - np.broadcast_to(t, a.shape))).ravel() for a, t in pairs], np.float32)


def test_inner_layers_go_through_the_networks_own_gradients(sets):
    asked = Asked(Linear(), "linear", ({},), lambda p: Linear())
    found = {}
    for layer in ("scaled", "output"):
        protocol = csm("published", layer=layer, trainer="mean_difference", p=1.01, **SMALL)
        case = protocol.case(sets.object, 0, 0)
        found[layer] = {
            s.metric: s.value for s in protocol.score(Bench(sets, None, asked, protocol, case, Memory()), case)
        }
    assert found["scaled"]["runs_r"] == found["output"]["runs_r"]  # the layer is the reflectance itself
    assert found["scaled"]["runs_s"] == found["output"]["runs_s"]  # both the activation and the gradient change sign


@pytest.mark.parametrize(("layer", "method", "said"), [
    ("scald", Linear(), "no layer 'scald'; did you mean 'scaled'"),
    ("conv1", Leak(0.5), "Leak gives no gradients: take layer=output"),
])  # fmt: skip
def test_a_layer_that_does_not_exist_is_named(sets, layer, method, said):
    protocol = csm("corrected", layer=layer, **SMALL)
    case = protocol.case(sets.object, 0, 0)
    with pytest.raises(InputError, match=said):
        list(
            protocol.score(
                Bench(sets, None, Asked(method, "m", ({},), lambda p: method), protocol, case, Memory()), case
            )
        )


def test_long_passes_say_how_far_they_are(sets, capsys, monkeypatch):
    monkeypatch.setattr("diorama.core.bench.SAY_EVERY", 0.0)
    protocol, method = csm("published", tests=2, randoms=40, runs=2), build("method", "leak(alpha=0.4)").object
    asked = Asked(method, "patience", ({},), lambda p: method)
    case = protocol.case(sets.object, 0, 0)
    list(protocol.score(Bench(sets, None, asked, protocol, case, Memory()), case))
    said = [line for line in capsys.readouterr().err.splitlines() if "random_scenes" in line]
    assert [line.split(" images")[0] for line in said] == [f"diorama: {n} of 40" for n in (16, 24, 32)]
    assert all(line.endswith("minutes left") for line in said)


def counted_passes(monkeypatch, network):
    """How often each frame goes through a network, and each random scene through the renderer."""
    from collections import Counter

    from diorama.worlds.concepts.random_scenes import RandomScenes

    seen, rendered = Counter(), Counter()
    through, draw = network.outputs, RandomScenes.render
    monkeypatch.setattr(
        network, "outputs", lambda self, frame, module: seen.update([frame.scene.key]) or through(self, frame, module)
    )
    monkeypatch.setattr(
        RandomScenes, "render", lambda self, scenes: rendered.update(s.key for s in scenes) or draw(self, scenes)
    )
    return seen, rendered


FEW_IMAGES = "test='test_scenes(scenes=2, lights=2, samples=2)', negatives='random_scenes(count=10, samples=2)', runs=2"


def test_images_pass_once_for_all_layers_variants_and_branches_of_a_run(tmp_path, monkeypatch):
    """Four inner layers × two variants: every test image, negative and member of a set goes through the network once, and
    once more through its twin for the answer, which test images need for the loss; the values are those of one alone.
    """
    from diorama.methods.decompose.iid.passes import HookedNetwork

    seen, rendered = counted_passes(monkeypatch, HookedNetwork)
    layers = [
        f"csm(layer={layer}, variant={variant}, {FEW_IMAGES})"
        for layer in ("encoder2", "decoder1", "decoder4", "decoder5")
        for variant in ("published", "corrected")
    ]
    plan = Plan(["concepts(scenes=2, images=4, size=16, samples=2)"], ["iid_supervised"], layers, cases=2)
    run = create(tmp_path / "run", plan)
    work(run, 0, 1)
    assert list(seen.values()).count(2) == 4 and set(seen.values()) == {1, 2} and len(seen) > 4 + 10
    assert set(rendered.values()) == {1} and len(rendered) == 10
    seen.clear()
    alone = create(tmp_path / "alone", Plan(plan.worlds, plan.methods, layers[:1], cases=2))
    work(alone, 0, 1)
    values = [[(r.metric, r.value) for r in x.rows(x.cells[0])] for x in (run, alone)]
    assert values[0] == values[1] and len(values[0]) > 30


def test_products_of_two_sets_are_those_of_all_rows_together():
    from diorama.metrics.cav import gram
    from diorama.protocols.concepts.csm.gram import Space, Table

    draw, kept = np.random.default_rng(0), {}
    rows = {n: draw.normal(size=(k, 50)).astype(np.float32) for n, k in (("set", 3), ("partner", 4), ("stranger", 2))}
    gradients, negatives = (draw.normal(size=(k, 50)).astype(np.float32) for k in (5, 6))
    table = Table(gradients, negatives, gram(negatives), gram(gradients, negatives))
    asked = []

    def keep(pair, compute):
        asked.append(pair)
        return kept.setdefault(pair, compute()) if pair not in kept else kept[pair]

    reads = {n: (lambda n=n: rows[n]) for n in rows}
    space = Space.of(table, reads, keep)
    every = np.concatenate([*rows.values(), negatives])
    np.testing.assert_allclose(space.products, gram(every), atol=1e-4)
    np.testing.assert_allclose(space.cross, gram(gradients, every), atol=1e-4)
    assert {n: list(place) for n, place in space.places.items()} == {
        "set": [0, 1, 2], "partner": [3, 4, 5, 6], "stranger": [7, 8], "negatives": list(range(9, 15)),
    }  # fmt: skip
    again = Space.of(table, dict.fromkeys(rows), lambda pair, compute: kept[pair])  # nothing is read again
    assert np.array_equal(again.products, space.products)


@pytest.mark.parametrize(("method", "layer", "said"), [
    ("iid_supervised", "decoder6", r"no layer 'decoder6'; did you mean 'decoder5'"),
    ("iid_supervised", "decoder", r"no layer 'decoder'"),
    ("constant", "conv1", r"Constant gives no gradients: take layer=output"),
    ("retinex_color", "output", r"give RetinexColor its parameters \(brightness, chroma\)"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused_before_the_run(tmp_path, method, layer, said):
    plan = Plan(["concepts(size=32, images=4)"], [method], [f"csm(layer={layer})"], cases=1)
    with pytest.raises(InputError, match=said):
        create(tmp_path / "run", plan)


@pytest.mark.parametrize("wrong", [{"trainer": "svm"}, {"runs": 1}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(InputError, match="csm: "):
        csm(**wrong)


# From rows to numbers


def rows_of(case, change, r, s, floored=False):
    other = {"a": "i", "i": "a"}[change]
    made = [Row("c", case, f"{b}_{other}", None, "excluded", "other") for b in "rs"]
    for branch, value in (("r", r), ("s", s)):
        if value is None:
            made.append(Row("c", case, f"{branch}_{change}", None, "undefined", "not significant"))
        else:
            made.append(Row("c", case, f"{branch}_{change}", value, reason=FLOORED if floored else ""))
        draws = [max((value if value is not None else 0.3) + step, 0.0) for step in (-0.05, 0.0, 0.0, 0.05)]
        made += [Row("c", case, f"{name}_{branch}", draws, at="run") for name in ("runs", "draws")]
    return [*made, Row("c", case, "tests", 20.0)]


def test_published_ratios_are_of_averages():
    rows = rows_of("x", "i", 0.2, 0.6) + rows_of("y", "i", None, 0.2) + rows_of("z", "a", 0.9, 0.3)
    found = condense(rows, "ratio_of_averages").derived
    assert found["csm_r"].mean == pytest.approx(2.0)  # (.6 + .2)/2 over .2
    assert found["csm_s"].mean == pytest.approx(3.0)
    assert (found["csm_r"].n_ok, found["csm_r"].n_undefined, found["csm_r"].n_excluded) == (1, 1, 1)
    assert found["csm_r"].lo is None  # two sets, and one without a ratio
    more = rows + [r for i, (a, b) in enumerate([(0.3, 0.5), (0.25, 0.7)]) for r in rows_of(f"w{i}", "i", a, b)]
    wider = condense(more, "ratio_of_averages").derived["csm_r"]
    assert 0 < wider.lo < wider.mean < wider.hi


def test_a_zero_denominator_is_no_number_and_the_corrected_one_is():
    shares = {"x": 0.6, "y": 0.5, "z": 0.75}
    rows = [row for case, share in shares.items() for row in rows_of(case, "i", 0.0, share)]
    assert condense(rows, "ratio_of_averages").derived["csm_r"].mean is None
    found = condense(rows, None).derived["log_csm_r"]
    assert found.mean == pytest.approx(np.mean([np.log((s * 20 + 0.5) / 0.5) for s in shares.values()]))
    assert found.lo <= found.mean <= found.hi


def test_floored_sets_count_with_the_floor():
    rows = rows_of("x", "i", 0.01, 0.5) + rows_of("y", "i", 0.01, 0.01, floored=True)
    assert condense(rows, "ratio_of_averages").derived["csm_r"].mean == pytest.approx(0.255 / 0.01)


def test_a_run_is_summarised_and_goes_on_where_it_ended(sets, tmp_path):
    text = "csm(variant={}, test='test_scenes(samples=8)', tests=5, randoms=14, runs=4, p=1.01)"
    plan = Plan([SETS], ["leak(alpha=0.4)"], [text.format("corrected"), text.format("published")], cases=2)
    run = create(tmp_path / "run", plan)
    work(run, 0, 1)
    record(run)
    assert not any(run.missing(cell) for cell in run.cells)
    corrected, published = document(read_results(run.folder))["cells"]
    assert corrected["summary"]["log_csm_r"]["n_ok"] == 1
    assert corrected["summary"]["log_csm_s"]["lo"] is None  # a single set
    assert published["summary"]["csm_r"]["n_excluded"] == 1
    assert len(published["grid"]["points"]) == 4
    assert 0 <= published["summary"]["cos_concepts"]["mean"] <= 1


def test_the_report_says_whether_the_papers_order_is_reproduced():
    from diorama.report.notes import world_notes
    from diorama.report.sections import Line, Section

    def section(means):
        values = {"iid_timelapse": 0.878, "iid_translation": 0.552, "iid_supervised": 1.544}
        result = CellResult(Path(), {"derived": ["csm_r"], "metrics": ["r_a"]}, [], Record(Settled([], {})), 1)
        lines = [
            Line(result, {"method": m, "control": "", "paper": {"csm_r": values[m]}, "summary": {"csm_r": _mean(v)}})
            for m, v in means.items()
        ]
        return Section("", "sets", None, "csm", lines, None)

    *_, same = world_notes(section({"iid_timelapse": 1.0, "iid_translation": 0.5, "iid_supervised": 2.0}))
    *_, other = world_notes(section({"iid_timelapse": 1.0, "iid_translation": 3.0, "iid_supervised": 2.0}))
    assert same.endswith("the paper's order is reproduced.")
    assert "iid_supervised 2.0000 [1.9000, 2.1000] > iid_timelapse" in same
    assert other.endswith("not reproduced (iid_supervised > iid_timelapse > iid_translation).")


def _mean(value):
    return {"mean": value, "lo": value - 0.1, "hi": value + 0.1}


# The dose study


def dose_rows(values, metric="lmse"):
    """Rows by α of scenes whose score at every α is given."""
    found = {}
    for k, alpha in enumerate(doses.ALPHAS):
        found[alpha] = [
            Row("c", f"scene {i}", metric, v[k])
            if v[k] is not None
            else Row("c", f"scene {i}", metric, None, "undefined", "x")
            for i, v in enumerate(values)
        ]
    return found


def test_scores_that_follow_and_scores_that_do_not():
    reading = next(r for r in doses.readings("published", "corrected", 20) if r.name == "LMSE")
    rising, falling, still = np.arange(8.0), -np.arange(8.0), np.ones(8)
    found = doses.follow(reading, dose_rows([rising, rising**2, rising**3]), "reflectance")
    assert (found.rho == 1).all()
    assert found.verdict == "follows"
    assert doses.follow(reading, dose_rows([falling] * 3), "shading").verdict == "against it"
    assert doses.follow(reading, dose_rows([still, still]), "shading").rho.tolist() == [0.0, 0.0]
    few = [None] * 5 + [1.0, 2.0, 3.0]
    assert doses.follow(reading, dose_rows([few, rising]), "shading").scenes == 2
    assert len(doses.follow(reading, dose_rows([few, rising]), "shading").rho) == 1


def test_the_dose_figure_shows_every_score_and_marks_the_truth(tmp_path):
    reading = next(r for r in doses.readings("published", "corrected", 20) if r.name == "LMSE")
    rising = np.arange(8.0)
    full = doses.follow(reading, dose_rows([rising, rising]), "reflectance")
    bare = doses.follow(reading, dose_rows([[None, *rising[1:]], [None, *rising[1:]]]), "reflectance")
    doses.figure({"reflectance": [full, bare]}, tmp_path / "doses.svg")
    drawn = (tmp_path / "doses.svg").read_text()
    assert drawn.count("<polyline") == 6  # two scenes and their median in each panel
    assert drawn.count("undefined at the truth") == 1
    assert drawn.count("<circle") == 1


def test_the_order_of_the_families_is_said_with_intervals():
    def said(count):
        r = {"iid_supervised": 0.2, "iid_timelapse": 0.4, "iid_translation": 0.6}
        rows = {
            ("published", m): [
                row
                for k in range(count)
                for row in rows_of(f"{k} temp2500", "i", v + 0.01 * (k - 1) * (count > 1), 0.6)
            ]
            for m, v in r.items()
        }
        return tables.ordering({"rgb-simple": rows})

    assert "CSM_R (published): CGIID-like 3.00" in said(1) and "CGIID-like 2.93 [" in said(4)
    assert "**the same order, on too few sets for an interval**" in said(1)
    assert "**the paper's order is reproduced**" in said(4)
    assert "CSM_S (published): not all three networks have a value" in said(4)
