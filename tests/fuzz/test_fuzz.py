"""A few seconds of every fuzzer; `scripts/fuzz --minutes N` is the long form."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.folders import READERS
from tests.fuzz.harness import SECONDS, diorama, forked
from tests.fuzz.targets import all_targets

COUNTS = {"specs": 200, "parameters": 12, "plans": 12, "options": 12, "runs": 8}


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return all_targets(tmp_path_factory.mktemp("good"))


@pytest.mark.parametrize("name", ["specs", "parameters", "plans", "options", "runs", *(f"reader {r}" for r in READERS)])
def test_nothing_breaks_the_rule(targets, name):
    @settings(
        max_examples=COUNTS.get(name, 4),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def each(data):
        with tempfile.TemporaryDirectory() as folder:
            assert targets[name](data, Path(folder)) == ""

    each()


@pytest.mark.parametrize("name", READERS)
def test_every_good_folder_is_read(tmp_path, name):
    of = READERS[name]
    of.write(tmp_path / "d")
    for args in of.commands:
        ended = diorama(list(args), tmp_path)
        assert (ended.code, ended.err.count("diorama: ")) == (0, 0), ended.err
    if of.read is not None:
        of.read(tmp_path / "d")


def test_the_harness_sees_what_it_is_for(tmp_path):
    def crash():
        import os

        os.abort()

    def hang():
        while True:
            pass

    def hog():
        return len(b"x" * 2**35)

    assert forked(crash, tmp_path).violation().startswith("killed by SIGABRT")
    assert forked(hang, tmp_path, 0.3).code == -9 and SECONDS == 10
    assert "MemoryError" in forked(hog, tmp_path).violation()
    assert "traceback" in forked(lambda: 1 // 0, tmp_path).violation()
    assert diorama(["show", "no-such-thing"], tmp_path).violation() == ""
