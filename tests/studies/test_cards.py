"""Cards and badges: every card has every part of its kind or says why not, and badges say what is true."""

import re
import tomllib

import pytest

from diorama.core.catalogue import entries
from studies.cards import badges
from studies.cards.write import DOCS, KINDS, QUESTIONS, card
from tests.conftest import REPOSITORY

#: The parts that the cards of a kind have, all of them, in this order; where there is nothing to show, a part says why.
PARTS = {
    "protocol": (
        *("The question.", "Picture", "Formula, variants, what to know", "What it measures", "Parameters"),
        *(
            "Truth, chance and planted errors",
            "What a case costs",
            "Published against corrected",
            "Known flaws",
            "Cite",
        ),
    ),
    "method": (
        *("The question.", "Picture", "Formula, variants, what to know", "Parameters", "Beside truth and chance"),
        *("What a case costs", "Known flaws", "Cite"),
    ),
    "world": (
        *(
            "What is known of every scene.",
            "Picture",
            "What it stages, what to know",
            "Parameters",
            "What a scene costs",
        ),
        *("Known flaws", "Cite"),
    ),
}


def ours(kind):
    return [entry for entry in entries(kind).values() if entry.path.is_relative_to(REPOSITORY)]


def parts_of(text):
    """The parts of a card in their order, each with what it says."""
    found = re.split(
        r"^(?:## ([^\n]+)|\*\*([^*\n]+)\*\*|:class: strip\n\n(Picture):|```\{note\}\n(Picture):)", text, flags=re.M
    )
    heads = [next(filter(None, found[i : i + 4])) for i in range(1, len(found), 5)]
    return dict(zip(heads, [body.strip() for body in found[5::5]], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_card_has_every_part_and_no_part_is_empty(kind):
    for entry in ours(kind):
        found = parts_of(card(kind, entry))
        assert [head for head in found if head in PARTS[kind]] == list(PARTS[kind]), entry.name
        assert all(found.values()), (entry.name, [head for head, said in found.items() if not said])


@pytest.mark.slow
def test_protocols_show_truth_chance_and_flaws():
    bare = []
    for entry in ours("protocol"):
        found = parts_of(card("protocol", entry))
        said = found["Truth, chance and planted errors"]
        if "No small run" in said or not ("*the truth itself*" in said or "the network itself is judged" in said):
            bare.append(entry.name)
        assert "written down yet" not in found["Known flaws"] + found["Published against corrected"], entry.name
        assert found["What a case costs"] != "Not measured.", entry.name
        assert "@" in found["Cite"] or "No paper" in found["Cite"], entry.name
    assert bare == []


def test_what_is_known_names_components_that_exist():
    known = tomllib.loads((DOCS / "known.toml").read_text(encoding="utf-8"))
    assert set(known) == set(KINDS) and set(known["method"]) == set(QUESTIONS)
    named = {f"{track}/{name}" for track, found in known["method"].items() for name in found}
    assert named <= set(entries("method"))
    assert set(known["protocol"]) <= set(entries("protocol")) and set(known["world"]) <= set(entries("world"))
    assert {entry.name for entry in ours("protocol")} <= set(known["protocol"]), "docs/known.toml lacks a protocol"


def test_badges_say_what_is_true_and_the_readme_shows_them():
    assert badges.stale() == [], "run scripts/badges"
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    facts = badges.facts()
    assert facts["version"][1] == project["version"] and facts["licence"][1] == project["license"]
    assert project["requires-python"].endswith(facts["python"][1].removeprefix("≥ "))
    assert int(facts["tests"][1].removeprefix("over ").replace(",", "")) <= badges.tests()
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"!\[([^\]]*)\]\(docs/badges/(\w+)\.svg\)", readme))
    assert {name: alt for alt, name in shown.items()} == {name: f"{a}: {b}" for name, (a, b) in facts.items()}
    assert not re.search(r"!\[[^\]]*\]\(https?:", readme)  # no picture is asked of a server


def test_a_badge_that_is_not_true_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(badges, "OUT", tmp_path)
    badges.write()
    assert badges.stale() == []
    path = tmp_path / "version.svg"
    path.write_text(path.read_text(encoding="utf-8").replace(badges.facts()["version"][1], "9.9.9"), encoding="utf-8")
    (tmp_path / "old.svg").write_text("<svg/>", encoding="utf-8")
    (tmp_path / "python.svg").unlink()
    assert badges.stale() == ["old.svg", "python.svg", "version.svg"]
    assert badges.main(["--check"]) == 1
