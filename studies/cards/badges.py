"""The badges of README.md: small SVG files drawn here from facts of the repository, without any server. scripts/badges

What a badge says is read: version, Python and licence from pyproject.toml, how many test functions there are from the
syntax trees of the test files, rounded down to one digit so that it does not change every day. `scripts/badges --check`
says which files are no longer true, and a test asks it.
"""

import ast
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "badges"
#: Pixels of a letter at 11 pixels of DejaVu Sans, a little more than its mean, and of the space beside a word.
LETTER, SIDE, HEIGHT = 6.9, 7, 20
LEFT, RIGHT = "#3d444d", "#0b6b8a"


def facts() -> dict[str, tuple[str, str]]:
    """The badges by file name: what is told, and its value."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "version": ("version", project["version"]),
        "python": ("Python", project["requires-python"].replace(">=", "≥ ")),
        "licence": ("licence", project["license"]),
        "tests": ("tests", f"over {rounded(tests())}"),
    }


def tests() -> int:
    """How many test functions there are; those with parameters count once."""
    found = 0
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += sum(isinstance(node, ast.FunctionDef) and node.name.startswith("test_") for node in ast.walk(tree))
    return found


def rounded(n: int) -> str:
    """The first digit, then zeros.

    >>> rounded(1234), rounded(87)
    ('1,000', '80')
    """
    step = 10 ** (len(str(n)) - 1)
    return f"{n // step * step:,}"


def badge(name: str, value: str) -> str:
    """A badge as SVG: a word on a dark ground, its value on a lighter one."""
    widths = [round(LETTER * len(text) + 2 * SIDE) for text in (name, value)]
    whole, middles = sum(widths), [widths[0] / 2, widths[0] + widths[1] / 2]
    said, flat = escape(f"{name}: {value}"), widths[0] - 3
    texts = "".join(
        f'<text x="{x:.1f}" y="14">{escape(text)}</text>' for x, text in zip(middles, (name, value), strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{HEIGHT}" role="img" aria-label="{said}">'
        f"<title>{said}</title>"
        f'<rect width="{whole}" height="{HEIGHT}" rx="3" fill="{RIGHT}"/>'
        f'<path d="M3 0h{flat}v{HEIGHT}h-{flat}a3 3 0 0 1-3-3v-{HEIGHT - 6}a3 3 0 0 1 3-3z" fill="{LEFT}"/>'
        f'<g fill="#fff" text-anchor="middle" font-family="DejaVu Sans,Verdana,sans-serif" font-size="11">{texts}</g>'
        "</svg>\n"
    )


def stale() -> list[str]:
    """The files that say something else than the facts, or are missing, or say nothing any more."""
    wanted = {f"{file}.svg": badge(*said) for file, said in facts().items()}
    there = {path.name: path.read_text(encoding="utf-8") for path in OUT.glob("*.svg")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def write() -> None:
    """Draw what is stale again."""
    OUT.mkdir(parents=True, exist_ok=True)
    for file, said in facts().items():
        (OUT / f"{file}.svg").write_text(badge(*said), encoding="utf-8")


def main(words: list[str]) -> int:
    """Write the badges, or with --check say which are not true."""
    if words == ["--check"]:
        lost = stale()
        for name in lost:
            print(f"docs/badges/{name} is not true any more: run scripts/badges")
        return bool(lost)
    if words:
        print(f"badges: unknown argument '{' '.join(words)}'; there is --check", file=sys.stderr)
        return 2
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
