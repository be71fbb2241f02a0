"""What a user waits for: commands whose answer is known already, and runs on the whole machine against one worker.

Seconds of the wall clock, each command a process of its own; `known_*` are the best of three.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._print import main, seconds

BIRDS = ["-w", "birds", "-M", "birds_cnn", "-m", "input_x_gradient", "-m", "grad_cam", "-m", "integrated_gradients"]
BIRDS += ["-m", "rise(masks=200)", "-p", "funnybirds", "-n", "48"]


def call(folder: Path, *words: str) -> None:
    """A command of the command line."""
    command = [sys.executable, "-m", "diorama", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr[-300:]}")


def measure() -> dict[str, float]:
    """All figures."""
    figures: dict[str, float] = {"cores": float(os.cpu_count() or 1)}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        call(here, "run", "-w", "birds", "-M", "birds_cnn", "-m", "grad_cam", "-p", "accuracy", "-n", "1", "-o", "warm")
        figures["birds_48_one_seconds"] = seconds(lambda: call(here, "run", *BIRDS, "--on", "local:1", "-o", "one"))
        figures["birds_48_all_seconds"] = seconds(lambda: call(here, "run", *BIRDS, "-o", "all"))
        figures["known_run_seconds"] = seconds(lambda: call(here, "run", *BIRDS, "-o", "all"), 3)
        figures["known_report_seconds"] = seconds(lambda: call(here, "report", "all"), 3)
        figures["known_ls_seconds"] = seconds(lambda: call(here, "ls"), 3)
        figures["known_show_seconds"] = seconds(lambda: call(here, "show", "rise"), 3)
        figures["demo_one_seconds"] = seconds(lambda: call(here, "demo", "--on", "local:1", "-o", "demo-one"))
        figures["demo_all_seconds"] = seconds(lambda: call(here, "demo", "-o", "demo-all"))
    figures["demo_all_over_one"] = figures["demo_all_seconds"] / figures["demo_one_seconds"]
    figures["birds_48_all_over_one"] = figures["birds_48_all_seconds"] / figures["birds_48_one_seconds"]
    return figures


if __name__ == "__main__":
    main("commands", measure, ("numpy", "torch"))
