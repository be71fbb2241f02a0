"""A run that stands still where a test wants it: its method answers once at once and then waits for a file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Two answers come at once, whichever process gives them; all others when there is a file `gate/open`, or $GATE is "open".
METHOD = """
import os, time
from pathlib import Path
import numpy as np
from diorama import Layers

class Held:
    def decompose(self, frames):
        gate = Path("gate")
        while not (first(gate) or (gate / "open").exists() or os.environ.get("GATE") == "open"):
            time.sleep(0.02)
        gray = np.ones((*frames[0].image.shape[:2], 1))
        return Layers(gray, gray)

def first(gate):
    for name in ("one", "two"):
        try:
            (gate / name).mkdir()
            return True
        except FileExistsError:
            pass
    return False
"""
WORDS = ["-w", "mondrian(size=24, patches=5)", "-p", "lmse", "-m", "./held.py:Held", "-n", "6", "-o", "out"]


def held_run(folder: Path, *more: str) -> "subprocess.Popen[str]":
    """A run of which the first rows are written and the rest waits for `release`."""
    (folder / "held.py").write_text(METHOD)
    (folder / "gate").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "diorama", "run", *WORDS, *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_with_interrupts,  # noqa: PLW1509 - no threads here
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while not list(folder.glob("out/cells/*/*/rows/*.jsonl")):
        if process.poll() is not None or time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"no rows came: {process.communicate()}")
        time.sleep(0.02)
    return process


def release(folder: Path) -> None:
    """Let all answers come."""
    (folder / "gate" / "open").touch()


def _with_interrupts() -> None:
    """A suite started in the background ignores Ctrl-C, and its children would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
