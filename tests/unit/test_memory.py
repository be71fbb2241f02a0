"""One memory: what is asked twice is computed once, within a budget, for as long as its scope lasts."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diorama.core.bench import Bench
from diorama.core.catalogue import build
from diorama.core.guard import Note
from diorama.core.memory import Memory, size_of
from diorama.core.plan import Plan
from diorama.core.run import create, work


class Counted:
    """A computation of so many bytes that counts how often it is made."""

    def __init__(self, size):
        self.size, self.times = size, 0

    def __call__(self):
        self.times += 1
        return np.zeros(self.size, np.uint8)


def test_what_is_asked_twice_is_computed_once():
    memory, compute = Memory(), Counted(10)
    first, again = (memory.keep("unit", ("a",), compute) for _ in range(2))
    assert first is again and compute.times == 1


@pytest.mark.parametrize(("ended", "left"), [
    ("case", {"unit", "run"}), ("unit", {"run"}), ("run", set()),
])  # fmt: skip
def test_a_scope_ends_with_the_shorter_ones(ended, left):
    memory = Memory()
    for scope in ("case", "unit", "run"):
        memory.keep(scope, (scope,), Counted(10))
    memory.end(ended)
    assert {scope for scope in ("case", "unit", "run") if (scope,) in memory} == left
    assert memory.size == 10 * len(left)


def test_the_least_recently_used_goes_first():
    memory = Memory(budget=30)
    for name in "abc":
        memory.keep("run", (name,), Counted(10))
    memory.keep("run", ("a",), Counted(10))  # used again
    memory.keep("run", ("d",), Counted(10))
    assert [name for name in "abcd" if (name,) in memory] == ["a", "c", "d"]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 60)), max_size=40))
def test_the_budget_holds_and_order_is_that_of_use(asked):
    """Against the plainest model of such a memory: a list, the last used at its end."""
    memory, model = Memory(budget=100), []
    for name, size in asked:
        known = next((item for item in model if item[0] == name), None)
        found = memory.keep("run", (name,), Counted(size))
        assert len(found) == (known[1] if known else size)
        if known:
            model.remove(known)
        model.append(known or (name, size))
        while sum(s for _, s in model) > 100:
            model.pop(0)
    assert {name for name in range(10) if (name,) in memory} == {name for name, _ in model}
    assert memory.size == sum(size for _, size in model) <= 100


def test_what_is_larger_than_the_budget_is_kept_alone():
    memory, large = Memory(budget=30), Counted(100)
    memory.keep("run", ("a",), Counted(10))
    for _ in range(3):
        memory.keep("run", ("large",), large)
    assert large.times == 1 and ("a",) not in memory
    memory.keep("run", ("b",), Counted(10))
    assert ("large",) not in memory and ("b",) in memory


def test_several_are_computed_together_though_they_exceed_the_budget():
    memory, together = Memory(budget=15), []

    def compute(missing):
        together.append(sorted(missing))
        return [np.zeros(10, np.uint8) for _ in missing]

    found = memory.keep_all("unit", {(name,): name for name in "abc"}, compute)
    assert len(found) == 3 and together == [[("a",), ("b",), ("c",)]] and len(memory) == 1
    memory.keep_all("unit", {(name,): name for name in "bc"}, compute)
    assert together[1:] == [[("b",)]]


def test_notes_are_raised_for_everyone_who_asks():
    memory = Memory()

    def compute():
        warnings.warn("mind the gap", Note, stacklevel=1)
        return 1

    for _ in range(3):
        with pytest.warns(Note, match="mind the gap"):
            memory.keep("unit", ("a",), compute)
    with pytest.warns(Note, match="mind the gap"):  # and for what is made of it
        memory.keep("unit", ("b",), lambda: memory.keep("unit", ("a",), compute) + 1)
    with pytest.warns(Note, match="mind the gap"):
        memory.keep("unit", ("b",), compute)


def test_what_fails_is_not_remembered():
    memory, tries = Memory(), []

    def compute():
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("no")
        return 5

    with pytest.raises(RuntimeError):
        memory.keep("unit", ("a",), compute)
    assert memory.keep("unit", ("a",), compute) == 5


def test_a_pass_lets_go_of_all_but_what_is_for_the_run():
    memory = Memory()
    memory.keep("unit", ("before",), Counted(10))
    with memory.passing():
        memory.keep("unit", ("before",), Counted(10))
        memory.keep("unit", ("inside",), Counted(10))
        memory.keep("run", ("kept",), Counted(10))
    assert [("before",) in memory, ("inside",) in memory, ("kept",) in memory] == [True, False, True]


def test_arrays_are_counted_wherever_they_lie(tmp_path):
    @dataclass
    class Answer:
        values: np.ndarray
        others: dict

    inside = Answer(np.zeros((10, 10)), {"a": [np.zeros(100, np.float32)]})
    assert 1200 <= size_of([inside]) <= 2000
    assert size_of(np.memmap(tmp_path / "large", np.uint8, "w+", shape=(10_000,))) < 1000
    frame = build("world", "mondrian(size=32)").object
    (shot,) = frame.render([frame.scene_at(0, 0)[1]])
    arrays = [shot.image, *(v for v in shot.truth.values() if isinstance(v, np.ndarray))]
    assert sum(a.nbytes for a in arrays) <= size_of(shot) <= sum(a.nbytes for a in arrays) + 10_000


# Through the bench


@pytest.fixture
def bench():
    said = []
    made = Bench(build("world", "mondrian(size=20)"), None, None, None, None, Memory(), on_line=said.append)
    return made, said


def test_the_bench_keeps_apart_what_follows_from_other_worlds(bench):
    here, _ = bench
    there = here.on(build("world", "mondrian(size=24)"))
    found = [b.keep("unit", ("size",), lambda b=b: b.world.object.size) for b in (here, there, here)]
    assert found == [20, 24, 20]
    scene = here.world.object.scene_at(0, 0)[1]
    assert here.frame(scene) is here.frame(scene) and here.frame(scene) is not there.frame(scene)


def test_frames_of_another_world_can_outlive_the_unit(bench):
    here, _ = bench
    scene = here.world.object.scene_at(0, 0)[1]
    world = build("world", "mondrian(size=24)")
    kept = here.on(world, "run").frame(scene)
    here.frame(scene)
    here.memory.end("unit")
    assert here.on(world).frame(scene) is kept and len(here.memory) == 1


def test_long_passes_say_how_far_they_are_and_keep_one_chunk(bench, monkeypatch):
    here, said = bench
    scenes = [here.world.object.scene_at(0, i)[1] for i in range(20)]
    most = []
    for part in here.passes(scenes, "squares"):
        here.frames(part)
        most.append(len(here.memory))
    assert most == [8, 8, 4] and not said and len(here.memory) == 0
    monkeypatch.setattr("diorama.core.bench.SAY_EVERY", 0.0)
    assert [len(part) for part in here.passes(scenes, "squares")] == [8, 8, 4]
    assert said == ["16 of 20 images of squares, 0.0 minutes left"]  # the first chunk is no measure of the others


def test_what_is_said_goes_to_stderr(capsys, bench):
    here, said = bench
    here.say("half way")
    assert said == ["half way"] and not capsys.readouterr().err
    Bench(here.world, None, None, None, None, Memory()).say("half way")
    assert capsys.readouterr().err == "diorama: half way\n"


# In a run


@pytest.mark.slow
def test_an_encoder_is_fitted_once_for_all_protocols_that_share_its_draws(tmp_path, monkeypatch):
    from diorama.methods.represent.pca import Pca

    fits, plain = [], Pca.fit
    monkeypatch.setattr(Pca, "fit", lambda self, *given: fits.append(1) or plain(self, *given))
    protocols = ["mig(frames=40)", "sap(frames=40)", "dci(frames=40)", "mig(frames=30)"]
    run = create(tmp_path / "run", Plan(["sprites(counts=(3, 2, 3, 3, 3))"], ["pca(latents=3)"], protocols, cases=2))
    work(run, 0, 1)
    assert len(fits) == 4  # two folds of draws of 40 frames, and of 30
    assert all(row.status == "ok" for cell in run.cells for row in run.rows(cell) if row.metric in ("mig", "sap"))


def test_a_method_that_pleases_a_protocol_is_fitted_for_it_alone(tmp_path):
    plan = Plan(["mondrian(size=24)"], ["tappen05"], ["lmse", "si_mse"], cases=4)
    run = create(tmp_path / "run", plan)
    work(run, 0, 1)
    assert len(list((tmp_path / "run" / "fits").glob("*/fit.safetensors"))) == 4  # two folds for each of them


@pytest.mark.slow
def test_rows_are_the_same_when_hardly_anything_is_remembered(tmp_path, monkeypatch):
    plan = Plan(
        ["birds"], ["integrated_gradients(steps=2)", "integrated_gradients_abs(steps=2)"], ["single_deletion"],
        ["birds_cnn"], 3,
    )  # fmt: skip
    pytest.importorskip("torch")
    found = []
    for name, budget in (("much", 1 << 30), ("little", 1)):
        run = create(tmp_path / name, plan)
        run.memory.budget = budget
        work(run, 0, 1)
        found.append([[(r.case, r.metric, r.value, r.reason) for r in run.rows(cell)] for cell in run.cells])
    assert found[0] == found[1] and all(value is not None for *_, value, _ in found[0][0])


def test_passes_are_shared_by_the_methods_that_make_the_same(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from diorama.methods.explain.integrated_gradients import IntegratedGradients

    calls, plain = [], IntegratedGradients.passes
    monkeypatch.setattr(IntegratedGradients, "passes", lambda self, *given: calls.append(1) or plain(self, *given))
    methods = ["integrated_gradients(steps=2)", "integrated_gradients_abs(steps=2)", "integrated_gradients(steps=3)"]
    run = create(tmp_path / "run", Plan(["birds"], methods, ["single_deletion"], ["birds_cnn"], 2))
    work(run, 0, 1)
    assert len(calls) == 2
