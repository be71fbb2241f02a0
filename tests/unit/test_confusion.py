"""The protocols on mosaics: controls, undefined and withheld rates, damaged photos, swaps; through the command line too."""

import json

import numpy as np
import pytest

from diorama.core.answers import Boxes, Heatmap, Mask
from diorama.core.bench import Asked, Bench
from diorama.core.catalogue import build
from diorama.core.contracts import Control
from diorama.core.controls import Dosed, Oracle
from diorama.core.errors import AnswerError
from diorama.core.memory import Memory
from diorama.core.rows import AS_ZERO, Row
from diorama.core.scene import rng
from diorama.core.summary import summarise
from diorama.metrics.confusion import RATES
from diorama.protocols.mosaics.cell_swap import CellSwap
from diorama.protocols.mosaics.confusion import WITHHELD, Confusion
from diorama.protocols.mosaics.evidence import evidence_map
from tests.conftest import REPOSITORY
from tests.unit.test_mosaic import write_folder

MODEL = f"{REPOSITORY}/tests/tiny_models.py:Two"


class Says(Control):
    """A control that answers every scene with one function of its frame."""

    def __init__(self, answer):
        self.answer = answer

    def answers(self, bench, scene, target):
        return [self.answer(bench.frame(scene))]


@pytest.fixture
def world(tmp_path):
    folder = write_folder(tmp_path / "photos", {"cat": 6, "dog": 6})
    return build("world", f"mosaic(source={folder}, cell=32, per_class=4)")


def scores(world, method, protocol=None, index=0):
    """The scores of one case by metric; a list of them where the method has several points."""
    protocol = protocol or Confusion()
    case = protocol.case(world.object, 0, index)
    points = tuple(method.grid) or ({},)
    memo, found = Memory(), []
    for point in range(len(points)):
        bench = Bench(world, None, Asked(method, "m", points, lambda p: method), protocol, case, memo, point)
        found.append({score.metric: score for score in protocol.score(bench, case)})
    return found if len(found) > 1 else found[0]


def heat(frame, sign=1.0):
    own = np.array(frame.truth["cells"]["labels"]) == frame.truth["label"]
    return sign * np.where(own[frame.truth["cells"]["index"]], 1.0, -1.0)


def test_the_oracle_and_its_negative(world):
    for index in range(4):
        found = scores(world, Oracle(Confusion()), index=index)
        assert {name: found[name].value for name in RATES} == dict.fromkeys(RATES, 1.0)
        assert [found[name].value for name in ("tp", "fp", "tn", "fn")] == [0.5, 0, 0.5, 0]
    wrong = scores(world, Says(lambda frame: Heatmap(heat(frame, -1), signed=True)))
    assert [wrong[name].value for name in ("precision", "accuracy", "recall", "f1")] == [0] * 4


def test_a_growing_dose_of_error_lowers_every_rate_on_a_line(world):
    found = scores(world, Dosed(Confusion()))
    for name in ("precision", "accuracy", "recall", "f1"):
        values = np.array([point[name].value for point in found])
        np.testing.assert_allclose(values, 1 - np.array(Confusion.doses) / 2, atol=0.04)
        assert (np.diff(values) < 0).all()


def test_channels_are_added_up_before_signs_are_looked_at(world):
    def answer(frame):
        return Heatmap(heat(frame)[:, :, None] * np.array([3.0, -1.0, -1.0]), signed=True)

    assert scores(world, Says(answer))["accuracy"].value == 1.0


def test_rates_that_need_negative_evidence_are_withheld(world):
    unsigned = (lambda frame: Heatmap(np.ones((64, 64, 1)), signed=False), lambda frame: Mask(heat(frame) > 0))
    for answer, precision in zip(unsigned, (0.5, 1.0), strict=True):
        found = scores(world, Says(answer))
        assert found["precision"].value == found["accuracy"].value == precision
        assert {name for name, s in found.items() if s.status == "undefined"} == set(WITHHELD)
        assert "no negative evidence" in found["recall"].reason
    signed = scores(world, Says(lambda frame: Heatmap(np.ones((64, 64)), signed=True)))
    assert signed["recall"].value == 1.0 and signed["npv"].status == "undefined"


def test_undefined_rates_are_dropped_or_zero_and_counted_either_way(world):
    negative = Says(lambda frame: Heatmap(-np.ones((64, 64)), signed=True))
    dropped, zero = (scores(world, negative, Confusion(policy)) for policy in ("drop", "zero"))
    assert dropped["precision"].status == "undefined" and "no positive evidence" in dropped["precision"].reason
    assert zero["precision"].value == 0.0 and zero["precision"].reason.startswith(AS_ZERO)
    assert dropped["accuracy"] == zero["accuracy"]
    rows = [Row("c", str(i), "precision", s.value, s.status, s.reason) for i, s in enumerate([zero["precision"]] * 2)]
    found = summarise([*rows, Row("c", "x", "precision", 0.9)])
    assert (found.mean, found.n_ok, found.n_undefined) == (pytest.approx(0.3), 1, 2)
    assert found.std == pytest.approx(np.std([0, 0, 0.9], ddof=1))
    empty = scores(world, Says(lambda frame: Heatmap(np.zeros((64, 64)), signed=True)))
    assert {s.status for s in empty.values()} == {"undefined"}
    assert {s.reason for s in empty.values()} == {"the map is zero everywhere"}


def test_answers_that_are_no_maps_or_contradict_themselves():
    with pytest.raises(AnswerError, match="Boxes says nothing about single pixels"):
        evidence_map(Boxes(np.zeros((1, 4)), np.zeros(1)))
    with pytest.raises(AnswerError, match="no negative evidence, but has negative values"):
        evidence_map(Heatmap(-np.ones((4, 4)), signed=False))


def test_pictures_are_purple_for_and_orange_against(world):
    protocol = Confusion()
    case = protocol.case(world.object, 0, 1)
    bench = Bench(world, None, Asked(Oracle(protocol), "m", ({},), lambda p: None), protocol, case, Memory())
    shown, evidence = protocol.pictures(bench, case)
    frame = bench.frame(bench.world.object.scene(1)[1])
    own = np.array(frame.truth["cells"]["labels"]) == frame.truth["label"]
    for i, mine in enumerate(own):
        y, x = divmod(i, 2)
        red, green, blue = evidence.image[32 * y + 16, 32 * x + 16]
        assert (blue > red > green) if mine else (red > green > blue)
        assert np.array_equal(shown.image[32 * y, 32 * x + 3], evidence.image[32 * y, 32 * x + 3])
    assert "dog" in shown.caption


def test_a_swap_moves_the_oracle_in_its_cell_only(world):
    protocol = CellSwap()
    for index in range(4):
        case = protocol.case(world.object, 0, index)
        before, after = case.payload["scene"]["params"], case.payload["swapped"]["params"]
        moved = [i for i, pair in enumerate(zip(before["cells"], after["cells"], strict=True)) if pair[0] != pair[1]]
        assert moved == [case.payload["cell"]]
        assert before["cells"][moved[0]]["label"] == before["target"] != after["cells"][moved[0]]["label"]
        found = scores(world, Oracle(protocol), protocol, index)
        assert (found["locality"].value, found["turn"].value) == (1.0, 1.0)
    noise = Says(lambda frame: Heatmap(rng(frame.scene.key).random((64, 64)), True))
    assert scores(world, noise, protocol)["locality"].value == pytest.approx(0.25, abs=0.02)
    doses = [point["locality"].value for point in scores(world, Dosed(protocol), protocol)]
    assert (np.diff(doses) < 0).all() and doses[-1] == pytest.approx(0.25, abs=0.02)


@pytest.mark.slow
def test_a_damaged_photo_excludes_its_mosaics_by_name(tmp_path, diorama):
    folder = write_folder(tmp_path / "photos", {"cat": 6, "dog": 6})
    bad = folder / "cat" / "03.png"
    bad.write_bytes(bad.read_bytes()[:200])
    spec = f"mosaic(source={folder}, cell=32, per_class=3)"
    done = diorama("run", "-w", spec, "-M", MODEL, "-m", "explain/random", "-p", "confusion", "-o", "run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["cells"][0]["summary"]["accuracy"]
    assert found["n_excluded"] >= 1 and found["n_ok"] + found["n_excluded"] == 6 and found["n_error"] == 0
    table = diorama("report", "run", "--format", "csv").stdout
    assert "excluded" in table and "03.png" in table
    (folder / "dog" / "00.png").unlink()
    few = diorama("run", "-w", f"mosaic(source={folder}, cell=32, target=3, train=3)", "-M", MODEL, "-p", "confusion")
    assert few.returncode == 2 and "class 'dog' has 2 images" in few.stderr and not (tmp_path / "diorama-run").exists()


@pytest.mark.slow
def test_the_table_shows_deviations_and_what_is_withheld(tmp_path, diorama):
    folder = write_folder(tmp_path / "photos", {"cat": 6, "dog": 6})
    words = ("run", "-w", f"mosaic(source={folder}, cell=32, per_class=3)", "-M", MODEL, "-p", "confusion")
    done = diorama(*words, "-m", "grad_cam", "-m", "input_x_gradient", "--controls", "-o", "run")
    assert done.returncode == 0, done.stderr
    table = diorama("report", "run", "--format", "md").stdout
    assert " ± " in table and "| std |" in table and "are withheld: the method gives no negative evidence" in table
    oracle = next(line for line in table.splitlines() if line.startswith("| *oracle"))
    assert "1.0000 ± 0.0000" in oracle or "1.000 ± 0.000" in oracle
    document = json.loads(diorama("report", "run", "--format", "json").stdout)
    random = next(cell for cell in document["cells"] if cell["control"] == "random")["summary"]
    assert all(random[m]["lo"] - 0.02 < 0.5 < random[m]["hi"] + 0.02 for m in ("precision", "accuracy", "recall", "f1"))
    assert list((tmp_path / "run").glob("cells/*/*/keep/*.webp"))
