"""Kill nodes of a Ray cluster without grace in the middle of units, and compare the rows: scripts/chaos --times 20."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.part_files import rows
from tests.ray_cluster import RayCluster

SLOW = """
import time
import numpy as np
from diorama import Layers

class Slow:
    def decompose(self, frames):
        time.sleep(1.0)
        ones = np.ones((*frames[0].image.shape[:2], 1))
        return Layers(ones, ones)
"""
WORDS = ["-w", "mondrian(size=24, patches=5)", "-p", "lmse", "-m", "./slow.py:Slow", "-m", "weiss", "-n", "12"]


def start(place: Path, out: str, on: str, variables: dict[str, str]) -> "subprocess.Popen[str]":
    """A run."""
    command = [sys.executable, "-m", "diorama", "run", *WORDS, "-o", out, "--on", on]
    environment = {**os.environ, **variables}
    return subprocess.Popen(
        command, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def parts(folder: Path) -> int:
    """How many parts are written."""
    return len(list(folder.glob("cells/*/*/rows/*.jsonl")))


def main() -> int:
    """Count kills and violations; exit with 1 if there was one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, violations = random.Random(given.seed), []
    counts = {"killed": 0, "units lost and tried again": 0, "runs": 0}
    with tempfile.TemporaryDirectory() as folder, RayCluster(2) as cluster:
        place = Path(folder)
        (place / "slow.py").write_text(SLOW)
        whole = start(place, "whole", "local:2", {})
        assert whole.communicate() and whole.returncode == 0
        wanted = rows(place / "whole")
        while counts["killed"] < given.times:
            out = f"run{counts['runs']}"
            counts["runs"] += 1
            process = start(place, out, f"ray:{cluster.address}", cluster.variables)
            before = 0
            while process.poll() is None and counts["killed"] < given.times:
                if parts(place / out) > before:  # a worker is there: its next unit has begun
                    before = parts(place / out)
                    time.sleep(chance.uniform(0.2, 0.9))
                    cluster.tell("kill")
                    cluster.tell("add")
                    counts["killed"] += 1
                    print(f"kill {counts['killed']} of {given.times}: {out} had {before} parts", flush=True)
                    time.sleep(8)  # a new worker imports its libraries
                time.sleep(0.05)
            _, said = process.communicate()
            counts["units lost and tried again"] += said.count("tried again elsewhere")
            if process.returncode or rows(place / out) != wanted or "Traceback" in said:
                same = rows(place / out) == wanted
                violations.append(f"{out}: exit {process.returncode}, rows equal: {same}: {said[-300:]}")
            state = "as they should be" if not violations or out not in violations[-1] else "NOT as they should be"
            print(f"{out} ended with exit {process.returncode}, rows {state}", flush=True)
    print(json.dumps(counts | {"violations": len(violations)}))
    print(*violations, sep="\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
