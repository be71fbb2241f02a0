"""What every benchmark prints: figures as JSON or as lines, and the committed table with versions."""

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path


def seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """The best of some timings of a call."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main(name: str, measure: Callable[[], dict[str, float]], libraries: tuple[str, ...]) -> None:
    """Measure and print; `--save` also writes benchmarks/results/<name>.md."""
    parser = argparse.ArgumentParser(description=f"The {name} benchmark.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--save", action="store_true", help=f"write benchmarks/results/{name}.md")
    options = parser.parse_args()
    figures = {key: float(f"{value:.4g}") for key, value in measure().items()}
    if options.json:
        print(json.dumps(figures, indent=1))
    else:
        width = max(map(len, figures))
        print("\n".join(f"{key:{width}}  {value:g}" for key, value in figures.items()))
    if options.save:
        save(name, figures, libraries)


def save(name: str, figures: dict[str, float], libraries: tuple[str, ...]) -> None:
    """Write the committed table of a benchmark."""
    used = ", ".join(f"{library} {version(library)}" for library in libraries)
    machine = f"{platform.machine()}, Python {platform.python_version()}, {used}"
    rows = "\n".join(f"| {key} | {value:g} |" for key, value in figures.items())
    path = Path(__file__).parent / "results" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f"# {name}\n\n`scripts/bench {name} --save` on 2 cores, {machine}.\n\n| figure | value |\n|---|---|\n{rows}\n"
    )
