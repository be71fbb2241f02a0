"""Candle without pictures: numbering, causes, confounding, seeing and doing, weak labels, metadata, the recorded world."""

import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.scene import rng
from diorama.data import labelled, query, sharing
from diorama.io.images import write_png
from diorama.worlds.candle import graph
from diorama.worlds.candle.candle import Candle
from diorama.worlds.candle.factors import NAMES, SCENES, VALUES, flipped, grid, level_of, metadata, values_of
from diorama.worlds.candle.layout import metadata_of
from diorama.worlds.candle.stage import loose_box
from diorama.worlds.recorded.candle_recorded import CandleRecorded
from tests.reference import candle_rules as rules

ROWS, ROWS16 = grid(), grid(16)


def plain(row):
    values = values_of(row)
    return tuple(values[n].replace(" ", "_") if isinstance(values[n], str) else values[n] for n in NAMES)


def test_every_combination_is_there_once_in_the_published_order():
    assert len(ROWS) == 4050
    assert [plain(row) for row in ROWS16] == rules.images(16)


@pytest.mark.parametrize(
    ("number", "factors"),
    [(3541, ("playground", "middle", "torus", "blue", 2.5, 15)), (4150, ("bridge", "left", "sphere", "red", 2.0, 60))],
)
def test_published_numbers(number, factors):
    assert [level_of(name, value) for name, value in zip(NAMES, factors, strict=True)] == ROWS16[number].tolist()
    assert plain(ROWS16[number]) == factors


def test_sub_selections_are_those_of_the_rules_written_out():
    kept = [rules.in_the_paper(*image) for image in rules.images(3)]
    assert sum(kept) == 1620
    assert np.array_equal(graph.pairs(ROWS), kept)
    later = [rules.kept_later(*image) for image in rules.images(16)]
    assert sum(later) == 12546
    assert np.array_equal(graph.semantic(ROWS16), later)
    assert graph.semantic(ROWS16, as_commented=True).sum() == 16146


def dependence(rows, weights):
    """The mutual information in nats of every pair of factors: 0 throughout without confounding."""
    p = weights / weights.sum()
    found = {}
    for a, b in combinations(range(len(NAMES)), 2):
        joint = np.zeros((rows[:, a].max() + 1, rows[:, b].max() + 1))
        np.add.at(joint, (rows[:, a], rows[:, b]), p)
        product = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        inside = joint > 0
        found[NAMES[a], NAMES[b]] = float((joint[inside] * np.log(joint[inside] / product[inside])).sum())
    return found


def test_gaussian_coupling_follows_its_formula_and_its_width():
    weights = graph.coupled(ROWS, "size", "rotation", 0.2)
    for i in (0, 7, 1234, 4049):
        size, turn = ROWS[i, NAMES.index("size")], ROWS[i, NAMES.index("rotation")]
        assert weights[i] == pytest.approx(rules.coupling(size, 3, turn, 6, 0.2))
    bound = [
        dependence(ROWS, graph.coupled(ROWS, "size", "rotation", s))["size", "rotation"] for s in (9, 0.4, 0.2, 0.1)
    ]
    assert bound == sorted(bound)
    assert bound[0] < 1e-4 < 0.5 < bound[-1]
    everything = dependence(ROWS, graph.one_to_all(ROWS, "color", 0.2))
    assert all(value > 0.05 for pair, value in everything.items() if "color" in pair)


@pytest.mark.parametrize("scenes", [3, 16])
def test_the_hidden_cause_ties_light_to_scene_and_nothing_else(scenes):
    rows = grid(scenes)
    strengths = [dependence(rows, graph.hidden(rows, s)) for s in (0.0, 0.5, 1.0)]
    assert [round(d["scene", "light"], 3) == 0 for d in strengths] == [True, False, False]
    assert strengths[1]["scene", "light"] < strengths[2]["scene", "light"]
    assert all(abs(v) < 1e-9 for d in strengths for pair, v in d.items() if pair != ("scene", "light"))


def test_the_graph_says_the_same_as_the_distributions():
    """Factors without a common unobserved cause are independent under every confounder of the data set's own."""
    weights = graph.pairs(ROWS) * graph.hidden(ROWS, 0.7)
    for (a, b), value in dependence(ROWS, weights).items():
        assert (value > 0.01) == bool(set(graph.GRAPH[a]) & set(graph.GRAPH[b])), (a, b)
    assert set(NAMES) < set(graph.GRAPH["image"])


def test_seeing_and_doing_differ_under_confounding():
    world = Candle(confounding="pairs")
    seen = {world.sample_given(rng(0, i), color="red").params["object"] for i in range(60)}
    done = [world.sample_do(rng(0, i), color="red").params for i in range(200)]
    assert seen == {"cube", "torus"}
    assert {p["object"] for p in done} == set(VALUES["object"])
    assert {p["color"] for p in done} == {"red"}
    free = Candle()
    assert len({free.sample_given(rng(0, i), color="red").params["object"] for i in range(60)}) == 5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(NAMES))
def test_doing_leaves_the_other_factors_as_they_were(seed, name):
    rows = ROWS[rng(seed).permutation(4050)]
    weights = rng(seed, "w").random(4050) ** 3
    value = VALUES[name][seed % len(VALUES[name])]
    after = graph.intervene(rows, weights, **{name: value})
    assert after.sum() == pytest.approx(weights.sum())
    assert set(rows[after > 0, NAMES.index(name)]) == {VALUES[name].index(value)}
    for other in set(NAMES) - {name}:
        level = rows[:, NAMES.index(other)]
        assert np.allclose(np.bincount(level, after), np.bincount(level, weights))


def test_sampling_follows_the_weights():
    world = Candle(confounding="gaussian", couple=("size", "rotation"), sigma=0.1, hidden=1.0)
    drawn = graph.draw(rng(1), ROWS, world.weights(), 40_000)
    counts = np.bincount(drawn, minlength=4050)
    expected = world.weights() / world.weights().sum() * 40_000
    assert abs(counts - expected).max() < 6 * np.sqrt(expected.max())
    assert all(world.sample(rng(2, i)).params["light"] == "left" for i in range(40)) is False
    tied = {"indoor": "left", "outdoor": "middle", "playground": "right"}
    assert all(tied[p["scene"]] == p["light"] for p in (world.sample(rng(3, i)).params for i in range(40)))


def test_weak_labels():
    chosen = labelled(4050)
    assert len(set(chosen)) == 405
    assert chosen.max() < 4050
    records = [values_of(row) for row in ROWS]
    couples = sharing(records, ("object", "color"), 500)
    a, b = ROWS[couples[:, 0]], ROWS[couples[:, 1]]
    assert (a[:, [2, 3]] == b[:, [2, 3]]).all()
    assert (couples[:, 0] != couples[:, 1]).all()
    assert (a[:, [0, 1, 4, 5]] != b[:, [0, 1, 4, 5]]).any(1).all()
    found = query(records, object="torus", size=2.5, scene="playground")
    assert len(found) == 5 * 6 * 3
    assert 3541 in found


def test_rows_that_cannot_be_had_are_said():
    with pytest.raises(InputError, match="color='green'"):
        graph.condition(ROWS, graph.pairs(ROWS), color="green")
    with pytest.raises(InputError, match="no image has object='cube', color='yellow'"):
        graph.condition(ROWS, graph.pairs(ROWS), object="cube", color="yellow")
    with pytest.raises(InputError, match="no two images share"):
        sharing([values_of(row) for row in ROWS], NAMES, 3)
    with pytest.raises(InputError, match="did you mean 'color'"):
        graph.matches(ROWS, {"colour": "red"})


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"width": 3}, "width=3"),
        ({"confounding": "pair"}, "not one of 'none', 'pairs'"),
        ({"confounding": "gaussian", "sigma": 0}, "sigma=0"),
        ({"hidden": 2}, "hidden=2"),
        ({"scenes": 17}, "scenes=17"),
        ({"hdri": "/nowhere"}, "no such folder"),
        ({"couple": ("object", "colour"), "confounding": "gaussian"}, "did you mean 'color'"),
        ({"lamp": -1}, "lamp=-1"),
    ],
)
def test_mistakes_in_settings_are_named(params, says):
    spec = ", ".join(f"{name}={value!r}" for name, value in params.items())
    with pytest.raises(InputError, match=says):
        build("world", f"candle({spec})")


def test_do_changes_only_what_it_names_and_refuses_the_rest():
    world = Candle()
    scene = world.numbered(3541)
    other = world.do(scene, color="red", rotation=90)
    assert {k for k in scene.params if scene.params[k] != other.params[k]} == {"color", "rotation"}
    for changes, says in (
        ({"color": "rad"}, "did you mean 'red'"),
        ({"rotation": 10}, "give one of 0, 15"),
        ({"scene": "garage"}, "there are: indoor, outdoor, playground"),
        ({"camera": [3, 0]}, "two numbers from -1 to 1"),
        ({"colour": "red"}, "did you mean 'color'"),
    ):
        with pytest.raises(InputError, match=says):
            world.do(scene, **changes)
    assert Candle(scenes=16).do(scene, scene="garage").params["scene"] == "garage"


def test_places_and_jitter_are_the_published_ones():
    world = Candle(scenes=16)
    drawn = [world.numbered(i * 37).params for i in range(500)]
    x, y = np.array([p["position"] for p in drawn]).T
    assert -4.5 <= x.min() < -4 < 4 < x.max() <= 4.5
    assert -20 <= y.min() < -19 < -1 < y.max() <= 0
    assert all(p["position"][1] >= -15 for p in drawn if p["scene"] in ("indoor", "hall", "grassland"))
    assert np.abs([p["camera"] for p in drawn]).max() <= 0.5
    assert world.numbered(8, seed=1) != world.numbered(8, seed=2)
    assert world.numbered(8, seed=1) == world.numbered(8, seed=1)


def test_metadata_has_the_published_form():
    params = {**values_of(ROWS[3541]), "position": [-1.75, -6.55], "camera": [0.3, 0.2]}
    made = metadata_of(Candle(rotation_bug=True), params, [160, 175, 230, 200])
    assert made["scene"] == "playground"
    assert made["lights"] == "middle"
    thing = made["objects"]["Torus_0"]
    published = ("object_type", "color", "size", "rotation", "bounds")
    assert [thing[k] for k in published[:4]] == ["torus", "blue", 2.5, 15]
    # the published box of image 3541 spans x 150 to 245, with the origin at the bottom left
    assert [corner[0] for corner in thing["bounds"]] == [150, 245]
    assert thing["bounds"][0][1] < thing["bounds"][1][1] < 100
    assert thing["visible_bounds"] == [[160, 40], [230, 65]]
    assert json.loads(json.dumps(made)) == made


def test_loose_boxes_do_not_know_the_jitter_and_are_not_cut():
    params = {**values_of(ROWS[3541]), "position": [4.5, 0.0], "camera": [0.0, 0.0]}
    assert loose_box(params, False)[0] < 0
    assert loose_box(params, False) == loose_box({**params, "camera": [0.5, -0.5]}, False)


@pytest.fixture
def published(tmp_path):
    """Four images in the two published forms: the even ones wrapped in their number, as the older files are."""
    for i in (0, 1, 18, 3541):
        content = metadata(values_of(ROWS[i]), (150, 100, 245, 140), None)
        content = {k: v for k, v in content.items() if k != "bounds_origin"}
        thing = next(iter(content["objects"].values()))
        thing.pop("visible_bounds")
        thing["object_type"] = thing["object_type"].capitalize()
        (tmp_path / f"{i}.json").write_text(json.dumps({str(i): content} if i % 2 == 0 else content))
        write_png(tmp_path / f"{i}.png", np.full((240, 320, 3), i % 250, np.uint8))
    return tmp_path


def test_the_recorded_world_reads_both_published_forms(published):
    world = CandleRecorded(str(published))
    assert len(world) == 4
    name, scene = world.scene(3)
    assert name == "03541"
    frame = world.render([scene])[0]
    assert frame.truth["factors"] == values_of(ROWS[3541])
    assert frame.truth["boxes"] == {"loose": [150, 100, 245, 140]}
    assert flipped((150, 100, 245, 140)) == [[150, 100], [245, 140]]
    assert frame.image.shape == (240, 320, 3)
    assert world.records()[2] == values_of(ROWS[18])
    assert world.levels["color"] == ("red", "blue")
    assert world.levels["scene"] == ("indoor", "playground")
    assert world.do(world.scene(0)[1], rotation=15).params["index"] == 1
    with pytest.raises(InputError, match="no image has"):
        world.do(scene, color="red")
    with pytest.raises(InputError, match="cannot change 'colour'"):
        world.do(scene, colour="red")


def test_damaged_metadata_names_the_file(published):
    (published / "1.json").write_text('{"scene": "indoor"}')
    with pytest.raises(InputError, match=r"1\.json is not CANDLE metadata"):
        CandleRecorded(str(published)).scene(1)
    with pytest.raises(InputError, match="no folder"):
        CandleRecorded(str(published / "nothing"))


def test_scene_names_are_the_sixteen_published_ones():
    assert len(set(SCENES)) == 16
    from diorama.worlds.candle.sets import SETS

    assert tuple(SETS) == SCENES
