"""Kill runs with -9 at random moments, start them again, and compare the rows: scripts/kill --times 200."""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.part_files import rows

WORDS = [
    "-w",
    "mondrian(size=32, patches=5)",
    "-m",
    "weiss",
    "-m",
    "retinex_gray",
    "-p",
    "lmse",
    "-n",
    "6",
    "--controls",
]


def start(folder: Path, on: str) -> "subprocess.Popen[bytes]":
    """A run in a process group of its own."""
    command = [sys.executable, "-m", "diorama", "run", *WORDS, "-o", str(folder), "--on", on]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def finish(folder: Path, on: str = "local") -> tuple[int, str]:
    """A run that nobody interrupts: its exit code and what it said."""
    process = start(folder, on)
    _, said = process.communicate()
    return process.returncode, said.decode()


def main() -> int:
    """Count kills, ends and violations; exit with 1 if there was one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance, counts = random.Random(given.seed), {"killed": 0, "ended before": 0, "whole groups": 0, "directories": 0}
    violations = []
    with tempfile.TemporaryDirectory() as place:
        begun = time.monotonic()
        assert finish(Path(place) / "whole")[0] == 0
        life, wanted = time.monotonic() - begun, rows(Path(place) / "whole")
        done = 0
        while done < given.times:
            folder = Path(place) / f"run{counts['directories']}"
            counts["directories"] += 1
            for _ in range(min(chance.randint(1, 8), given.times - done)):
                done += 1
                group = chance.random() < 0.5
                process = start(folder, chance.choice(["local", "local:2"]))
                try:
                    process.wait(chance.uniform(0.1, life * 1.1))
                    counts["ended before"] += 1
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL) if group else os.kill(process.pid, signal.SIGKILL)
                    counts["killed"] += 1
                    counts["whole groups"] += group
                process.wait()
                process.stderr.close()
            code, said = finish(folder)
            if code or rows(folder) != wanted or "Traceback" in said or "damaged" in said:
                violations.append(f"{folder.name}: exit {code}, rows equal: {rows(folder) == wanted}: {said[-300:]}")
            checked = subprocess.run([sys.executable, "-m", "diorama", "check", str(folder)], check=False)
            if checked.returncode or list(folder.rglob("*.tmp")):
                violations.append(
                    f"{folder.name}: check {checked.returncode}, {len(list(folder.rglob('*.tmp')))} leftovers"
                )
    print(json.dumps(counts | {"violations": len(violations)}))
    print(*violations, sep="\n")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
