"""The scripts: each refuses an argument that it does not know, before it does anything."""

import os
import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY


@pytest.mark.parametrize(
    "words",
    [
        ["setup", "--develop"],
        ["demo", "--quickly"],
        ["check", "--fixx"],
        ["bench", "no_such_benchmark"],
        ["reproduce", "no_such_table"],
        ["reproduce", "birds", "--minutes", "0"],
        ["fuzz", "--hours", "1"],
        ["kill", "--often"],
        ["chaos", "--wildly"],
        ["site", "--quick"],
        ["picture", "large"],
    ],
    ids=" ".join,
)
def test_an_unknown_argument_is_refused(words):
    script = REPOSITORY / "scripts" / words[0]
    environment = {**os.environ, "PYTHON": sys.executable}  # with which fuzz, kill and chaos need no setup
    done = subprocess.run(
        [str(script), *words[1:]], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2 and words[-1 if words[-1] not in "01" else -2] in done.stderr
    assert "Traceback" not in done.stderr and "installing" not in done.stderr


def test_bench_lists_its_names():
    done = subprocess.run(["bash", str(REPOSITORY / "scripts/bench")], capture_output=True, text=True, check=True)
    assert "intrinsic" in done.stdout.split() and not any(name.startswith("_") for name in done.stdout.split())
