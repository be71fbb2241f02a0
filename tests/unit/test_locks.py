"""Locks: one holder at a time, named to who comes second, free when the holder dies."""

import os
import signal
import subprocess
import sys

import pytest

from diorama import InputError
from diorama.io.locks import locked, release_in_child

HOLD = "import sys, time\nfrom pathlib import Path\nfrom diorama.io.locks import locked\n" + (
    "with locked(Path(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)"
)


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run" / "lock")], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline().strip() == "held"
        yield process
        process.kill()


def test_a_taken_lock_names_its_holder(tmp_path, holder):
    with pytest.raises(InputError, match=f"process {holder.pid} on"), locked(tmp_path / "run" / "lock"):
        pass


def test_a_lock_is_free_when_its_holder_is_killed(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with locked(tmp_path / "run" / "lock"):
        pass


def test_a_lock_can_be_taken_again(tmp_path):
    for _ in range(2):
        with locked(tmp_path / "lock"), pytest.raises(InputError), locked(tmp_path / "lock"):
            pass


def test_a_forked_child_lets_go(tmp_path):
    with locked(tmp_path / "lock"):
        child = os.fork()
        if child == 0:  # the child holds a copy of the open file
            release_in_child()
            os.execv(sys.executable, [sys.executable, "-c", "pass"])
        assert os.waitpid(child, 0)[1] == 0
    with locked(tmp_path / "lock"):
        pass
