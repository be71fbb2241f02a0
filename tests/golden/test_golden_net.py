"""The net: every plan of golden_net.py gives what golden/net.json holds, and together they use everything there is."""

import re

import pytest

from tests import golden_net as net

pytest.importorskip("torch")

#: What no plan of the net uses, and why.
LEFT_OUT = {
    "worlds": dict.fromkeys(
        ["arap", "candle_recorded", "dsprites", "folder", "funnybirds_recorded", "iiw", "mit_intrinsic",
         "multi_illumination", "natural_concepts", "photo_folder", "photometric_stereo"],
        "recorded: needs data; its own tests read it",
    )
    | {"scenes": "scenes that the lab saved: needs a file; tests/unit/test_lab.py"},
    "models": dict.fromkeys(
        ["checkpoint", "efficientnet_lite0", "resnet50_keras", "timm", "torchvision"], "weights that are not bundled"
    ),
    "methods": dict.fromkeys(
        ["explain/guided_backprop", "explain/guided_grad_cam", "explain/deep_lift", "explain/part_shapley"],
        "compared with captum and closed forms in tests/unit/test_explain_inherent.py",
    )
    | {"decompose/iid_checkpoint": "weights that are not bundled"},
    "protocols": {},
}  # fmt: skip
#: The place of each kind in the name of a cell.
PLACE = {"worlds": 0, "models": 1, "methods": 2, "protocols": 3}


@pytest.mark.parametrize("name", net.PLANS)
def test_a_plan_gives_what_it_gave(name, tmp_path):
    found = net.compare(name, tmp_path)
    values = [line for line in found if not line.startswith(" → intervals")]
    assert not found, f"{len(values)} values and {len(found) - len(values)} bounds of intervals differ:\n" + "\n".join(
        (values or found)[:40]
    )


@pytest.mark.parametrize("kind", PLACE)
def test_every_component_has_a_value_in_the_net_or_a_reason(kind, diorama):
    listed = {line.split()[0] for line in diorama("ls", kind).stdout.splitlines() if line.startswith("  ")}
    assert listed
    used = {full for name in _scored(kind) for full in listed if name in (full, full.rpartition("/")[2])}
    assert listed - used == set(LEFT_OUT[kind])


def _scored(kind):
    """The names of the components of a kind that are in a cell with at least one value."""
    for plan in net.golden()["plans"].values():
        for label, cell in plan["cells"].items():
            if any(_is_value(row) for rows in cell["rows"].values() for row in rows.values()):
                yield re.split(r"[(:]", label.split(" | ")[PLACE[kind]])[0]


def _is_value(row):
    return not isinstance(row, list) or row[0] == "ok"


def test_the_net_holds_every_status_and_hook():
    cells = [(label, cell) for plan in net.golden()["plans"].values() for label, cell in plan["cells"].items()]
    rows = [row for _, cell in cells for rows in cell["rows"].values() for row in rows.values()]
    listed = [row for row in rows if isinstance(row, list)]
    assert {row[0] for row in listed} == {"ok", "undefined", "excluded", "error"}
    assert all(row[1] for row in listed if row[0] != "ok")
    assert any(row[0] == "ok" and row[1] for row in listed), "a note beside a value"
    assert {label.rpartition(" | ")[2] for label, _ in cells} == {"", "oracle", "random", "dose"}
    assert {row[2] for row in listed} >= {"", "dose", "run", "draw", "threshold"}, (
        "grids of methods, controls, protocols"
    )
    assert any("kept" in cell for _, cell in cells) and any("chosen" in cell for _, cell in cells)
    assert any(plan["skipped"] for plan in net.golden()["plans"].values())


def test_one_changed_digit_is_a_difference():
    kept = {"a": [1.0, "why", None], "b": 0.0}
    assert not list(net.differences(kept, {"a": [1.0, "why", None], "b": 0.0}, net.Tolerance(0.0)))
    assert not list(net.differences(kept, {"a": [1.0 + 5e-7, "why", None], "b": 5e-10}, net.Tolerance(1e-6)))
    assert list(net.differences(kept, {"a": [1.0 + 1e-15, "why", None], "b": 0.0}, net.Tolerance(0.0)))
    for other in ({"a": [1.00001, "why", None], "b": 0.0}, {"a": [1.0, "Why", None], "b": 0.0}, {"a": [1.0, "why"]}):
        assert list(net.differences(kept, other, net.Tolerance(1e-6)))
