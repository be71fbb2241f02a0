"""What every benchmark prints: figures as JSON or as lines, and the committed table with versions."""

import argparse
import datetime
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
#: Above this load of a core by others, at the beginning, times say little.
IDLE = 0.3


def seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """The best of some timings of a call."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main(name: str, measure: Callable[[], dict[str, float]], libraries: tuple[str, ...]) -> None:
    """Measure and print; `--json` also writes benchmarks/results/<name>.json, `--save` that and the table <name>.md."""
    parser = argparse.ArgumentParser(description=f"The {name} benchmark.")
    parser.add_argument("--json", action="store_true", help=f"print one JSON object, kept as results/{name}.json")
    parser.add_argument("--save", action="store_true", help=f"write benchmarks/results/{name}.md and {name}.json")
    options = parser.parse_args()
    begun = machine(libraries)
    start = time.perf_counter()
    figures = {key: float(f"{value:.4g}") for key, value in measure().items()}
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        width = max(map(len, figures))
        print("\n".join(f"{key:{width}}  {value:g}" for key, value in figures.items()))
    if options.json or options.save:
        keep(name, figures, begun | {"took_seconds": round(time.perf_counter() - start)})
    if options.save:
        save(name, figures, libraries)


def machine(libraries: tuple[str, ...]) -> dict[str, Any]:
    """Where and with what it is measured, and how busy others keep the machine; a busy one is said."""
    load = os.getloadavg()[0]
    if load > IDLE * (os.cpu_count() or 1):
        print(f"bench: the load is {load:.1f}: others work here, so times will say little", file=sys.stderr)
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_before": round(load, 2),
        "python": platform.python_version(),
        "libraries": {library: version(library) for library in libraries},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def keep(name: str, figures: dict[str, float], about: dict[str, Any]) -> None:
    """Write the figures with what they were measured on."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"about": about, "figures": figures}, indent=1)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def kept(name: str) -> dict[str, Any] | None:
    """What was measured last: `about` and `figures`; None where it was not."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def save(name: str, figures: dict[str, float], libraries: tuple[str, ...], command: str = "", note: str = "") -> None:
    """Write the committed table of a benchmark; `command` is what measured it, if not its name."""
    used = ", ".join(f"{library} {version(library)}" for library in libraries)
    machine = f"{platform.machine()}, Python {platform.python_version()}, {used}"
    rows = "\n".join(f"| {key} | {value:g} |" for key, value in figures.items())
    path = RESULTS / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"# {name}\n\n`scripts/bench {command or name} --save` on 2 cores, {machine}.{note}\n\n"
        f"| figure | value |\n|---|---|\n{rows}\n"
    )
