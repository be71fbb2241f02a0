"""Planning: which cells a plan has, which pairs it leaves out and why, and which plans are refused."""

import gc

import pytest

from diorama import InputError
from diorama.core.case_list import HELD
from diorama.core.cases import Case
from diorama.core.plan import Plan, expand

MONDRIAN, SPRITES, BIRDS = "mondrian(size=32, patches=5)", "sprites(counts=(3, 2, 3, 3, 3))", "birds(size=64)"


def planned(**table):
    return expand(Plan.from_table({"cases": 2, **table}, "a test"))


def names(found):
    return {(c.world.name, c.method and c.method.name, c.protocol.name) for c in found.cells}


@pytest.mark.parametrize(
    ("table", "cells", "skipped"),
    [
        ({"worlds": [MONDRIAN], "methods": ["weiss"], "protocols": ["lmse"]}, 1, []),
        ({"worlds": [MONDRIAN], "methods": ["weiss", "constant"], "protocols": ["lmse", "si_mse"]}, 4, []),
        ({"worlds": [MONDRIAN], "methods": ["weiss", "weiss"], "protocols": ["lmse"]}, 1, []),  # the same cell twice
        ({"worlds": [MONDRIAN, SPRITES], "methods": ["weiss"], "protocols": ["lmse"]}, 1, ["reflectance"]),
        ({"worlds": [SPRITES], "methods": ["pca"], "protocols": ["mig(frames=20)"]}, 1, []),
        ({"worlds": [MONDRIAN, SPRITES], "methods": ["pca"], "protocols": ["mig(frames=20)"]}, 1, ["mondrian"]),
    ],
)
def test_cells_and_what_is_left_out(table, cells, skipped):
    found = planned(**table)
    assert len(found.cells) == cells
    assert len(found.skipped) == len(skipped)
    assert all(word in said["reason"] for word, said in zip(skipped, found.skipped, strict=True))


def test_controls_are_cells_of_their_own():
    found = planned(worlds=[MONDRIAN], methods=["weiss"], protocols=["lmse"], controls=True)
    assert {c.control for c in found.cells} == {"", "oracle", "random", "dose"}
    assert len({c.key for c in found.cells}) == len(found.cells)


def test_a_method_is_looked_for_in_the_track_of_the_protocols():
    found = planned(worlds=[MONDRIAN], methods=["random"], protocols=["lmse"])
    assert names(found) == {("mondrian", "decompose/random", "lmse")}


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"worlds": [BIRDS], "methods": ["grad_cam"], "protocols": ["single_deletion"]}, "needs a model"),
        ({"worlds": [MONDRIAN], "protocols": ["lmse"]}, "needs a method"),
        ({"worlds": [MONDRIAN], "models": ["birds_cnn"], "methods": ["weiss"], "protocols": ["lmse"]}, "is not used"),
        ({"worlds": [SPRITES], "methods": ["weiss"], "protocols": ["lmse"]}, "nothing can be run"),
        ({"worlds": ["mondrain"], "methods": ["weiss"], "protocols": ["lmse"]}, "'mondrian'"),
        ({"worlds": [MONDRIAN], "methods": ["weiss"], "protocols": ["lmse"], "cases": 10**9}, "too many"),
    ],
)
def test_refusals_are_one_line(table, word):
    with pytest.raises(InputError, match=word) as caught:
        planned(**table)
    assert "\n" not in str(caught.value)


def test_more_cases_keep_the_first_ones():
    few, many = (planned(worlds=[MONDRIAN], methods=["weiss"], protocols=["lmse"], cases=n).cells[0] for n in (2, 5))
    assert many.cases[:2] == few.cases[:] and few.key == many.key


@pytest.mark.slow
def test_a_cell_holds_the_names_of_its_cases_and_few_of_them():
    before = _alive()
    cell = planned(worlds=[MONDRIAN], methods=["weiss"], protocols=["lmse"], cases=300).cells[0]
    made = [(case.key, case.scene.key) for case in cell.cases]
    assert [key for key, _ in made] == cell.cases.keys and len(set(made)) == len(cell.cases) == 300
    assert (cell.cases[-300].key, cell.cases[0].scene.key) == made[0]  # made again, and the same
    assert _alive() - before <= HELD
    with pytest.raises(IndexError):
        cell.cases[300]


def _alive() -> int:
    gc.collect()
    return sum(
        type(one) is Case for one in gc.get_objects()
    )  # isinstance would ask lazy objects of torch for their class
