"""What CONTRIBUTING shows, run as an outsider would: a world, a protocol and a kind of answer from files of one's own."""

from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORLD, PROTOCOL = f"{EXAMPLES}/own_world.py:Ramps", f"{EXAMPLES}/own_protocol.py:Falloff"


@pytest.mark.parametrize("spec", [WORLD, PROTOCOL, f"{EXAMPLES}/twelve_lines.py:Flat"])
def test_the_examples_keep_the_contracts(diorama, spec):
    result = diorama("check", spec)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_protocol_counts_its_cases_and_needs_a_capability_that_the_core_knows_nothing_of(tmp_path):
    from diorama.api import run
    from diorama.core.errors import InputError

    found = run([WORLD, "mondrian"], ["retinex_gray"], [PROTOCOL], cases=3, controls=True, out=tmp_path / "run")
    means = {cell["method"]: cell["summary"]["falloff"]["mean"] for cell in found["cells"]}
    assert [cell["cases"] for cell in found["cells"]] == [8, 8, 8]  # one for each tilt, not three
    assert means["oracle"] < 1e-6 and means["retinex_gray"] < 0.05 and means["decompose/random"] > 0.15
    assert [pair["reason"] for pair in found["skipped"]] == [
        f"{PROTOCOL} needs a world with a tilted light, which mondrian is not"
    ]
    with pytest.raises(InputError, match=r"nothing can be run: .* needs a world with a tilted light"):
        run(["mondrian"], ["retinex_gray"], [PROTOCOL], out=tmp_path / "other")


def test_a_world_brings_a_layout_of_its_own(tmp_path, diorama):
    (tmp_path / "mine.py").write_text(
        "from diorama.worlds.mondrian import Mondrian\n"
        "def write_names(ask):\n"
        "    place = ask.out / 'names.txt'\n"
        "    place.parent.mkdir(parents=True)\n"
        "    place.write_text(' '.join(name for name, _ in ask.scenes(ask.count)))\n"
        "    return place\n"
        "class Mine(Mondrian):\n"
        "    layouts = {'names': write_names}\n"
    )
    result = diorama("render", "./mine.py:Mine", "-n", "2", "--layout", "names", "-o", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "names.txt").read_text() == "0-00000 0-00001"


def test_an_answer_of_a_new_kind_is_scored_by_the_family_it_was_registered_with(tmp_path):
    from diorama.api import run

    method = f"{EXAMPLES}/own_answer.py:Brightest"
    (deletion, mosaic) = (
        run([world], [method], [protocol], ["birds_cnn"], 2, out=tmp_path / protocol)["cells"][0]["summary"]
        for world, protocol in (
            ("birds", "single_deletion"),
            ("mosaic(source=birds(size=64), per_class=1)", "confusion"),
        )
    )
    assert deletion["sd"]["n_ok"] + deletion["sd"]["n_undefined"] == 2 and deletion["sd"]["n_error"] == 0
    assert mosaic["precision"]["n_error"] == 2  # nobody has said what points are on a mosaic


def test_the_examples_are_short():
    """At most 60 lines; the underlined title that the gallery of the site wants counts as one."""
    assert all(len(path.read_text().splitlines()) <= 61 for path in EXAMPLES.glob("*.py"))
