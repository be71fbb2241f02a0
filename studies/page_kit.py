"""What all pages of docs/results share: Markdown tables, and a line that says how the page was made."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: str = "---:") -> str:
    """A Markdown table, the first column left, the others right; `numbers` is how the others are aligned.

    >>> print(table(["method", "lmse"], [["weiss", ".0215"]]))
    | method | lmse |
    | :--- | ---: |
    | weiss | .0215 |
    """
    lines = [heads, [":---", *[numbers] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def svg_text(
    x: float, y: float, text: str, size: int, ink: str = "#222", anchor: str = "start", weight: str = "normal"
) -> str:
    """A line of text in an SVG picture."""
    kept = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{ink}" text-anchor="{anchor}" font-weight="{weight}"'
    return f"<text {kept}>{escape(text)}</text>"


def made(libraries: Sequence[str], seeds: str) -> str:
    """Date, commit, seeds, versions and the CPU time of this call: what was known before cost nothing."""
    used = ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in libraries)])
    taken = os.times()
    minutes = sum((taken.user, taken.system, taken.children_user, taken.children_system)) / 60
    return f"{datetime.now(UTC):%Y-%m-%d}, commit {commit()}, {seeds}, {used}, {minutes:.1f} CPU minutes of this call"


def commit() -> str:
    """The commit of the repository, with a + where files were changed since; "unknown" without one."""
    head = _git("rev-parse", "--short", "HEAD")
    return (head + "+" * bool(_git("status", "--porcelain", "--untracked-files=no"))) if head else "unknown"


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=HOME, capture_output=True, text=True, check=False)
    except OSError:  # no git on this machine
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
