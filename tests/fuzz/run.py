"""Fuzz for some minutes: `scripts/fuzz --minutes 20`. Prints, for every target, the inputs tried and what broke the rule."""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.targets import Target, all_targets

_QUIET = {"deadline": None, "database": None, "phases": [Phase.generate], "suppress_health_check": list(HealthCheck)}


def some(target: Target, start: int, count: int) -> tuple[int, list[str]]:
    """Try some inputs; how many they were, and the violations."""
    tried, found = 0, []

    @seed(start)
    @settings(max_examples=count, **_QUIET)
    @given(st.data())
    def each(data: Any) -> None:
        nonlocal tried
        with tempfile.TemporaryDirectory() as folder:
            said = target(data, Path(folder))
        tried += 1
        found.extend([said] if said else [])

    each()
    return tried, found


def main() -> int:
    """Give every target its share of the time, in turns, each turn with another seed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=1.0)
    asked.add_argument("--seed", type=int, default=None, help="the first seed (default: the time)")
    asked.add_argument("--only", default="", help="targets whose name contains this")
    asked.add_argument("--guided", action="store_true", help="let atheris look for bytes that reach new branches")
    given_ = asked.parse_args()
    if given_.guided:
        from tests.fuzz.guided import fuzz

        fuzz(given_.minutes)
    start = int(time.time()) if given_.seed is None else given_.seed
    with tempfile.TemporaryDirectory() as base:
        targets = {name: t for name, t in all_targets(Path(base)).items() if given_.only in name}
        counts, found = _rounds(targets, start, given_.minutes * 60)
    total, seen = sum(counts.values()), {}
    for name, lines in found.items():
        for line in lines:
            seen.setdefault((name, line.partition("\n")[0][:120]), []).append(line)
    for (name, _), lines in seen.items():
        print(f"\nVIOLATION in {name}, {len(lines)} times:\n  {lines[0][:800]}")
    print(f"\n{'target':28s} {'inputs':>8s} {'violations':>11s}")
    for name, count in counts.items():
        print(f"{name:28s} {count:8d} {len(found[name]):11d}")
    print(f"{'all':28s} {total:8d} {sum(map(len, found.values())):11d}   (seed {start})")
    return 1 if seen else 0


def _rounds(targets: dict[str, Target], start: int, seconds: float) -> tuple[dict[str, int], dict[str, list[str]]]:
    """One small batch of every target after the other, until the time is over; each turn has another seed."""
    counts, found = dict.fromkeys(targets, 0), {name: list[str]() for name in targets}
    end, turn = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for name, target in targets.items():
            tried, lines = some(target, start + turn, 500 if name == "specs" else 10)
            counts[name] += tried
            found[name] += lines
        turn += 1
        print(f"{sum(counts.values())} inputs, {sum(map(len, found.values()))} violations", file=sys.stderr, flush=True)
    return counts, found


if __name__ == "__main__":
    sys.exit(main())
