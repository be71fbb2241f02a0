"""FunnyBirds' protocols as they are used: saved maps, recorded birds, own photos, gates, undefined scores, continuity."""

import json
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed (pip install 'diorama[torch]')")
pytest.importorskip("embreex", reason="the renderer is not installed (pip install 'diorama[render]')")

import diorama
from diorama.adapt.methods import explain
from diorama.api import run
from diorama.core.catalogue import build
from diorama.core.plan import Plan, expand
from diorama.core.run import create, work
from diorama.core.writing import Writing
from diorama.io.images import read_png, write_png
from diorama.layouts import write_flat
from diorama.protocols.parts.continuity import Continuity, agreement
from diorama.report.summary import document, read_results
from tests.conftest import REPOSITORY
from tests.part_files import lose, rows
from tests.tiny_models import Tiny

TINY = f"{REPOSITORY}/tests/tiny_models.py:Tiny"
WORLD = "birds(size=64, objects=5)"


def summaries(found):
    return {cell["method"]: cell["summary"] for cell in found["cells"]}


def test_saved_maps_score_as_the_method_that_made_them(tmp_path):
    write_flat(Writing(build("world", WORLD), 6, 0, {}, tmp_path / "flat", lambda i, n: None, build("model", TINY)))
    method, model = build("method", "input_x_gradient").object, Tiny()
    for case in json.loads((tmp_path / "flat" / "manifest.json").read_text())["cases"]:
        image = read_png(tmp_path / "flat" / case["image"]).astype(np.float32) / 255
        assert 3 <= len(case["targets"]) <= 4 and case["targets"][0] == case["target"]
        for target in case["targets"]:
            heat = explain(method, model, np.stack([image] * 8), np.array([target] * 8))[0].values
            (tmp_path / "maps" / case["case"]).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / "maps" / case["case"] / f"{target}.npy", heat)
    methods = ["input_x_gradient", f"predictions(folder={tmp_path}/maps)"]
    found = run([WORLD], methods, ["funnybirds"], [TINY], cases=6, out=tmp_path / "run")
    direct, saved = summaries(found).values()
    assert direct == saved and direct["mx"]["n_error"] == 0
    (tmp_path / "maps" / "0-00002" / f"{_label(2)}.npy").unlink()
    found = run([WORLD], methods[1:], ["funnybirds"], [TINY], cases=6, out=tmp_path / "run")
    assert found["cells"][0]["summary"]["sd"]["n_error"] == 1  # the reason names the file to save
    reasons = {row.reason for row in read_results(tmp_path / "run").cells[0].rows if row.status == "error"}
    assert any(f"save 0-00002/{_label(2)}.npy" in reason for reason in reasons)


def _label(index):
    return diorama.scene_at(build("world", WORLD).object, 0, index)[1].params["label"]


METHODS = """
import numpy as np
from diorama.core.answers import Heatmap, Mask

class Zeros:
    def explain(self, model, images, targets):
        return [Heatmap(np.zeros(x.shape[:2]), signed=True) for x in images]

class NotNumbers:
    def explain(self, model, images, targets):
        return [Heatmap(np.full(x.shape[:2], np.nan), signed=True) for x in images]

class Marked:
    def explain(self, model, images, targets):
        return [Mask(x.mean(axis=2) > 0.5) for x in images]

class Blind:
    targeted = False
    def explain(self, model, images, targets):
        return [Heatmap(x.mean(axis=2).astype(float), signed=False) for x in images]

class Together:
    calls = []
    def explain_targets(self, model, image, targets):
        Together.calls.append(list(targets))
        return [Heatmap((image[:, :, t % 3] - 0.3).astype(float), signed=True) for t in targets]
    def explain(self, model, images, targets):
        raise AssertionError("all targets were to be asked together")
"""


@pytest.mark.slow
def test_zero_maps_no_numbers_binary_maps_and_blind_methods_are_said_so(tmp_path):
    (tmp_path / "mine.py").write_text(METHODS)
    methods = [f"{tmp_path}/mine.py:{name}" for name in ("Zeros", "NotNumbers", "Marked", "Blind")]
    protocols = ["funnybirds", "funnybirds(variant=published)"]
    run([WORLD], methods, protocols, [TINY], cases=6, out=tmp_path / "run")
    found = {
        (c.manifest["method"].rpartition(":")[2], c.manifest["variant"]): c
        for c in read_results(tmp_path / "run").cells
    }
    entries = {
        key: entry["summary"]
        for key, entry in zip(found, document(read_results(tmp_path / "run"))["cells"], strict=True)
    }
    assert (
        entries["Zeros", "corrected"]["sd"]["n_undefined"] == 6 and entries["Zeros", "corrected"]["mx"]["mean"] is None
    )
    assert entries["Zeros", "published"]["pc"]["n_ok"] == 6  # P is empty: the bare body is looked at, as coded
    assert entries["NotNumbers", "corrected"]["sd"]["n_error"] == 6
    for variant in ("corrected", "published"):
        assert entries["Marked", variant]["sd"]["n_undefined"] == 6 and entries["Marked", variant]["pc"]["n_ok"] == 6
        assert entries["Marked", variant]["a"]["n_ok"] == 6
    assert entries["Marked", "corrected"]["mx"]["mean"] is None and entries["Marked", "published"]["mx"]["mean"] > 0
    assert entries["Blind", "corrected"]["ts"]["n_undefined"] + entries["Blind", "corrected"]["ts"]["n_excluded"] == 6
    published = entries["Blind", "published"]["ts"]
    assert published["mean"] in (None, 0.0)  # every comparison is a tie
    reasons = {row.reason for row in found["Blind", "corrected"].rows}
    assert not published["n_ok"] or "ts: the method takes no target" in reasons


def test_all_targets_of_an_image_are_asked_together(tmp_path):
    (tmp_path / "mine.py").write_text(METHODS)
    plan = Plan([WORLD], [f"{tmp_path}/mine.py:Together"], ["funnybirds"], [TINY], 3)
    made = create(tmp_path / "run", plan)
    work(made, 0, 1)
    calls = type(made.cells[0].method.made).calls
    assert len(calls) == 3 and all(1 <= len(set(c)) == len(c) <= 4 for c in calls)


@pytest.mark.slow
def test_shards_and_resumption_give_the_same_bytes(tmp_path):
    protocols = ["funnybirds", "continuity"]
    plan = Plan([WORLD], ["input_x_gradient"], protocols, [TINY], 11, controls=True)
    whole, parts = create(tmp_path / "whole", plan), create(tmp_path / "parts", plan)
    work(whole, 0, 1)
    for shard in (1, 0):
        work(parts, shard, 2)
    assert rows(tmp_path / "parts") == rows(tmp_path / "whole")
    lose(tmp_path / "parts", lambda row: int(row["case"][-1]) % 3 != 0)  # two cases of three, as a crash might
    work(parts, 0, 1)
    assert rows(tmp_path / "parts") == rows(tmp_path / "whole")


@pytest.mark.slow
def test_composites_reach_gates_tables_and_json(diorama, tmp_path):
    common = ["run", "-w", WORLD, "-M", TINY, "-m", "input_x_gradient", "-p", "funnybirds", "-n", "6"]
    result = diorama(*common, "--require", "mx>=0.999", "--json")
    assert result.returncode == 4 and "'mx>=0.999'" in result.stderr, result.stderr
    (cell,) = json.loads(result.stdout)["cells"]
    assert list(cell["summary"])[:4] == ["mx", "com", "cor", "con"] and len(cell["grid"]["curves"]["com"]) == 80
    assert cell["variant"] == "corrected"
    text = diorama("report", "diorama-run", "--format", "text").stdout
    assert "funnybirds (corrected)" in text and "mx ↑" in text
    csv = diorama("report", "diorama-run", "--format", "csv").stdout
    assert csv.count(",pc,") == 6  # one value per case, at the threshold chosen for it
    page = (tmp_path / "diorama-run" / "report.html").read_text()
    assert "Which threshold?" in page and len(page) < 3_000_000


def test_own_photos_have_no_classes_of_parts(tmp_path):
    random = np.random.default_rng(0)
    for i in range(4):
        write_png(
            tmp_path / "images" / f"class{i % 2}" / f"{i}.png", (random.random((64, 64, 3)) * 255).astype(np.uint8)
        )
        for k, part in enumerate(("ear", "nose", "tail")):
            mask = np.zeros((64, 64), np.uint8)
            mask[10 + 15 * k : 20 + 15 * k, 10:40] = 255
            write_png(tmp_path / "masks" / f"class{i % 2}" / str(i) / f"{part}.png", mask)
    world = f"folder(images={tmp_path}/images, masks={tmp_path}/masks, size=64)"
    found = run([world], ["input_x_gradient"], ["funnybirds", "continuity"], [TINY], out=tmp_path / "run")
    (cell,) = found["cells"]
    assert cell["summary"]["csdc"]["n_undefined"] == cell["summary"]["ts"]["n_undefined"] == 4
    assert (
        cell["summary"]["sd"]["n_ok"] == 4
        and cell["summary"]["pc"]["n_ok"] == 4
        and cell["summary"]["com"]["mean"] is None
    )
    assert "folder cannot" in found["skipped"][0]["reason"]


def test_a_model_with_the_wrong_number_of_classes_is_skipped(tmp_path):
    (tmp_path / "small.py").write_text(
        f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\nfrom tests.tiny_models import Tiny\n"
        "class Small(Tiny):\n    classes = 10\n"
    )
    plan = Plan([WORLD], ["input_x_gradient"], ["funnybirds"], [TINY, f"{tmp_path}/small.py:Small"], 2)
    (skipped,) = expand(plan).skipped
    assert "has 10 classes, birds has 50" in skipped["reason"]


def test_continuity_is_one_for_an_unchanged_answer():
    assert agreement(np.array([1.0, -1.0]), np.array([3.0, -3.0])) == 1
    assert agreement(np.array([1.0, -1.0]), np.array([-3.0, 3.0])) == 0


@pytest.mark.parametrize("change", ["camera", "light"])
def test_continuity_falls_as_the_view_moves_on(tmp_path, change):
    specs = [f"continuity(change={change}, size={size})" for size in (0.01, 0.3)]
    found = run([WORLD], ["input_x_gradient"], specs, [TINY], cases=10, out=tmp_path)
    near, far = (cell["summary"]["continuity"]["mean"] for cell in found["cells"])
    assert near > far and near > 0.8
    case = Continuity(change).case(build("world", WORLD).object, 0, 0)
    a, b = (case.payload[name]["params"] for name in ("scene", "moved"))
    assert {k for k in a if a[k] != b[k]} == {change}


def test_continuity_controls_hold(tmp_path):
    found = run([WORLD], [], ["continuity"], [TINY], cases=24, controls=True, out=tmp_path)
    cells = {cell["control"]: cell for cell in found["cells"]}
    means = [point["mean"] for point in cells["dose"]["curve"]["continuity"]]
    assert cells["oracle"]["summary"]["continuity"]["mean"] == pytest.approx(1)
    assert all(later < before + 0.02 for before, later in pairwise(means))  # 24 birds: noise
    assert means[-1] < 0.6 and cells["random"]["summary"]["continuity"]["hi"] < 0.6
